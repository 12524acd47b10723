package state_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// timed: a memo that is work of its own is stored and due in one step, at the time
// that its surface says.
func timed(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	ctx, k := t.Context(), newClock()
	s := openStore(t, c, k.Now)
	id, other := approvals.NewID("outbox", 5, "x"), approvals.NewID("outbox", 5, "y")
	const kind = string(state.Webhooks)
	later := k.Now().Add(time.Hour)
	require.NoError(t, s.CommitTimed(ctx, id, kind, []byte("one"), 0, later))
	requireScore(t, s, state.Webhooks, id, later)
	data, version, err := s.Memo(ctx, id, kind)
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
	require.Equal(t, int64(1), version)

	require.ErrorIs(t, s.CommitTimed(ctx, id, kind, []byte("lost"), 0, k.Now()), approvals.ErrConflict)
	requireScore(t, s, state.Webhooks, id, later)

	require.NoError(t, s.CommitTimed(ctx, other, kind, []byte("y"), 0, later.Add(-time.Minute)))
	all, err := s.Timed(ctx, kind, 5)
	require.NoError(t, err)
	require.Equal(t, []string{other, id}, all)

	require.NoError(t, s.CommitTimed(ctx, id, kind, []byte("two"), 1, time.Time{}))
	requireScore(t, s, state.Webhooks, id, time.Time{})

	require.ErrorIs(t, s.CommitTimed(ctx, id, "cards", nil, 0, later), approvals.ErrInvalid, "its document is a batch")
	_, err = s.Timed(ctx, kind, approvals.Partitions)
	require.ErrorIs(t, err, approvals.ErrInvalid)

	// A handler that failed is told again, and one that moved its memo only then.
	d := state.NewDue(s, state.DueOptions{Sweep: never})
	begun := make(chan string, 10)
	require.NoError(t, s.CommitTimed(ctx, id, kind, []byte("three"), 2, k.Now()))
	work(t, d, state.Webhooks, func(ctx context.Context, id string) error {
		_, version, err := s.Memo(ctx, id, kind)
		if err == nil {
			err = s.CommitTimed(ctx, id, kind, []byte("four"), version, k.Now().Add(time.Minute))
		}
		begun <- id
		return err
	})
	require.Equal(t, id, wait(t, "the memo", begun))
	requireScore(t, s, state.Webhooks, id, k.Now().Add(time.Minute))
}
