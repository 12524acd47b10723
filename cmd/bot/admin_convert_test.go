package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// An operator converts the store of an older version, on which a request waits: first while
// the bot runs, which is refused, and then while it does not.
func TestAnOperatorConvertsTheStoreOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.admin("convert")
	require.EqualError(t, err, "there is no store to convert: a bot that starts on this Redis makes a new one")
	require.NoError(t, w.redis.Set(t.Context(), "countersign:{p00}:layout", "64", 0).Err())
	first := w.start()
	first.out.await(t, "the store has the layout of older versions")
	root := w.sim.ask(cleanUp, "")
	w.sim.await(bob, root, "the card", says("2023-q1-sales.txt", "2023-q2-sales.txt", "delete_file"))
	_, err = w.admin("convert")
	require.ErrorIs(t, err, state.ErrInUse)
	first.kill()
	var out string
	statetest.Await(t, "the end of the bot", func() bool {
		out, err = w.admin("convert")
		return !errors.Is(err, state.ErrInUse)
	})
	require.NoError(t, err)
	require.Regexp(t, `^the store has the layout of this version now: \d+ entries were moved\n$`, out)
	out, err = w.admin("convert")
	require.NoError(t, err)
	require.Equal(t, "the store has the layout of this version\n", out)

	second := w.start()
	w.sim.approves(root)
	w.sim.await(bob, root, "the answer", says("reports/2023-q2-sales.txt: deleted"))
	require.NotContains(t, second.out.String(), "older versions")
	keys, err := w.redis.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		require.False(t, strings.Contains(key, "}:due:") || strings.Contains(key, "}:list:"), key)
	}
}
