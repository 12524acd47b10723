package agentrun_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A run that no worker gets any further is parked with words, and only then.
func TestPark(t *testing.T) {
	w := newWorld(t)
	clock := epoch
	w.now = func() time.Time { return clock }
	ctx := t.Context()
	park := func(id approvals.RunID) error { return w.runner().Park(ctx, id, "It broke. Nothing is repeated.") }
	first := w.mention("go").ID
	waiting := w.mention("waiting").ID
	require.ErrorIs(t, park(waiting), approvals.ErrInvalid)
	require.ErrorIs(t, park("run-00-x"), approvals.ErrNotFound)

	// A worker has it, then loses it without knowing: what it does is refused.
	w.model.answers = []any{func(context.Context) (agentrun.Response, error) {
		require.ErrorIs(t, park(first), agentrun.ErrRunHeld)
		clock = clock.Add(time.Minute)
		require.NoError(t, park(first))
		return calls([3]string{"p", "plain", `{"x":1}`}), nil
	}}
	require.NoError(t, w.runner().Work(ctx, first))
	require.Empty(t, w.executed())
	require.Equal(t, []string{"user: go"}, brief(w.history()))
	run := w.run(first)
	require.Equal(t, agentrun.RunParked, run.Status)
	require.Equal(t, "It broke. Nothing is repeated.", run.Failure)
	require.Empty(t, run.Owner)
	require.Zero(t, run.LeaseEnds)
	_, due := run.Due()
	require.False(t, due)

	require.NoError(t, w.runner().Park(ctx, first, "other words"))
	require.Equal(t, run, w.run(first), "parked once")
	require.NoError(t, w.runner().Work(ctx, first))
	require.Equal(t, run, w.run(first), "a parked run is not continued")
	require.Equal(t, agentrun.RunWaiting, w.mention("more").Status)

	require.NoError(t, w.runner().Abandon(ctx, first, "Ended by hand."))
	require.ErrorIs(t, park(first), agentrun.ErrRunEnded)
	require.NoError(t, park(waiting), "it is its turn, and nobody has it")
	require.Equal(t, agentrun.RunParked, w.run(waiting).Status)
}

// A worker that claims the run while it is being parked keeps it.
func TestParkLosesARaceAgainstAWorker(t *testing.T) {
	w := newWorld(t)
	id := w.mention("go").ID
	racing := false
	w.store.before = func(int, agentrun.Commit) error {
		if racing {
			racing = false
			require.NoError(t, w.runner().Work(context.Background(), id))
		}
		return nil
	}
	racing = true
	require.ErrorIs(t, w.runner().Park(t.Context(), id, "x"), agentrun.ErrRunEnded)
	require.Equal(t, agentrun.RunCompleted, w.run(id).Status)

	down := errors.New("down")
	id = w.mention("again").ID
	w.store.before = func(int, agentrun.Commit) error { return down }
	require.ErrorIs(t, w.runner().Park(t.Context(), id, "x"), down)
}

// What was parked can be tried again.
func TestRetry(t *testing.T) {
	w := newWorld(t)
	clock := epoch
	w.now = func() time.Time { return clock }
	ctx := t.Context()
	id := w.mention("go").ID
	require.ErrorIs(t, w.runner().Retry(ctx, id), agentrun.ErrRunHeld, "it is not parked")
	require.ErrorIs(t, w.runner().Retry(ctx, "run-00-x"), approvals.ErrNotFound)
	require.NoError(t, w.runner().Park(ctx, id, "It broke."))
	require.NoError(t, w.runner().Retry(ctx, id))
	require.Equal(t, agentrun.RunQueued, w.run(id).Status)
	require.Empty(t, w.run(id).Failure)
	require.NoError(t, w.runner().Work(ctx, id))
	require.Equal(t, agentrun.RunCompleted, w.run(id).Status)
	require.ErrorIs(t, w.runner().Retry(ctx, id), agentrun.ErrRunEnded)
}
