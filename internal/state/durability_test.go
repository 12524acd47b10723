package state_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

func openAs(t *testing.T, c redis.UniversalClient, d state.Durability, replicas int) *state.Store {
	t.Helper()
	s, err := state.Open(t.Context(), state.Options{Client: c, Durability: d, Replicas: replicas})
	require.NoError(t, err)
	return s
}

// The whole suite behind the barrier: a primary and a replica, both real.
func TestOnReplicatedRedis(t *testing.T) {
	t.Parallel()
	suite(t, func(tb testing.TB) redis.UniversalClient {
		tb.Helper()
		primary := statetest.NewInstance(tb)
		primary.Replica()
		return &held{UniversalClient: primary.Client, durability: state.Replicated, replicas: 1}
	})
}

// In a cluster a question goes to the server of the commit, though it has no
// key, also after a reply or a request was lost.
func TestTheBarrierInACluster(t *testing.T) {
	t.Parallel()
	c := statetest.Cluster(t)
	cluster, ok := c.(*redis.ClusterClient)
	require.True(t, ok)
	stop := statetest.FollowCluster(t, cluster)
	harmed, armed := loseFirst(t, c)
	s := openAs(t, harmed, state.Replicated, 1)
	acks := acks(t, s)
	goOn := stop()
	for _, a := range acks {
		require.ErrorIs(t, a.Make(), approvals.ErrNotDurable, a.Name)
	}
	armed.Store(true)
	require.ErrorIs(t, acks[0].Make(), approvals.ErrNotDurable, "with its reply lost")
	require.False(t, armed.Load(), "no reply was lost")
	goOn()
	for _, a := range acks {
		armed.Store(true)
		require.NoError(t, a.Make(), a.Name)
	}
}

// The client of a cluster finds another way for a change whose reply was lost. The server
// that it reaches then may die at once, and one that lacks the change take its place: what
// is asked there about something else is no answer about the change.
func TestAChangeIsNotConfirmedByAServerThatLacksIt(t *testing.T) {
	t.Parallel()
	c := statetest.Cluster(t)
	cluster, ok := c.(*redis.ClusterClient)
	require.True(t, ok)
	statetest.FollowCluster(t, cluster)
	harmed, armed := loseFirst(t, c)
	s := openAs(t, harmed, state.Replicated, 1)
	decision := acks(t, s)[0]
	key := s.Prefix() + ":{p04}:batch:" + string(ids{4}.batch("b"))
	harmed.AddHook(statetest.Hook(func(ctx context.Context, cmds []redis.Cmder, send func() error) error {
		err := send()
		if len(cmds) == 1 && strings.HasPrefix(cmds[0].Name(), "eval") { // it is sent again by itself, and not in a pipeline
			require.NoError(t, c.Del(ctx, key).Err())
		}
		return err
	}))
	armed.Store(true)
	require.ErrorIs(t, decision.Make(), approvals.ErrConflict)
	require.False(t, armed.Load(), "no reply was lost")
}

// With too few replicas nothing is acknowledged, and everything that was tried
// may be tried again: it counts once.
func TestWithoutItsReplicaNothingIsAcknowledged(t *testing.T) {
	t.Parallel()
	primary := statetest.NewInstance(t)
	replica := primary.Replica()
	s := openAs(t, primary.Client, state.Replicated, 1)
	acks := acks(t, s)
	goOn := replica.Stop()
	for _, a := range acks {
		err := a.Make()
		require.ErrorIs(t, err, approvals.ErrNotDurable, a.Name)
		var later interface{ RetryAfter() time.Duration }
		require.ErrorAs(t, err, &later, "the due index counts no failure")
	}
	for n := range approvals.Partitions {
		require.NoError(t, s.CommitMemo(t.Context(), approvals.NewID("group", n, "x"), "people", []byte("x"), 0, 0), "nobody is told of it")
	}
	require.ErrorIs(t, s.Writable(t.Context()), approvals.ErrNotDurable)
	goOn()
	replica.Follows()
	for _, a := range acks {
		require.NoError(t, a.Make(), a.Name)
	}
}

// What cannot be asked of the servers on this machine, of one with a script.
// Every acknowledgment waits for the answer that its level needs, in the
// pipeline of its commit.
func TestEveryAcknowledgmentAsksForItsLevel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		level    state.Durability
		replicas int
		old      bool
		asks     []string
		enough   [2]int // the least that WAITAOF and WAIT must say
		few      [][2]int
	}{
		"fsync":                  {state.Fsync, 0, false, []string{"WAITAOF 1 0"}, [2]int{1, 0}, [][2]int{{0, 2}}},
		"replicated":             {state.Replicated, 2, false, []string{"WAITAOF 1 0", "WAIT 2"}, [2]int{1, 2}, [][2]int{{1, 1}, {0, 2}}},
		"replicated, before 7.2": {state.Replicated, 2, true, []string{"WAIT 2"}, [2]int{0, 2}, [][2]int{{0, 1}}},
		"fsync, before 7.2":      {state.Fsync, 0, true, nil, [2]int{0, 0}, nil},
		"everysec":               {state.Everysec, 0, false, nil, [2]int{0, 0}, nil},
		"none":                   {state.None, 0, false, nil, [2]int{0, 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, client := statetest.NewWitness(t)
			if c.old {
				w.Old()
			}
			s := openAs(t, client, c.level, c.replicas)
			acks := acks(t, s)
			for _, few := range c.few {
				w.Says(few[0], few[1])
				for _, a := range acks {
					require.ErrorIs(t, a.Make(), approvals.ErrNotDurable, "%s with %v", a.Name, few)
				}
			}
			w.Says(c.enough[0], c.enough[1])
			w.Asked()
			for _, a := range acks {
				require.NoError(t, a.Make(), a.Name)
				require.Equal(t, c.asks, w.Asked(), a.Name)
			}
		})
	}
}

// loseFirst makes the first script's reply get lost, once it is armed, so that
// the client sends its pipeline again on another connection.
func loseFirst(t *testing.T, c redis.UniversalClient) (redis.UniversalClient, *atomic.Bool) {
	t.Helper()
	var armed atomic.Bool
	return statetest.Harmed(t, c, func(sent []byte) statetest.Fault {
		if bytes.Contains(sent, []byte("evalsha")) && armed.CompareAndSwap(true, false) {
			return statetest.LostReply
		}
		return statetest.None
	}), &armed
}

// The connection on which a commit is sent again has written nothing of it: what
// it asks must be about something all the same.
func TestARepeatedCommitClaimsNoMoreThanTheFirst(t *testing.T) {
	t.Parallel()
	try := func(tune func(*state.Store)) (first, second error) {
		w, client := statetest.NewWitness(t)
		harmed, armed := loseFirst(t, client)
		s := openAs(t, harmed, state.Replicated, 1)
		tune(s)
		acks := acks(t, s)
		w.Says(1, 0) // the replica is gone
		armed.Store(true)
		first = acks[0].Make()
		require.False(t, armed.Load(), "no reply was lost")
		w.Says(1, 1)
		return first, acks[0].Make()
	}
	first, second := try(func(*state.Store) {})
	require.ErrorIs(t, first, approvals.ErrNotDurable)
	require.NoError(t, second)

	first, _ = try((*state.Store).RepeatInSilence)
	require.NoError(t, first, "with a script that repeats in silence this test would notice")
}

// The same on real servers.
func TestALostReplyAndALostReplica(t *testing.T) {
	t.Parallel()
	primary := statetest.NewInstance(t)
	replica := primary.Replica()
	harmed, armed := loseFirst(t, primary.Client)
	s := openAs(t, harmed, state.Replicated, 1)
	acks := acks(t, s)
	goOn := replica.Stop()
	armed.Store(true)
	require.ErrorIs(t, acks[0].Make(), approvals.ErrNotDurable)
	require.False(t, armed.Load(), "no reply was lost")
	goOn()
	replica.Follows()
	require.NoError(t, acks[0].Make())
}

func TestOpenRefusesWhatTheServerCannotKeep(t *testing.T) {
	t.Parallel()
	lonely := statetest.NewInstance(t)
	for name, o := range map[string]state.Options{
		"no replica there":      {Client: lonely.Client, Durability: state.Replicated, Replicas: 1},
		"no number of replicas": {Client: lonely.Client, Durability: state.Replicated},
		"an unknown level":      {Client: lonely.Client, Durability: "certainly"},
	} {
		_, err := state.Open(t.Context(), o)
		require.Error(t, err, name)
	}
	w, client := statetest.NewWitness(t)
	_, err := state.Open(t.Context(), state.Options{Client: client, Durability: state.Fsync})
	require.NoError(t, err)
	w.Says(0, 0)
	_, err = state.Open(t.Context(), state.Options{Client: client, Durability: state.Fsync})
	require.ErrorIs(t, err, approvals.ErrNotDurable, "it knows WAITAOF and does not sync")
	require.True(t, state.Passes(err))
	client.AddHook(statetest.Hook(noLog))
	_, err = state.Open(t.Context(), state.Options{Client: client, Durability: state.Fsync})
	require.ErrorIs(t, err, approvals.ErrNotDurable)
	require.False(t, state.Passes(err), "a setting does not change by itself")
}

// noLog answers WAITAOF as a server with appendonly no does.
func noLog(_ context.Context, cmds []redis.Cmder, send func() error) error {
	err := send()
	for _, cmd := range cmds {
		if cmd.Name() == "waitaof" {
			cmd.SetErr(errors.New("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled"))
		}
	}
	return err
}

// Writable follows what becomes of changes, and recovers by itself.
func TestWritableKnowsWhetherChangesGoThrough(t *testing.T) {
	t.Parallel()
	primary := statetest.NewInstance(t)
	other := statetest.NewInstance(t)
	now := time.Now()
	s, err := state.Open(t.Context(), state.Options{Client: primary.Client, Now: func() time.Time { return now }})
	require.NoError(t, err)
	ctx := t.Context()
	require.NoError(t, s.Writable(ctx))

	change := func() error {
		now = now.Add(time.Second)
		return s.CommitMemo(ctx, approvals.NewID("group", 3, now.Format("150405")), "people", []byte("x"), 0, 0)
	}
	require.NoError(t, change())
	for _, harm := range []struct {
		words      string
		do, undone func()
	}{
		{
			"redis is full (maxmemory)",
			func() { primary.Set("maxmemory", "1") }, func() { primary.Set("maxmemory", "0") },
		},
		{
			"redis is a read-only replica",
			func() { primary.Follow(other) },
			primary.Promote,
		},
		{
			"redis misses replicas (min-replicas-to-write)",
			func() { primary.Set("min-replicas-to-write", "1") }, func() { primary.Set("min-replicas-to-write", "0") },
		},
	} {
		harm.do()
		require.NoError(t, s.Writable(ctx), "nothing has been tried for less than some seconds")
		require.Error(t, change())
		err := s.Writable(ctx)
		require.Error(t, err, harm.words)
		require.Equal(t, harm.words, state.Refusal(err))
		harm.undone()
		require.Error(t, s.Writable(ctx), "it is asked once a second")
		now = now.Add(time.Second)
		require.NoError(t, s.Writable(ctx), "and needs no change to recover")
	}

	primary.Set("maxmemory", "1")
	now = now.Add(time.Minute)
	require.Error(t, s.Writable(ctx), "nobody has changed anything for long")
	require.Equal(t, "redis takes no changes", state.Refusal(errors.New("x")))
	primary.Set("maxmemory", "0")
	for said, words := range map[string]string{
		"LOADING Redis is loading the dataset in memory":                                         "redis is loading its data",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":       "redis is a replica that has lost its master",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.": "redis is busy with a script that takes too long",
		"BUSYGROUP Consumer Group name already exists":                                           "redis takes no changes",
		// Of a script, as Redis 7.0 says it, and as 7.2 and Valkey do.
		"ERR The user executing the script can't run this command or subcommand":          "redis does not permit the bot a command that it needs (ACL); the log says which",
		"ERR ACL failure in script: User bot has no permissions to run the 'set' command": "redis does not permit the bot a command that it needs (ACL); the log says which",
	} {
		err := primary.Client.Eval(ctx, "return redis.error_reply(ARGV[1])", nil, said).Err()
		require.Equal(t, words, state.Refusal(err), said)
	}
}
