package state_test

import (
	"context"
	"sort"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// keys returns every key of the store, sorted.
func keys(t *testing.T, c redis.UniversalClient, s *state.Store) []string {
	t.Helper()
	out, err := c.Keys(t.Context(), s.Prefix()+":*").Result()
	require.NoError(t, err)
	sort.Strings(out)
	return out
}

// dump returns everything in the store except which requests it remembers.
func dump(t *testing.T, c redis.UniversalClient, s *state.Store) map[string]any {
	t.Helper()
	ctx := t.Context()
	out := make(map[string]any)
	for _, k := range keys(t, c, s) {
		if strings.Contains(k, "}:request:") {
			continue
		}
		var err error
		switch kind := c.Type(ctx, k).Val(); kind {
		case "hash":
			out[k], err = c.HGetAll(ctx, k).Result()
		case "list":
			out[k], err = c.LRange(ctx, k, 0, -1).Result()
		case "zset":
			out[k], err = c.ZRangeWithScores(ctx, k, 0, -1).Result()
		case "string":
			out[k], err = c.Get(ctx, k).Result()
		case "stream":
			out[k], err = c.XRange(ctx, k, "-", "+").Result()
		default:
			require.Fail(t, "a key without a type", "%s is %s", k, kind)
		}
		require.NoError(t, err)
	}
	return out
}

// due returns the members of a kind in all partitions, due or not.
func due(t *testing.T, s *state.Store, k state.Kind) []string {
	t.Helper()
	var out []string
	for n := range approvals.Partitions {
		all, err := s.AllDue(context.WithoutCancel(t.Context()), n, k)
		require.NoError(t, err)
		out = append(out, all...)
	}
	return out
}
