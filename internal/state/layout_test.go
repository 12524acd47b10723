package state_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// A program that counts other partitions would leave work in some of them for ever.
func TestAStoreWithOtherPartitionsIsRefused(t *testing.T) {
	c := statetest.Redis(t)
	s := openStore(t, c, newClock().Now)
	require.Empty(t, keys(t, c, s), "opening a store writes nothing")
	require.NoError(t, s.LayOut(t.Context()))
	require.NoError(t, s.LayOut(t.Context()))
	open := func() error {
		again, err := state.Open(t.Context(), state.Options{Client: c, Prefix: s.Prefix(), Once: true})
		if err == nil {
			require.NoError(t, again.Close())
		}
		return err
	}
	require.NoError(t, open())
	require.NoError(t, c.Set(t.Context(), s.Prefix()+":{p00}:layout", "128", 0).Err())
	require.ErrorIs(t, open(), state.ErrLayout)
	require.ErrorContains(t, open(), `"128", not 64`)
	require.ErrorIs(t, s.LayOut(t.Context()), state.ErrLayout)
}

// Redis refuses a command of a script when it comes to it, and keeps what the script wrote
// before: a request would be stored that no list and no card has.
func TestAUserWhoMayNotRunEveryCommandOfAChangeIsRefused(t *testing.T) {
	t.Parallel()
	server := statetest.NewInstance(t)
	ctx := t.Context()
	layOut := func(rights ...any) error {
		words := append([]any{"ACL", "SETUSER", "bot", "reset", "on", ">secret"}, rights...)
		require.NoError(t, server.Client.Do(ctx, words...).Err())
		s, err := state.Open(ctx, state.Options{URL: "redis://bot:secret@" + server.Addr, Durability: state.None})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		return s.LayOut(ctx)
	}
	require.NoError(t, layOut("~countersign:*", "&countersign:*", "+@all", "-@dangerous", "+info", "+config|get"), "what the settings name")
	before := server.Client.Keys(ctx, "*").Val()
	for _, command := range []string{
		"exists", "hdel", "hget", "hset", "llen", "persist", "pexpire", "publish", "rpush", "unlink",
		"xadd", "zadd", "zrem", "zremrangebyrank", "zscore",
	} {
		require.ErrorContains(t, layOut("~*", "&*", "+@all", "-"+command), "redis does not permit "+strings.ToUpper(command), command)
	}
	require.Equal(t, before, server.Client.Keys(ctx, "*").Val(), "asking writes nothing")
	require.NoError(t, layOut("~*", "&*", "+@all"))
}
