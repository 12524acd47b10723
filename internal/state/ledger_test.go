package state_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// ledger: replicas agree on the order of entries, one that is entered twice is
// there once, in its first place, and old ones go.
func ledger(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	ctx, pre, k := t.Context(), prefix(), newClock()
	one, other := openStoreAt(t, c, k.Now, pre), openStoreAt(t, c, k.Now, pre)
	entry := func(key string) approvals.LedgerEntry {
		return approvals.LedgerEntry{Key: key, Agent: "ops", Tool: "refund", At: k.Now()}
	}
	keys := func(user approvals.UserID) (all []string) {
		entries, err := state.NewLedger(one).Entries(ctx, user)
		require.NoError(t, err)
		for _, e := range entries {
			all = append(all, e.Key)
		}
		return all
	}
	require.Empty(t, keys("U1"))
	require.NoError(t, state.NewLedger(one).Enter(ctx, "U1", entry("a"), time.Time{}))
	require.NoError(t, state.NewLedger(other).Enter(ctx, "U1", entry("b"), time.Time{}))
	require.NoError(t, state.NewLedger(one).Enter(ctx, "U1", entry("a"), time.Time{}))
	require.Equal(t, []string{"a", "b"}, keys("U1"))
	require.Empty(t, keys("U2"))
	got, err := state.NewLedger(other).Entries(ctx, "U1")
	require.NoError(t, err)
	require.Equal(t, entry("a"), got[0])

	require.NoError(t, state.NewLedger(other).Leave(ctx, "U1", "a"))
	require.NoError(t, state.NewLedger(other).Leave(ctx, "U1", "a"))
	require.Equal(t, []string{"b"}, keys("U1"))

	k.Advance(47 * time.Hour)
	require.NoError(t, state.NewLedger(one).Enter(ctx, "U1", entry("c"), time.Time{}))
	require.Equal(t, []string{"b", "c"}, keys("U1"))
	k.Advance(2 * time.Hour)
	require.NoError(t, state.NewLedger(one).Enter(ctx, "U1", entry("d"), time.Time{}))
	require.Equal(t, []string{"c", "d"}, keys("U1"))
	require.NoError(t, state.NewLedger(one).Enter(ctx, "U1", entry("c"), k.Now().Add(-2*time.Hour)))
	require.Equal(t, []string{"c", "d"}, keys("U1"), "an entry of this day stays where it is")
	require.NoError(t, state.NewLedger(one).Enter(ctx, "U1", entry("c"), k.Now()))
	require.Equal(t, []string{"d", "c"}, keys("U1"))

	var racing sync.WaitGroup
	errs := make(chan error, 8)
	for i := range 8 {
		racing.Go(func() {
			errs <- state.NewLedger([]*state.Store{one, other}[i%2]).Enter(ctx, "U3", entry(fmt.Sprint(i)), time.Time{})
		})
	}
	racing.Wait()
	for range 8 {
		require.NoError(t, <-errs)
	}
	require.ElementsMatch(t, []string{"0", "1", "2", "3", "4", "5", "6", "7"}, keys("U3"))
}
