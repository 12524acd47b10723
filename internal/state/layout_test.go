package state_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
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
	require.ErrorContains(t, open(), `"128", not "64/2"`)
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
	require.NoError(t, layOut("resetchannels", "~countersign:*", "&countersign:*", "+@all", "-@dangerous", "+info", "+config|get"), "what the settings name")
	before := server.Client.Keys(ctx, "*").Val()
	for _, command := range []string{
		"eval", "evalsha", "exists", "hdel", "hget", "hset", "llen", "persist", "pexpire", "publish", "rpush", "unlink",
		"xadd", "zadd", "zrem", "zremrangebyrank", "zscore",
	} {
		require.ErrorContains(t, layOut("~*", "&*", "+@all", "-"+command), "redis does not permit "+strings.ToUpper(command), command)
	}
	require.Equal(t, before, server.Client.Keys(ctx, "*").Val(), "asking writes nothing")
	require.NoError(t, layOut("~*", "&*", "+@all"))
}

// Someone sets another prefix than the user of Redis has rights for, or takes a right away:
// the error says whose rights they are, and on what.
func TestAMissingRightNamesTheUserAndThePrefix(t *testing.T) {
	t.Parallel()
	server := statetest.NewInstance(t)
	ctx := t.Context()
	start := func(login, prefix string, durability state.Durability) error {
		s, err := state.Open(ctx, state.Options{URL: "redis://" + login + server.Addr, Prefix: prefix, Durability: durability})
		if err != nil {
			return err
		}
		defer func() { require.NoError(t, s.Close()) }()
		return s.LayOut(ctx)
	}
	rights := func(user string, rights ...any) {
		require.NoError(t, server.Client.Do(ctx, append([]any{"ACL", "SETUSER", user, "resetkeys", "resetchannels"}, rights...)...).Err())
	}
	const advice = `; give the user %s of Redis the rights that docs/settings.md names at redis.user, on keys and channels that begin with "%s:" (ACL SETUSER), or correct redis.prefix`
	rights("bot", "on", ">hunter2", "~countersign:*", "&countersign:*", "+@all", "-@dangerous", "+info", "+config|get")
	require.NoError(t, start("bot:hunter2@", "", state.None))
	for _, level := range []state.Durability{state.None, state.Fsync} {
		err := start("bot:hunter2@", "another", level)
		require.ErrorContains(t, err, "NOPERM")
		require.ErrorContains(t, err, fmt.Sprintf(advice, "bot", "another"))
		require.NotContains(t, err.Error(), "hunter2")
	}
	for _, command := range []string{"ping", "get", "hset"} {
		rights("bot", "~countersign:*", "&countersign:*", "-"+command)
		require.ErrorContains(t, start("bot:hunter2@", "", state.None), fmt.Sprintf(advice, "bot", "countersign"), command)
		rights("bot", "+"+command)
	}
	rights("default", "~countersign:*", "&countersign:*")
	err := start("hunter2@", "another", state.None) // a password in the wrong place, which is not sent
	require.ErrorContains(t, err, fmt.Sprintf(advice, "default", "another"))
	require.NotContains(t, err.Error(), "hunter2")
}

func TestARedisWithoutACommandOfAChangeIsRefused(t *testing.T) {
	t.Parallel()
	server := statetest.NewInstance(t, "--rename-command", "UNLINK", "REMOVED")
	s, err := state.Open(t.Context(), state.Options{Client: server.Client, Durability: state.None})
	require.NoError(t, err)
	require.ErrorContains(t, s.LayOut(t.Context()), "redis does not permit UNLINK to the bot: ERR unknown command")
	require.NotContains(t, s.LayOut(t.Context()).Error(), "redis.user", "no right of a user is missing")
}

// A permission that is taken away while the bot runs: a change is stored wholly or not at all,
// and the bot is not ready until the permission is given back.
func TestAChangeThatIsNotPermittedAnyMoreStoresNothing(t *testing.T) {
	t.Parallel()
	server := statetest.NewInstance(t)
	ctx := t.Context()
	user := func(rights ...any) {
		require.NoError(t, server.Client.Do(ctx, append([]any{"ACL", "SETUSER", "bot"}, rights...)...).Err())
	}
	user("on", ">secret", "~*", "&*", "+@all")
	k := newClock()
	s, err := state.Open(ctx, state.Options{URL: "redis://bot:secret@" + server.Addr, Durability: state.None, Now: k.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.LayOut(ctx))
	for n, rights := range [][2]string{
		{"-exists", "+exists"},
		{"-hset", "+hset"},
		{"-publish", "+publish"},
		{"resetchannels", "allchannels"},
		{"-set", "+set"},
		{"-xadd", "+xadd"},
		{"-zadd", "+zadd"},
		{"-zrem", "+zrem"},
	} {
		open := openBatch(t, ids{n}.batch("b"), ids{n}.run("r"), 1, time.Time{})
		opens := approvals.BatchCommit{Request: "open", Batch: open.Batch, Events: open.Events, Args: open.Args}
		refused := 0
		for _, change := range []approvals.BatchCommit{opens, decide(t, open.Batch, approvals.Approve, "approve")} {
			before := dump(t, server.Client, s)
			user(rights[0])
			err := s.CommitBatch(ctx, change)
			if err == nil {
				user(rights[1])
				continue
			}
			refused++
			require.ErrorContains(t, err, "NOPERM", rights[0])
			require.Equal(t, before, dump(t, server.Client, s), "without %s", rights[1])
			k.Advance(time.Minute)
			err = s.Writable(ctx)
			require.Error(t, err, rights[0])
			require.Contains(t, state.Refusal(err), "redis does not permit the bot a command", rights[0])

			user(rights[1])
			k.Advance(time.Minute)
			require.NoError(t, s.Writable(ctx), rights[0])
			require.NoError(t, s.CommitBatch(ctx, change), rights[0])
			require.False(t, score(t, s, state.Cards, string(change.Batch.ID)).IsZero(), "its card is due")
		}
		require.Positive(t, refused, "none of the changes needs %s", rights[1])
	}
}

// The same is known of a Redis in which nothing is stored yet, and asking stores nothing.
func TestPermissionsAreKnownBeforeAnythingIsStored(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]redis.UniversalClient{"redis": statetest.Redis(t), "cluster": statetest.Cluster(t)} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			own := func(rights ...any) redis.UniversalClient {
				words := append([]any{"ACL", "SETUSER", "bot", "reset", "on", ">secret"}, rights...)
				if cluster, ok := server.(*redis.ClusterClient); ok {
					require.NoError(t, cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return c.Do(ctx, words...).Err() }))
					o := *cluster.Options()
					o.Username, o.Password = "bot", "secret"
					return redis.NewClusterClient(&o)
				}
				single, ok := server.(*redis.Client)
				require.True(t, ok)
				require.NoError(t, single.Do(ctx, words...).Err())
				o := *single.Options()
				o.Username, o.Password = "bot", "secret"
				return redis.NewClient(&o)
			}
			ask := func(rights ...any) (bool, error) {
				c := own(rights...)
				defer func() { require.NoError(t, c.Close()) }()
				return state.Permissions(ctx, c, "")
			}
			permitted := func(rights ...any) {
				t.Helper()
				unknown, err := ask(rights...)
				require.NoError(t, err)
				require.False(t, unknown)
			}
			// A client of a cluster asks for its slots.
			permitted("resetchannels", "~countersign:*", "&countersign:*", "+@all", "-@dangerous", "+info", "+config|get", "+cluster")
			permitted("~*", "&*", "+@all")
			for _, command := range []string{
				"eval", "evalsha", "exists", "get", "hdel", "hget", "hmget", "hset", "llen", "persist", "pexpire", "publish", "rpush", "set", "unlink",
				"xadd", "zadd", "zrange", "zrangebyscore", "zrem", "zremrangebyrank", "zscore",
			} {
				_, err := ask("~*", "&*", "+@all", "-"+command)
				require.ErrorContains(t, err, "redis does not permit "+strings.ToUpper(command), command)
			}
			_, err := ask("~other:*", "&*", "+@all")
			require.ErrorContains(t, err, "redis does not permit EXISTS")
			_, err = ask("~*", "&other:*", "resetchannels", "+@all")
			require.ErrorContains(t, err, "redis does not permit PUBLISH")
			for _, command := range []string{"multi", "discard"} {
				unknown, err := ask("~*", "&*", "+@all", "-"+command)
				require.NoError(t, err)
				require.True(t, unknown, command)
			}
			require.Empty(t, server.Keys(ctx, "*").Val())
		})
	}
}
