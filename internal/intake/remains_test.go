package intake_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
)

// outlive removes what ended more than a month ago, so long after now. What
// surfaces and endpoints would do is done.
func (w *world) outlive(d time.Duration) {
	w.Helper()
	ctx := w.Context()
	for n := range approvals.Partitions {
		ids, err := w.store.Timed(ctx, string(state.Deliveries), n)
		require.NoError(w, err)
		for _, id := range ids {
			require.NoError(w, w.runner.Deliver(ctx, approvals.BatchID(id)))
		}
	}
	keys, err := w.client.Keys(ctx, w.prefix+":*}:due").Result()
	require.NoError(w, err)
	for _, key := range keys {
		require.NoError(w, w.client.Del(ctx, key).Err())
	}
	w.clock.Advance(d)
	later := w.clock.Now()
	store, err := state.Open(ctx, state.Options{Client: w.client, Prefix: w.prefix, Now: func() time.Time { return later }})
	require.NoError(w, err)
	retention := state.NewRetention(store, state.RetentionOptions{
		Age:     func() time.Duration { return 30 * 24 * time.Hour },
		Remains: func(ctx context.Context, r agentrun.Run) (agentrun.Remains, error) { return w.Remains(ctx, r) },
	})
	err = retention.Reconcile(ctx, approvals.NewID("idle", agentrun.RemotePartition(intake.Executor, claude.Name), "threads"))
	var soon interface{ RetryAfter() time.Duration }
	require.ErrorAs(w, err, &soon)
}

func requireRemoved(t *testing.T, err error) {
	t.Helper()
	_, removed := errors.AsType[*intake.RemovedError](err)
	require.True(t, removed, "%v", err)
	require.ErrorIs(t, err, approvals.ErrNotFound)
}

// Whatever a caller repeats after its request was removed, nothing can run because of
// it: not even a call that needs nobody.
func TestARequestThatWasRemovedIsNotMadeAgain(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	free, keyed := ask("free", "free"), ask("keyed", "free")
	keyed.IdempotencyKey, keyed.Payload = "k", approvals.Digest{1}
	asked := ask("asked", "write")
	first, second, third := w.ask(free), w.ask(keyed), w.ask(asked)
	w.approve(third, "c0")
	for _, r := range []intake.Request{first, second, third} {
		_, err := w.Claim(ctx, claude, r.ID, "c0")
		require.NoError(t, err)
	}
	w.outlive(24 * time.Hour)
	require.Equal(t, first.ID, w.ask(free).ID, "it is not old enough")
	w.outlive(400 * 24 * time.Hour)

	for _, a := range []intake.Ask{free, keyed, asked} {
		_, err := w.Ask(ctx, claude, a)
		requireRemoved(t, err)
	}
	for _, r := range []intake.Request{first, second, third} {
		_, err := w.Get(ctx, claude, r.ID)
		requireRemoved(t, err)
		_, err = w.Claim(ctx, claude, r.ID, "c0")
		requireRemoved(t, err)
		_, err = w.Report(ctx, claude, r.ID, "c0", intake.Report{State: approvals.Ran})
		requireRemoved(t, err)
		_, err = w.Withdraw(ctx, claude, r.ID, "")
		requireRemoved(t, err)
		_, err = w.store.Run(ctx, r.ID)
		require.ErrorIs(t, err, approvals.ErrNotFound)
		other := claude
		other.Name = "codex"
		_, err = w.Get(ctx, other, r.ID)
		require.ErrorIs(t, err, approvals.ErrNotFound)
		_, told := errors.AsType[*intake.RemovedError](err)
		require.False(t, told, "another agent is told nothing")
	}
	list, err := w.List(ctx, claude, intake.Filter{})
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, w.Leave(ctx, claude, "free"))
}

// The same name may be used for something else: the request that it named had ended.
func TestAnExternalIDOutlivesItsRequest(t *testing.T) {
	w := newWorld(t)
	first := w.ask(ask("deploy", "free"))
	w.outlive(400 * 24 * time.Hour)
	next := w.ask(ask("deploy", "write"))
	require.NotEqual(t, first.ID, next.ID)
	require.Equal(t, intake.StatePending, next.State)
	require.Equal(t, next.ID, w.ask(ask("deploy", "write")).ID)
}

// A call that is asked about again is a new one once nobody can use the old decision.
func TestACallWhoseRequestWasRemovedIsAskedAboutAnew(t *testing.T) {
	w := newWorld(t)
	before := map[any]bool{}
	for range 3 {
		r := w.ask(again("a"))
		require.False(t, before[r.ID])
		before[r.ID] = true
		require.Equal(t, intake.OutcomePending, r.Calls[0].Outcome)
		w.approve(r, r.Calls[0].ID)
		w.outlive(400 * 24 * time.Hour)
		_, err := w.Get(t.Context(), claude, r.ID)
		requireRemoved(t, err)
	}
}

// A call that was executed here, and whose caller was told to ask again for the result,
// does not run once more when the caller comes back after months.
func TestWhoIsOwedAResultFindsItForAYear(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	first := w.ask(here("a", "free"))
	_, err := w.Claim(ctx, claude, first.ID, first.Calls[0].ID)
	require.NoError(t, err)
	require.NoError(t, w.Owe(ctx, claude, first.ID))
	w.outlive(300 * 24 * time.Hour)
	require.Equal(t, first.ID, w.ask(here("b", "free")).ID)
	_, err = w.Answered(ctx, claude, first.ID)
	require.NoError(t, err)
	w.outlive(100 * 24 * time.Hour)
	_, err = w.Get(ctx, claude, first.ID)
	requireRemoved(t, err)
}

// An open request stays, however old it is, and so does one that was used lately.
func TestARequestStaysWhileItIsOfUse(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	open, used := w.ask(ask("open", "write")), w.ask(ask("used", "free"))
	_, err := w.Claim(ctx, claude, used.ID, "c0")
	require.NoError(t, err)
	w.clock.Advance(399 * 24 * time.Hour)
	_, err = w.Report(ctx, claude, used.ID, "c0", intake.Report{State: approvals.Ran})
	require.NoError(t, err)
	w.outlive(29 * 24 * time.Hour)
	require.Equal(t, intake.StatePending, w.get(open.ID).State)
	require.NotNil(t, w.get(used.ID).Calls[0].Report)
	w.outlive(31 * 24 * time.Hour)
	require.Equal(t, intake.StatePending, w.get(open.ID).State)
	_, err = w.Get(ctx, claude, used.ID)
	requireRemoved(t, err)
}
