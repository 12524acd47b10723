package agentrun_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A run whose history cannot be read can be ended all the same. Its thread is
// closed: no run could ever continue it.
func TestAbandonWithAHistoryThatCannotBeRead(t *testing.T) {
	for name, harm := range map[string]func(w *world, run agentrun.Run) error{
		"a message": func(w *world, run agentrun.Run) error {
			return server.LSet(w.t.Context(), w.store.key(w.t, "messages", string(run.Thread)), 0, `{"kind":"of a later program"}`).Err()
		},
		"a message that is missing": func(w *world, run agentrun.Run) error {
			return server.RPop(w.t.Context(), w.store.key(w.t, "messages", string(run.Thread))).Err()
		},
		"the journal": func(w *world, run agentrun.Run) error {
			return server.HSet(w.t.Context(), w.store.key(w.t, "journal", string(run.ID)), "d:x", "{").Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent.Pending = agentrun.PendingKeep
			first := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
			second, third := w.mention("second"), w.mention("third")
			w.decide(first.Deferred, "g", approvals.Approve, "")
			require.NoError(t, w.runner().Resume(t.Context(), first.Deferred))
			resumed := w.run(w.thread().Active)
			require.NoError(t, harm(w, resumed))

			require.Error(t, w.runner().Work(t.Context(), resumed.ID))
			require.NoError(t, w.runner().Park(t.Context(), resumed.ID, "It broke."))
			require.NoError(t, w.runner().Abandon(t.Context(), resumed.ID, "Ended by hand."))
			ended := w.run(resumed.ID)
			require.Equal(t, agentrun.RunFailed, ended.Status)
			require.Contains(t, ended.Failure, "Ended by hand. The messages of this thread can no longer be read")
			for _, id := range []approvals.RunID{second.ID, third.ID} {
				run := w.run(id)
				require.Equal(t, agentrun.RunFailed, run.Status)
				require.Contains(t, run.Failure, "Start a new thread.")
				require.Equal(t, epoch, run.EndedAt)
			}
			thread := w.thread()
			require.Empty(t, thread.Active)
			require.Empty(t, thread.Queue)
			require.Equal(t, ended.Failure, "Ended by hand. "+thread.Closed)

			_, err := w.writes("alice", "fourth")
			require.ErrorIs(t, err, agentrun.ErrThreadClosed)
			require.Equal(t, second.ID, w.mention("second").ID, "a repeated delivery finds its run")
			require.Empty(t, w.executed())
		})
	}
}

// A store that does not answer closes nothing.
func TestAbandonWithAStoreThatFails(t *testing.T) {
	w := newWorld(t)
	id := w.mention("go").ID
	down := errors.New("down")
	require.ErrorIs(t, w.runnerOn(deaf{w.store, down}).Abandon(t.Context(), id, "x"), down)
	require.Empty(t, w.thread().Closed)
	require.Equal(t, id, w.thread().Active)
}

// deaf is a store that reads no messages.
type deaf struct {
	*hooked
	err error
}

func (d deaf) Messages(context.Context, agentrun.ThreadID, int, int) ([]agentrun.Message, error) {
	return nil, d.err
}
