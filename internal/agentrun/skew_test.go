package agentrun_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
)

var errSkewed = errors.New("the clocks differ")

// replica returns a runner whose clock differs from the store's. guarded says
// whether it asks the store for the time by which leases are judged.
func (w *world) replica(skew time.Duration, guarded bool) *agentrun.Runner {
	c := agentrun.Config{
		Store: w.store, Policy: w.policy, Agents: w.agents, Now: func() time.Time { return w.now().Add(skew) },
	}
	if guarded {
		c.LeaseTime = func(context.Context) (time.Time, error) {
			if skew.Abs() > agentrun.DefaultLease/4 {
				return w.now(), errSkewed
			}
			return w.now(), nil
		}
	}
	return agentrun.NewRunner(c)
}

// trial lets one replica with this skew hold a run, and another with that skew
// look at it. It reports whether the second took it from the first.
func trial(t *testing.T, holds, looks time.Duration, guarded bool) (taken bool) {
	t.Helper()
	w := newWorld(t)
	plain := w.does("plain", agentrun.KindFunction)
	run := plain.execute
	id := w.mention("go").ID
	owner := func() agentrun.Fence { return w.run(id).Owner }
	plain.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
		before := owner()
		err := w.replica(looks, guarded).Work(ctx, id)
		if skewed := looks.Abs() > agentrun.DefaultLease/4; guarded && skewed {
			require.ErrorIs(t, err, errSkewed)
		} else {
			require.NoError(t, err)
		}
		taken = owner() != before
		return run(ctx, c)
	}
	w.agent.Tools = []agentrun.Tool{plain}
	w.model.reply = func(r agentrun.ModelRequest) agentrun.Response {
		if len(r.Messages) == 1 {
			return calls([3]string{"a", "plain", `{"x":1}`})
		}
		return says("done")
	}
	held := w.replica(holds, false)
	if guarded {
		held = w.replica(0, true) // one that is skewed claims nothing
		require.Equal(t, holds.Abs() > agentrun.DefaultLease/4, w.replica(holds, true).Work(t.Context(), id) != nil)
		if w.run(id).Status != agentrun.RunQueued {
			return taken
		}
	}
	require.NoError(t, held.Work(t.Context(), id))
	return taken
}

// A replica whose clock is wrong neither takes a run from another whose lease is
// not over, nor loses one that it holds: it claims nothing.
func TestASkewedReplicaNeitherStealsNorLoses(t *testing.T) {
	const trials = 60
	r := rand.New(rand.NewPCG(1, 2))
	skew := func() time.Duration { return time.Duration(r.Int64N(int64(4*time.Minute))) - 2*time.Minute }
	taken := map[bool]int{}
	for range trials {
		holds, looks := skew(), skew()
		for _, guarded := range []bool{false, true} {
			if trial(t, holds, looks, guarded) {
				taken[guarded]++
			}
		}
	}
	t.Logf("%d trials with clocks up to 2 min apart: %d runs taken from their workers by local clocks, %d by the store's", trials, taken[false], taken[true])
	require.Positive(t, taken[false], "the trials show nothing")
	require.Zero(t, taken[true])
}

// A worker does not take its lease for longer than the store does, however long the
// store needs to say its time: at the first renewal that fails after the end of the
// lease it stops.
func TestALeaseIsNotLongerBecauseTheStoreAnswersLate(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		var stopped time.Time
		var away atomic.Bool
		w.store.before = func(int, agentrun.Commit) error {
			if away.Load() {
				return errKilled
			}
			return nil
		}
		w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(ctx context.Context) error {
			away.Store(true)
			<-ctx.Done()
			stopped = time.Now()
			return ctx.Err()
		})}
		w.model.answers = []any{calls([3]string{"a", "wait", ""})}
		asked := 0
		runner := agentrun.NewRunner(agentrun.Config{
			Store: w.store, Policy: w.policy, Agents: w.agents, Now: time.Now,
			LeaseTime: func(context.Context) (time.Time, error) {
				at := time.Now()
				if asked++; asked == 3 { // by the last commit before the tool; renewals do not wait for it
					<-time.After(agentrun.DefaultLease / 5)
				}
				return at, nil
			},
		})
		id := w.mention("go").ID
		_ = runner.Work(t.Context(), id)
		require.False(t, stopped.IsZero())
		ends := w.run(id).LeaseEnds
		require.False(t, stopped.After(ends), "%s after the end", stopped.Sub(ends))
	})
}

// A worker whose clock goes wrong while it works keeps its lease, by the time of
// the store.
func TestAClockThatGoesWrongKeepsItsLease(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		id := w.mention("go").ID
		w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(context.Context) error {
			<-time.After(10 * time.Minute)
			return nil
		})}
		w.model.answers = []any{calls([3]string{"a", "wait", ""})}
		wrong := false
		c := agentrun.Config{
			Store: w.store, Policy: w.policy, Agents: w.agents,
			Now: func() time.Time { return time.Now() },
			LeaseTime: func(context.Context) (time.Time, error) {
				if wrong {
					return time.Now(), errSkewed
				}
				wrong = true // after it has claimed
				return time.Now(), nil
			},
		}
		others := make(chan error, 20)
		go func() {
			for range cap(others) {
				<-time.After(20 * time.Second)
				others <- w.runner().Work(t.Context(), id)
			}
		}()
		require.NoError(t, agentrun.NewRunner(c).Work(t.Context(), id))
		for range cap(others) {
			require.NoError(t, <-others)
		}
		require.Equal(t, []string{"wait a"}, w.executed())
		require.Equal(t, agentrun.RunCompleted, w.run(id).Status)
	})
}
