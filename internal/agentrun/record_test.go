package agentrun_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
)

var errNoStore = errors.New("the store is away")

// works is how long the tool takes: its lease is not renewed before the store goes.
const works = 6 * time.Second

// leaves is a tool right after whose effect the store is away for a while: it takes
// nothing, or with deaf it takes all and its replies are lost. then is called when the
// store has gone.
func (w *world) leaves(away time.Duration, deaf bool, then func()) agentrun.Tool {
	var gone, back time.Time
	fails := func(int, agentrun.Commit) error {
		if now := time.Now(); !gone.IsZero() && now.Before(back) {
			return errNoStore
		}
		return nil
	}
	if deaf {
		w.store.after = fails
	} else {
		w.store.before = fails
	}
	return w.waits(time.Hour, func(context.Context) error {
		<-time.After(works)
		gone = time.Now()
		back = gone.Add(away)
		if then != nil {
			then()
		}
		return nil
	})
}

// The worker that knows how a call ended stores it when the store is back within its
// lease: the call is not in doubt, runs once, and no other worker has to look.
func TestWhatACallDidIsStoredWhenTheStoreIsBack(t *testing.T) {
	for name, deaf := range map[string]bool{"nothing arrives": false, "replies are lost": true} {
		for _, away := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second} {
			t.Run(name+" for "+away.String(), func(t *testing.T) {
				timed(t, func(w *world) {
					t := w.t
					w.agent.Tools = []agentrun.Tool{w.leaves(away, deaf, nil)}
					w.model.answers = []any{calls([3]string{"a", "wait", ""})}
					began := time.Now()
					require.Equal(t, agentrun.RunCompleted, w.work(w.mention("go").ID).Status)
					require.Less(t, time.Since(began), works+away+2*time.Second)
					require.Equal(t, []string{"wait a"}, w.executed())
					require.Equal(t, 1, w.fences)
					require.Zero(t, w.doubtsAsked())
					require.Contains(t, w.added()[1], "a success")
				})
			})
		}
	}
}

// Of an outage that is longer than the lease the call is in doubt. The worker gives up
// when its own lease is over.
func TestAStoreThatIsAwayPastTheLeaseLeavesACallInDoubt(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		w.agent.Tools = []agentrun.Tool{w.leaves(time.Minute, false, nil)}
		var began time.Time
		w.model.answers = []any{func(context.Context) (agentrun.Response, error) {
			<-time.After(6 * time.Second / 5) // so that this answer renews the lease, and is drawn, between two renewals
			began = time.Now()
			return calls([3]string{"a", "wait", ""}), nil
		}}
		id := w.mention("go").ID
		require.ErrorIs(t, w.runner().Work(t.Context(), id), errNoStore, "whoever has the run next sees what is in doubt")
		require.InDelta(t, agentrun.DefaultLease.Seconds(), time.Since(began).Seconds(), 2)
		<-time.After(time.Minute)
		people, _ := w.pending(w.work(id))
		require.Equal(t, []string{"a"}, people)
		require.Equal(t, []string{"wait a"}, w.executed())
	})
}

// A store that takes renewals and not the end of a call does not hold the run for ever.
func TestAnEndThatIsNeverTakenLeavesACallInDoubt(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(context.Context) error { return nil })}
		w.model.answers = []any{calls([3]string{"a", "wait", ""})}
		w.store.before = func(_ int, c agentrun.Commit) error {
			if len(c.Entries) == 1 && c.Entries[0].State == agentrun.EntryFinished {
				return errNoStore
			}
			return nil
		}
		id := w.mention("go").ID
		began := time.Now()
		require.ErrorIs(t, w.runner().Work(t.Context(), id), errNoStore)
		require.Less(t, time.Since(began), agentrun.DefaultLease+2*time.Second)
		<-time.After(time.Minute)
		people, _ := w.pending(w.work(id))
		require.Equal(t, []string{"a"}, people)
		require.Equal(t, []string{"wait a"}, w.executed())
	})
}

// A runner that drains stores what a call did, like any other. One that is to stop at
// once makes the attempts of the first second.
func TestAWorkerThatIsToStopDoesNotWaitForTheStore(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		runner := w.runner()
		w.agent.Tools = []agentrun.Tool{w.leaves(5*time.Second, false, runner.Drain)}
		w.model.answers = []any{calls([3]string{"a", "wait", ""})}
		id := w.mention("go").ID
		require.NoError(t, runner.Work(t.Context(), id))
		require.Equal(t, agentrun.RunQueued, w.run(id).Status)
		require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
		require.Equal(t, []string{"wait a"}, w.executed())
	})
	for _, after := range []time.Duration{0, 500 * time.Millisecond, 3 * time.Second} {
		timed(t, func(w *world) {
			t := w.t
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			w.agent.Tools = []agentrun.Tool{w.leaves(10*time.Second, false, func() { time.AfterFunc(after, stop) })}
			w.model.answers = []any{calls([3]string{"a", "wait", ""})}
			id := w.mention("go").ID
			began := time.Now()
			require.ErrorIs(t, w.runner().Work(ctx, id), errNoStore)
			require.LessOrEqual(t, time.Since(began), works+max(time.Second, after))
			<-time.After(time.Minute)
			require.Equal(t, agentrun.RunDeferred, w.work(id).Status)
			require.Equal(t, []string{"wait a"}, w.executed())
		})
	}
}
