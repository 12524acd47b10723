package agentrun_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// unread is a store whose messages were stored before their authors were noted,
// and that cannot tell of one batch.
type unread struct {
	agentrun.Store
	about approvals.BatchID
	err   error
}

func (s unread) Messages(ctx context.Context, id agentrun.ThreadID, from, to int) ([]agentrun.Message, error) {
	list, err := s.Store.Messages(ctx, id, from, to)
	for i, m := range list {
		if r, ok := m.(agentrun.Request); ok {
			r.Authors = nil
			list[i] = r
		}
	}
	return list, err
}

func (s unread) Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error) {
	if id == s.about {
		return approvals.Batch{}, s.err
	}
	return s.Store.Batch(ctx, id)
}

// The author of a reason that was sent to the model is in the batch of that
// run. While it cannot be read, nobody is asked: separation might not hold.
func TestWhileABatchWithAuthorsIsUnreadableNoBatchOpens(t *testing.T) {
	w := newWorld(t)
	w.policy = separate()
	w.model.answers = []any{calls([3]string{"g1", "gated", `{"x":1}`})}
	first, err := w.writes("dave", "first")
	require.NoError(t, err)
	deferred := w.work(first.ID).Deferred
	w.decide(deferred, "g1", approvals.Deny, "gated 2 instead")
	require.Equal(t, agentrun.RunCompleted, w.resume(deferred).Status)

	w.model.answers = []any{calls([3]string{"g2", "gated", `{"x":2}`})}
	next, err := w.writes("erin", "second")
	require.NoError(t, err)
	errDown := errors.New("no answer")
	store := unread{w.store, deferred, errDown}
	require.ErrorIs(t, w.runnerOn(store).Work(t.Context(), next.ID), errDown)
	store.err, store.about = nil, ""
	require.NoError(t, w.runnerOn(store).Work(t.Context(), next.ID))
	run, err := w.store.Run(t.Context(), next.ID)
	require.NoError(t, err)
	require.Equal(t, []approvals.UserID{"dave", "bob"}, w.batch(run.Deferred).Participants)
}
