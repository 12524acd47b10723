package state_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

func TestOnMiniredis(t *testing.T) {
	t.Parallel()
	statetest.Run(t, statetest.Miniredis)
}

func TestOnRedis(t *testing.T) {
	t.Parallel()
	statetest.Run(t, statetest.Redis)
}

func TestOnCluster(t *testing.T) {
	t.Parallel()
	statetest.Run(t, statetest.Cluster)
}

func TestOnGivenRedis(t *testing.T) {
	t.Parallel()
	c, ok := statetest.Addr(t)
	if !ok {
		return // nobody asked for it
	}
	statetest.Run(t, func(testing.TB) redis.UniversalClient { return c })
}

// The suite must notice a script that does not remember requests: the client
// sends a commit again whose reply was lost, and hears that it lost a race
// against itself.
func TestACommitThatForgetsRequestsIsNoticed(t *testing.T) {
	t.Parallel()
	err := statetest.LostReplies(t, statetest.Miniredis(t), func(c redis.UniversalClient) *state.Store {
		s, err := state.Open(t.Context(), state.Options{Client: c})
		require.NoError(t, err)
		s.ForgetRequests()
		return s
	})
	require.ErrorIs(t, err, approvals.ErrConflict)
}
