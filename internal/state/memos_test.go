package state_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// The memos that there are beside each request are packed, and no others. Those that an
// older version stored are read as they are.
func packsMemos(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	prefix := prefix()
	s, ctx := openStoreAt(t, c, newClock().Now, prefix), t.Context()
	behind, ok := c.(*held)
	older := ok && behind.apart
	text := func(i int) []byte {
		return fmt.Appendf(nil, `{"n":%d,"calls":[%s{}]}`, i, strings.Repeat(`{"id":"call-1"},`, 50))
	}
	for surface, packed := range map[string]bool{"intake": !older, "intake-external": !older, "cards": !older, "user": false, "home": false} {
		id := approvals.NewID("run", 9, surface)
		stored := func() string {
			t.Helper()
			d, err := c.HGet(ctx, prefix+":{p09}:memo:"+surface+":"+id, "d").Result()
			require.NoError(t, err)
			return d
		}
		for i, store := range []func(data []byte, version int64) error{
			func(data []byte, version int64) error { return s.CommitMemo(ctx, id, surface, data, version, 0) },
			func(data []byte, version int64) error { return s.KeepMemo(ctx, id, surface, data, version) },
			func(data []byte, version int64) error {
				return s.ChangeMemo(ctx, agentrun.MemoChange{MemoRef: agentrun.MemoRef{ID: id, Surface: surface}, Version: version, Data: data})
			},
			func(data []byte, version int64) error {
				return s.RevertMemo(ctx, id, surface, text(2), data, version)
			},
		} {
			require.NoError(t, store(text(i), int64(i)))
			data, _, err := s.Memo(ctx, id, surface)
			require.NoError(t, err)
			require.Equal(t, string(text(i)), string(data))
			data, _, version, err := s.MemoParts(ctx, id, surface)
			require.NoError(t, err)
			require.Equal(t, string(text(i)), string(data))
			require.Equal(t, int64(i+1), version)
			require.Equal(t, packed, len(stored()) < len(data)/2, surface)
			require.Equal(t, !packed, stored() == string(data), surface)
		}
		require.NoError(t, c.HSet(ctx, prefix+":{p09}:memo:"+surface+":"+id, "d", text(7)).Err())
		data, _, err := s.Memo(ctx, id, surface)
		require.NoError(t, err)
		require.Equal(t, string(text(7)), string(data))
	}
}
