package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// readyz is what the bot answers to the probe.
func readyz(t *testing.T, b *bot) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	b.routes().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	return w.Code, w.Body.String()
}

// becomesReady waits until the bot works.
func becomesReady(t *testing.T, b *bot) {
	t.Helper()
	require.Eventually(t, func() bool { code, _ := readyz(t, b); return code == http.StatusOK }, time.Minute, 5*time.Millisecond)
}

// A setting of Redis that is made weaker while the bot runs is in the log once, in the
// metrics and in /readyz. The bot stays ready: all replicas have the same Redis.
func TestASettingOfRedisThatBecomesWeakerIsNoticed(t *testing.T) {
	t.Parallel()
	i, server := newInstallationOn(t)
	i.text += "metrics: {listen: \"127.0.0.1:9090\"}\n"
	b := i.bot()
	said := newOutput()
	i.reconciles(b)
	becomesReady(t, b)
	b.redis.log = config.NewLogger(said, "info")
	looks := func(weak string, ready string) {
		t.Helper()
		for range 2 {
			b.redis.look(t.Context())
		}
		_, text := scrape(t, b, false, "/metrics")
		require.Contains(t, text, "countersign_redis_settings_weak "+weak+"\n")
		code, body := readyz(t, b)
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, ready+"\n", body)
	}
	const weaker = "ready, but Redis keeps less than redis.durability requires; the log says why"
	looks("0", "ready")
	require.Empty(t, said.String())
	for name, c := range map[string]struct{ weak, good, says string }{
		"appendfsync":               {"no", "always", "appendfsync is no"},
		"appendonly":                {"no", "yes", "appendonly is no"},
		"no-appendfsync-on-rewrite": {"yes", "no", "no-appendfsync-on-rewrite is yes"},
		"maxmemory-policy":          {"allkeys-lru", "noeviction", "maxmemory-policy is allkeys-lru"},
	} {
		server.Set(name, c.weak)
		looks("1", weaker)
		require.Equal(t, 1, strings.Count(said.String(), c.says), "once")
		server.Set(name, c.good)
		looks("0", "ready")
	}
	require.Equal(t, 4, strings.Count(said.String(), "Redis keeps less than redis.durability requires"))
	require.Equal(t, 4, strings.Count(said.String(), "Redis keeps what redis.durability requires again"))
	server.Set("appendfsync", "everysec")
	server.Set("maxmemory-policy", "volatile-ttl")
	looks("2", weaker)
}

// A server that refuses CONFIG says the policy of eviction, and whether it has a log, in
// INFO. That the rest is unknown was said at the start.
func TestAServerThatHidesItsSettingsIsWatchedByInfo(t *testing.T) {
	t.Parallel()
	server := statetest.NewInstance(t)
	require.NoError(t, server.Client.Do(t.Context(), "ACL", "SETUSER", "bot", "on", ">hunter22", "~*", "&*", "+@all", "-config").Err())
	s, err := state.Open(t.Context(), state.Options{URL: "unix://bot:hunter22@" + server.Socket, Durability: state.None})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	said := newOutput()
	w := newRedisWatch(config.Redis{Durability: state.Fsync}, s.Servers, holdsAll, config.NewLogger(said, "info"))
	w.look(t.Context())
	require.Empty(t, said.String(), "the start has said it")
	server.Set("appendonly", "no")
	w.look(t.Context())
	w.look(t.Context())
	require.Zero(t, w.weak(), "some servers keep everything without such a log")
	require.Equal(t, 1, strings.Count(said.String(), "INFO says that its log is off"))
	server.Set("maxmemory-policy", "allkeys-lru")
	w.look(t.Context())
	require.Equal(t, 1, w.weak())
	require.Contains(t, said.String(), "maxmemory-policy is allkeys-lru")
}

// newInstallationOn is newInstallation with a real Redis in the place of miniredis.
func newInstallationOn(t *testing.T) (*installation, *statetest.Instance) {
	t.Helper()
	server := statetest.NewInstance(t)
	i := newInstallation(t, slacksim.Config{})
	i.env["REDIS_URL"] = "unix://" + server.Socket
	return i, server
}

// holdsAll is a Redis that holds what was stored.
func holdsAll(context.Context) error { return nil }

// A Redis that lost everything while the bot ran is said to be, until it holds that again
// or the bot is restarted. So is one that lost a fact, until the bot is restarted.
func TestARedisThatIsEmptiedIsNoticed(t *testing.T) {
	t.Parallel()
	i, server := newInstallationOn(t)
	b := i.bot()
	said := newOutput()
	i.reconciles(b)
	becomesReady(t, b)
	b.redis.log = config.NewLogger(said, "info")
	b.redis.look(t.Context())
	require.Zero(t, b.redis.weak())
	require.NoError(t, server.Client.FlushAll(t.Context()).Err())
	b.redis.look(t.Context())
	b.redis.look(t.Context())
	require.Equal(t, 1, b.redis.weak())
	code, body := readyz(t, b)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "Redis keeps less than redis.durability requires")
	require.Equal(t, 1, strings.Count(said.String(), "it was emptied, or is another one"), "once")
	// As another replica does that starts. This one is at work already.
	other, err := state.Open(t.Context(), state.Options{Client: server.Client, Prefix: b.store.Prefix()})
	require.NoError(t, err)
	require.NoError(t, other.LayOut(t.Context()))
	b.redis.look(t.Context())
	require.Zero(t, b.redis.weak())

	facts := b.store.Prefix() + ":{p07}:facts"
	fact, err := server.Client.XAdd(t.Context(), &redis.XAddArgs{Stream: facts, Values: []any{"e", "{}"}}).Result()
	require.NoError(t, err)
	b.redis.look(t.Context())
	require.Zero(t, b.redis.weak())
	require.NoError(t, server.Client.XDel(t.Context(), facts, fact).Err())
	b.redis.look(t.Context())
	b.redis.look(t.Context())
	require.Equal(t, 1, b.redis.weak())
	require.Equal(t, 1, strings.Count(said.String(), "an older copy was restored"), "once")
}

// The settings are looked at again and again, until the bot stops. A Redis that is away
// has said nothing about its settings.
func TestRedisIsLookedAtWhileTheBotRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		var away atomic.Bool
		w := newRedisWatch(config.Redis{Durability: state.Fsync}, func(context.Context) ([]state.Server, error) {
			looks.Add(1)
			if away.Load() {
				return nil, errors.New("away")
			}
			return []state.Server{{Version: "7.2.4", Told: true, AppendOnly: "no"}}, nil
		}, holdsAll, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { w.run(ctx); close(ended) }()
		time.Sleep(10*redisLooks - time.Second)
		require.GreaterOrEqual(t, looks.Load(), int64(7))
		require.LessOrEqual(t, looks.Load(), int64(14))
		require.Equal(t, 1, w.weak())
		away.Store(true)
		time.Sleep(2 * redisLooks)
		require.Equal(t, 1, w.weak(), "nothing was heard")
		stop()
		<-ended
	})
	none := newRedisWatch(config.Redis{Durability: state.None}, nil, nil, nil)
	none.run(t.Context())
	require.Zero(t, none.weak())
}

// A change of the layout takes nothing from what Redis keeps: the bot ends if it is not taken
// back, and says why. A layout of a newer version prevents a restart, which is not advised.
func TestALayoutIsNotTakenForASettingOfRedis(t *testing.T) {
	t.Parallel()
	i, server := newInstallationOn(t)
	b := i.bot()
	said := newOutput()
	b.redis.log = config.NewLogger(said, "info")
	layout := func(is string) {
		require.NoError(t, server.Client.Set(t.Context(), b.store.Prefix()+":{p00}:layout", is, 0).Err())
		b.redis.look(t.Context())
	}
	layout("64+")
	require.ErrorIs(t, b.store.Holds(t.Context()), state.ErrConverting)
	require.Empty(t, said.String())
	require.Zero(t, b.redis.weak())
	layout("64/3")
	require.Equal(t, 1, b.redis.weak())
	require.Contains(t, said.String(), `advice="use the version that made it, or a newer one"`)
}

// A bot ends once the layout of its store was changed by another process, which cannot find
// what this one stores: a new process takes the new layout.
func TestABotEndsWhenTheLayoutOfItsStoreIsChanged(t *testing.T) {
	t.Parallel()
	i, server := newInstallationOn(t)
	label := "countersign:{p00}:layout"
	require.NoError(t, server.Client.Set(t.Context(), label, "64", 0).Err())
	b := i.bot()
	require.NoError(t, b.store.Holds(t.Context()))
	changed := make(chan error, 1)
	require.NoError(t, server.Client.Set(t.Context(), label, "64/2", 0).Err())
	b.followLayout(t.Context(), changed)
	require.ErrorIs(t, <-changed, state.ErrLayoutChanged)
}
