package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// startsOn starts a bot on the server as `bot serve` does, with this part of the
// configuration, and returns what it logs and why it did not start.
func startsOn(t *testing.T, url, redis string) (logged string, err error) {
	t.Helper()
	i := newInstallation(t, slacksim.Config{})
	i.env["REDIS_URL"] = url
	i.replace("redis: {durability: fsync}\n", redis)
	i.o.Online = false
	i.check() // writes the file
	c, err := config.Read(i.o.Path)
	require.NoError(t, err)
	if err := c.Check(); err != nil {
		return "", err
	}
	e, err := config.ReadEnvironment(i.o.Environ)
	require.NoError(t, err)
	said := newOutput()
	b, err := newBot(t.Context(), c, e, nil, config.NewLogger(said, "info"), func(string) {})
	if b != nil {
		require.NoError(t, b.close(context.WithoutCancel(t.Context())))
	}
	return said.String(), err
}

// The start compares what the server is set to with what the configuration
// promises, and `bot check` says the same.
func TestTheStartRefusesARedisThatIsWeakerThanTheSetting(t *testing.T) {
	t.Parallel()
	const unset, fsync, everysec, replicated = "", "redis: {durability: fsync}\n", "redis: {durability: everysec}\n", "redis: {durability: replicated, replicas: 1}\n"
	server := statetest.NewInstance(t)
	server.Replica()
	good := map[string]string{
		"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no", "maxmemory-policy": "noeviction",
	}
	for name, c := range map[string]struct {
		setting, value string // of the server
		redis          string // of the configuration
		refused        string // empty: it starts
		says           string // and then logs
	}{
		"always, not said":            {"appendfsync", "always", unset, "", "redis.durability=fsync"},
		"always, fsync":               {"appendfsync", "always", fsync, "", "redis.durability=fsync"},
		"always, everysec":            {"appendfsync", "always", everysec, "", "may lose up to two seconds"},
		"always, replicated":          {"appendfsync", "always", replicated, "", "redis.durability=replicated replicas=1"},
		"everysec, not said":          {"appendfsync", "everysec", unset, "set appendonly yes and appendfsync always (CONFIG SET, then CONFIG REWRITE), or accept that loss with redis.durability: everysec", ""},
		"everysec, fsync":             {"appendfsync", "everysec", fsync, "redis.durability fsync needs always", ""},
		"everysec, everysec":          {"appendfsync", "everysec", everysec, "", "may lose up to two seconds of acknowledged decisions when the machine of Redis fails, and a call that ran in them may run again"},
		"everysec, replicated":        {"appendfsync", "everysec", replicated, "redis.durability replicated needs always", ""},
		"no fsync, everysec":          {"appendfsync", "no", everysec, "appendfsync is no", ""},
		"no fsync on rewrite":         {"no-appendfsync-on-rewrite", "yes", fsync, "no-appendfsync-on-rewrite is yes", ""},
		"no log":                      {"appendonly", "no", unset, "appendonly is no", ""},
		"no log, everysec":            {"appendonly", "no", everysec, "appendonly is no", ""},
		"eviction":                    {"maxmemory-policy", "allkeys-lru", fsync, "maxmemory-policy is allkeys-lru", ""},
		"eviction of what has an end": {"maxmemory-policy", "volatile-ttl", fsync, "maxmemory-policy is volatile-ttl", ""},
		"none":                        {"appendfsync", "always", "redis: {durability: none}\n", "none is for the demo and for tests", ""},
		"an unknown level":            {"appendfsync", "always", "redis: {durability: mostly}\n", `is "mostly", must be fsync, replicated or everysec`, ""},
		"replicated by nobody":        {"appendfsync", "always", "redis: {durability: replicated}\n", "redis.replicas: is missing", ""},
		"replicas for nothing":        {"appendfsync", "always", "redis: {replicas: 1}\n", "nothing would wait for them", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server.Set(c.setting, c.value)
			defer server.Set(c.setting, good[c.setting])
			logged, err := startsOn(t, "unix://"+server.Socket, c.redis)
			i := newInstallation(t, slacksim.Config{})
			i.env["REDIS_URL"] = "unix://" + server.Socket
			i.replace("redis: {durability: fsync}\n", c.redis)
			found := i.check()
			if c.refused == "" {
				require.NoError(t, err)
				require.Contains(t, logged, c.says)
				require.NotContains(t, found, "problem  ")
				require.Equal(t, c.redis == everysec, strings.Contains(found, "may lose up to two seconds"))
				return
			}
			require.ErrorContains(t, err, c.refused)
			require.Contains(t, found, c.refused)
		})
	}
}

// What can end by itself does not end a bot that starts, as it does not end one that runs: a
// failover may be under way, or a replica be moved to another machine together with the bot.
func TestTheStartWaitsForAStateOfRedisThatPasses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		redis string
		on    func(server, replica *statetest.Instance) *statetest.Instance
		says  string
		mend  func(server, replica *statetest.Instance)
	}{
		"a replica": {
			"redis: {durability: fsync}\n", func(_, replica *statetest.Instance) *statetest.Instance { return replica },
			"is a replica, which takes no writes", func(_, replica *statetest.Instance) { replica.Promote() },
		},
		"too few replicas": {
			"redis: {durability: replicated, replicas: 2}\n", func(server, _ *statetest.Instance) *statetest.Instance { return server },
			"has only 1 replica, but redis.replicas asks for 2", func(server, _ *statetest.Instance) { server.Replica() },
		},
		"no replica for a write": {
			"redis: {durability: fsync}\n", func(server, _ *statetest.Instance) *statetest.Instance {
				server.Set("min-replicas-to-write", "2")
				return server
			},
			"NOREPLICAS", func(server, _ *statetest.Instance) { server.Set("min-replicas-to-write", "0") },
		},
		"a full server": {
			"redis: {durability: fsync}\n", func(server, _ *statetest.Instance) *statetest.Instance {
				server.Set("maxmemory", "1")
				return server
			},
			"OOM", func(server, _ *statetest.Instance) { server.Set("maxmemory", "0") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := statetest.NewInstance(t)
			replica := server.Replica()
			i := newInstallation(t, slacksim.Config{})
			i.env["REDIS_URL"] = "unix://" + c.on(server, replica).Socket
			i.env["COUNTERSIGN_ADDR"] = statetest.FreeAddr(t)
			i.replace("redis: {durability: fsync}\n", c.redis)
			i.check()
			p, log := i.serve()
			log.await(t, `Redis cannot be used yet; trying again until it can" wait=1s err=.*`+c.says)
			c.mend(server, replica)
			log.await(t, "msg=listening")
			require.NoError(t, p.Process.Signal(syscall.SIGTERM))
			require.NoError(t, p.Wait())
		})
	}
}

// A server that does not tell its settings is taken at the operator's word, and
// the start says so.
func TestTheOperatorStatesWhatTheServerDoesNotTell(t *testing.T) {
	t.Parallel()
	server := statetest.NewInstance(t)
	require.NoError(t, server.Client.Do(t.Context(), "ACL", "SETUSER", "bot", "on", ">hunter22", "~*", "&*", "+@all", "-config").Err())
	url := "unix://bot:hunter22@" + server.Socket
	_, err := startsOn(t, url, "")
	require.ErrorContains(t, err, "redis.durability is not set")
	require.ErrorContains(t, err, "write redis.durability: fsync")
	for _, level := range []state.Durability{state.Fsync, state.Everysec} {
		logged, err := startsOn(t, url, fmt.Sprintf("redis: {durability: %s}\n", level))
		require.NoError(t, err)
		require.Contains(t, logged, "could not check Redis")
		require.Contains(t, logged, "what redis.durability "+string(level)+" promises")
	}
}

// What the start says about Redis is not said by each command of an operator.
func TestACommandForAnOperatorLogsNothingAboutARedisThatIsFine(t *testing.T) {
	t.Parallel()
	server := statetest.NewInstance(t)
	server.Set("appendfsync", "everysec")
	i := newInstallation(t, slacksim.Config{})
	i.env["REDIS_URL"] = "unix://" + server.Socket
	i.replace("redis: {durability: fsync}\n", "redis: {durability: everysec}\n")
	i.o.Online = false
	i.check() // writes the file
	store, err := state.Open(t.Context(), state.Options{Client: server.Client})
	require.NoError(t, err)
	require.NoError(t, store.LayOut(t.Context())) // as the start of a bot does
	var out, logged strings.Builder
	require.NoError(t, run(t.Context(), []string{"admin", "list", "--config", i.o.Path}, i.o.Environ, &out, &logged))
	require.Equal(t, "0 requests wait\n", out.String())
	require.Empty(t, logged.String())
}

// What `/countersign status` says of the store is whether it takes a change, and
// not only whether it answers.
func TestStatusSaysThatNothingCanBeStored(t *testing.T) {
	t.Parallel()
	i, server := newInstallationOn(t)
	b := i.bot()
	ctx := t.Context()
	require.NoError(t, b.health().Store(ctx))
	server.Set("maxmemory", "1")
	require.Error(t, b.store.CommitMemo(ctx, "group-01-x", "people", []byte("x"), 0, 0))
	require.NoError(t, b.store.Ping(ctx))
	require.Error(t, b.health().Store(ctx))
	server.Set("maxmemory", "0")
	require.Eventually(t, func() bool { return b.health().Store(ctx) == nil }, time.Minute, doctor.Timeout/100)
}

// A process that can store nothing is given nothing, says why, and is ready
// again by itself.
func TestABotThatCanStoreNothingIsNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	root := w.sim.ask(cleanUp, "")
	card := w.sim.await(bob, root, "the card", says("2023-q1-sales.txt", "delete_file"))
	ready := func(status int, body string) {
		t.Helper()
		require.Eventually(t, func() bool {
			gotStatus, gotBody := w.get("/readyz")
			return gotStatus == status && gotBody == body
		}, time.Minute, doctor.Timeout/100, "%d %s", status, body)
	}
	ready(http.StatusOK, "ready")
	w.server.Set("maxmemory", "1")
	require.NotEmpty(t, w.sim.click(bob, card, "2023-q1", "Approve").VisibleError, "an unstored click is not acknowledged")
	ready(http.StatusServiceUnavailable, "redis is full (maxmemory)")
	w.server.Set("maxmemory", "0")
	ready(http.StatusOK, "ready")
	require.Empty(t, w.sim.click(bob, card, "2023-q1", "Approve").VisibleError)
}

// What is in a Redis can be looked at when that is needed most: while it takes no changes.
func TestWhatIsStoredCanBeLookedAtInARedisThatTakesNoChanges(t *testing.T) {
	t.Parallel()
	i, server := newInstallationOn(t)
	i.o.Online = false
	i.check() // writes the file
	store, err := state.Open(t.Context(), state.Options{Client: server.Client})
	require.NoError(t, err)
	require.NoError(t, store.LayOut(t.Context())) // as the start of a bot does
	admin := func(args ...string) (said string, err error) {
		var out, logged strings.Builder
		err = run(t.Context(), append(append([]string{"admin"}, args...), "--config", i.o.Path), i.o.Environ, &out, &logged)
		require.Empty(t, logged.String())
		return out.String(), err
	}
	for name, c := range map[string]struct {
		setting, bad, good string
		refused            string
	}{
		"full":     {"maxmemory", "1", "0", "redis is full (maxmemory): OOM"},
		"it loses": {"appendfsync", "no", "always", "appendfsync is no"},
	} {
		t.Run(name, func(t *testing.T) {
			server.Set(c.setting, c.bad)
			defer server.Set(c.setting, c.good)
			said, err := admin("list")
			require.NoError(t, err)
			require.Equal(t, "0 requests wait\n", said)
			_, err = admin("redraw")
			require.ErrorContains(t, err, c.refused)
		})
	}
}

// failing is a hook that has the nth round trip fail.
type failing struct {
	n    int
	with error
	sent atomic.Int64
}

func (f *failing) pass(_ context.Context, cmds []redis.Cmder, send func() error) error {
	if f.sent.Add(1) == int64(f.n) {
		return statetest.Fail(cmds, f.with)
	}
	return send()
}

// redisError is what a server answers.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// A bot that starts waits for Redis, whichever of its questions is not answered.
func TestTheStartWaitsForARedisThatGoesAwayInBetween(t *testing.T) {
	server := statetest.NewInstance(t)
	unset, fsync := config.Config{}, config.Config{Redis: config.Redis{Durability: state.Fsync}}
	open := func(c config.Config, f *failing) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, _, err := openStore(ctx, c, state.Options{
			URL: "redis://" + server.Addr, Hooks: []redis.Hook{statetest.Hook(f.pass)}, Now: time.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		}, time.Minute)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	whole := &failing{}
	require.NoError(t, open(unset, whole))
	require.Greater(t, whole.sent.Load(), int64(5))
	var starts errgroup.Group // at the same time, since each waits
	for n := 1; n <= int(whole.sent.Load()); n++ {
		for _, with := range []error{redisError("LOADING Redis is loading the dataset in memory"), redisError("READONLY You can't write against a read only replica."), io.EOF} {
			for name, c := range map[string]config.Config{"unset": unset, "fsync": fsync} {
				starts.Go(func() error {
					if err := open(c, &failing{n: n, with: with}); err != nil {
						return fmt.Errorf("%s, command %d after %w: %w", name, n, with, err)
					}
					return nil
				})
			}
		}
		starts.Go(func() error {
			err := open(fsync, &failing{n: n, with: redisError("NOAUTH Authentication required.")})
			if err != nil && !strings.Contains(err.Error(), "NOAUTH") { // some answers are only advice
				return fmt.Errorf("command %d: %w", n, err)
			}
			return nil
		})
	}
	require.NoError(t, starts.Wait())
}
