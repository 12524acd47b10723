package agentrun_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// begins reports whether a commit is the beginning of a call.
func begins(c agentrun.Commit) bool {
	return len(c.Entries) == 1 && c.Entries[0].State == agentrun.EntryStarted
}

// later lets a runner work on a run that was put off, or whose lease is over.
func later(w *world, id approvals.RunID) agentrun.Run {
	w.t.Helper()
	time.Sleep(time.Hour) // of the test's own clock
	return w.work(id)
}

// A call begins when its beginning is durable. One that could not begin because
// of that is not in doubt: it runs once the store keeps what it is told.
func TestACallDoesNotBeginBeforeItsBeginningIsDurable(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		w.agent.Tools = []agentrun.Tool{w.does("plain", agentrun.KindFunction)}
		w.model.answers = []any{calls([3]string{"a", "plain", `{"x":1}`})}
		id := w.mention("go").ID
		tries := 0
		w.store.after = func(_ int, c agentrun.Commit) error {
			if begins(c) {
				tries++
				return approvals.ErrNotDurable
			}
			return nil
		}
		require.ErrorIs(t, w.runner().Work(t.Context(), id), approvals.ErrNotDurable)
		require.Empty(t, w.executed())
		require.Greater(t, tries, 1, "it is asked again before the run is put off")
		require.Equal(t, agentrun.RunQueued, w.run(id).Status, "the run is free for any worker")

		w.store.after = nil
		require.Equal(t, agentrun.RunCompleted, later(w, id).Status)
		require.Equal(t, []string{"plain:1"}, w.executed())
	})
}

// The step back may be lost too: then the call is in doubt, and not repeated.
func TestACallWhoseStepBackIsLostIsInDoubt(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		w.agent.Tools = []agentrun.Tool{w.does("plain", agentrun.KindFunction)}
		w.model.answers = []any{calls([3]string{"a", "plain", `{"x":1}`})}
		id := w.mention("go").ID
		begun := false
		w.store.before = func(_ int, c agentrun.Commit) error {
			if begun && len(c.Entries) == 1 && c.Entries[0].State == agentrun.EntryClaimed {
				return errKilled
			}
			return nil
		}
		w.store.after = func(_ int, c agentrun.Commit) error {
			if begins(c) {
				begun = true
				return approvals.ErrNotDurable
			}
			return nil
		}
		require.ErrorIs(t, w.runner().Work(t.Context(), id), approvals.ErrNotDurable)
		w.store.before, w.store.after = nil, nil
		people, _ := w.pending(later(w, id))
		require.Equal(t, []string{"a"}, people)
		require.Empty(t, w.executed())
	})
}

// A lease that was renewed and may be lost does not end what runs under it.
func TestARenewalThatMayBeLostIsOne(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		id := w.mention("go").ID
		w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(ctx context.Context) error {
			select {
			case <-time.After(10 * time.Minute):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})}
		w.model.answers = []any{calls([3]string{"a", "wait", ""})}
		w.store.after = func(_ int, c agentrun.Commit) error {
			if len(c.Entries) == 0 && len(c.Runs) == 1 && c.Append == nil && c.Runs[0].Owner != "" && len(w.executed()) > 0 {
				return approvals.ErrNotDurable
			}
			return nil
		}
		err := w.runner().Work(t.Context(), id)
		entries, journalErr := w.store.Journal(t.Context(), id)
		require.NoError(t, journalErr)
		require.Len(t, entries, 1)
		require.Equal(t, agentrun.EntryFinished, entries[0].State, "%v", err)
	})
}

// A mention that is delivered again is acknowledged when what the first delivery
// stored is durable.
func TestARepeatedMentionIsConfirmed(t *testing.T) {
	w := newWorld(t)
	volatile := true
	w.store.volatile = func() bool { return volatile }
	m := agentrun.Mention{Event: "ev", Origin: origin, Agent: "ops", Requester: "alice", Text: "go"}
	w.store.after = func(int, agentrun.Commit) error { return approvals.ErrNotDurable }
	_, err := w.runner().Mention(t.Context(), m)
	require.ErrorIs(t, err, approvals.ErrNotDurable)
	_, err = w.runner().Mention(t.Context(), m)
	require.ErrorIs(t, err, approvals.ErrNotDurable, "the run is there and may be lost")
	volatile = false
	run, err := w.runner().Mention(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, agentrun.RunQueued, run.Status)
}

// The server that had it may die before it has confirmed anything, and one take its place
// that lacks it: it is stored again.
func TestWhatIsRepeatedIsStoredAgainIfItWasLost(t *testing.T) {
	w := newWorld(t)
	m := agentrun.Mention{Event: "ev", Origin: origin, Agent: "ops", Requester: "alice", Text: "go"}
	for _, again := range []func() (approvals.RunID, error){
		func() (approvals.RunID, error) {
			run, err := w.runner().Mention(t.Context(), m)
			return run.ID, err
		},
		func() (approvals.RunID, error) {
			run, err := w.executing(w.store).Submit(t.Context(), request("k1", "gated"))
			return run.Run.ID, err
		},
	} {
		_, err := again()
		require.NoError(t, err)
		w.store.replaced = func() { w.store.loses(t) }
		id, err := again()
		require.NoError(t, err)
		require.Nil(t, w.store.replaced)
		_, err = w.store.Run(t.Context(), id)
		require.NoError(t, err)
	}
}
