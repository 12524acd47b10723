package state_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

func TestOnMiniredis(t *testing.T) {
	t.Parallel()
	suite(t, statetest.Miniredis)
}

func TestOnRedis(t *testing.T) {
	t.Parallel()
	suite(t, statetest.Redis)
}

func TestOnCluster(t *testing.T) {
	t.Parallel()
	suite(t, statetest.Cluster)
}

// While replicas of an older version work on a store, those of this one keep its layout.
func TestInTheLayoutOfOlderVersions(t *testing.T) {
	t.Parallel()
	suite(t, func(tb testing.TB) redis.UniversalClient {
		tb.Helper()
		return &held{UniversalClient: statetest.Redis(tb), apart: true}
	})
}

func TestOnGivenRedis(t *testing.T) {
	t.Parallel()
	c, ok := statetest.Addr(t)
	if !ok {
		return // nobody asked for it
	}
	suite(t, func(testing.TB) redis.UniversalClient { return c })
}

// The suite must notice a script that does not remember requests: the client
// sends a commit again whose reply was lost, and hears that it lost a race
// against itself.
func TestACommitThatForgetsRequestsIsNoticed(t *testing.T) {
	t.Parallel()
	err := losesReply(t, statetest.Miniredis(t), func(c redis.UniversalClient) *state.Store {
		s, err := state.Open(t.Context(), state.Options{Client: c})
		require.NoError(t, err)
		s.ForgetRequests()
		return s
	})
	require.ErrorIs(t, err, approvals.ErrConflict)
}

// A server that is full, or that has become a replica, still answers what is
// read.
func TestWorkWaitsWhileRedisRefusesWrites(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]struct{ refuse, allow []any }{
		"because it is full":      {[]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}},
		"because it is a replica": {[]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := statetest.Redis(t)
			refusedWrites(t, c,
				func() { require.NoError(t, c.Do(t.Context(), server.refuse...).Err()) },
				func() { require.NoError(t, c.Do(context.Background(), server.allow...).Err()) }) // also when the test has ended
		})
	}
}
