// Package statetest opens the servers that tests of the store run on: miniredis,
// a real redis-server, a replica, a cluster, a machine that can lose power, and
// a client whose connections fail as a test decides.
package statetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
)

// startup is how long a server may take until it answers, however busy the machine is. A
// Sentinel that was given no time for two seconds does nothing for half a minute.
const startup = 3 * time.Minute

const missing = "These tests run against a real Redis. Install it (apt-get install redis-server, " +
	"brew install redis) so that redis-server is in the PATH."

// Miniredis returns a client of an in-process server that ends with the test.
func Miniredis(tb testing.TB) redis.UniversalClient {
	tb.Helper()
	m := miniredis.RunT(tb)
	return client(tb, &redis.Options{Addr: m.Addr()})
}

// Redis returns a client of a redis-server that this test starts on a socket
// and ends.
func Redis(tb testing.TB) redis.UniversalClient {
	tb.Helper()
	dir := Folder(tb)
	socket := filepath.Join(dir, "s")
	start(tb, dir, "--port", "0", "--unixsocket", socket)
	c := client(tb, &redis.Options{Network: "unix", Addr: socket})
	Await(tb, "redis-server to answer", func() bool { return c.Ping(tb.Context()).Err() == nil })
	return c
}

// Cluster returns a client of a cluster of one node, a redis-server that this
// test starts and ends. It refuses what miniredis lets pass: keys of two slots
// in one script.
func Cluster(tb testing.TB) redis.UniversalClient {
	tb.Helper()
	dir := Folder(tb)
	port, bus := freePort(tb), freePort(tb)
	start(tb, dir, "--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", bus)
	addr := net.JoinHostPort("127.0.0.1", port)
	node := client(tb, &redis.Options{Addr: addr})
	Await(tb, "redis-server to answer", func() bool { return node.Ping(tb.Context()).Err() == nil })
	require.NoError(tb, node.ClusterAddSlotsRange(tb.Context(), 0, 16383).Err())
	Await(tb, "the cluster to be ready", func() bool {
		return strings.Contains(node.ClusterInfo(tb.Context()).Val(), "cluster_state:ok")
	})
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{addr}, ContextTimeoutEnabled: true, ClusterStateReloadInterval: time.Second,
		MaintNotificationsConfig: quiet(),
	})
	tb.Cleanup(func() { require.NoError(tb, c.Close()) })
	return c
}

// Addr returns a client of the server at $REDIS_ADDR, and false if that is not
// set. The tests write to it, under prefixes of their own.
func Addr(tb testing.TB) (redis.UniversalClient, bool) {
	tb.Helper()
	addr := os.Getenv("REDIS_ADDR")
	if addr == "" {
		return nil, false
	}
	return client(tb, &redis.Options{Addr: addr}), true
}

func client(tb testing.TB, o *redis.Options) redis.UniversalClient {
	tb.Helper()
	o.ContextTimeoutEnabled, o.MaintNotificationsConfig = true, quiet()
	c := redis.NewClient(o)
	tb.Cleanup(func() { require.NoError(tb, c.Close()) })
	return c
}

// quiet turns off what only some hosted servers have; the client would say that
// these do not.
func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// start runs a redis-server without persistence until the test ends.
func start(tb testing.TB, dir string, args ...string) *exec.Cmd {
	tb.Helper()
	return startWith(tb, nil, dir, args...)
}

// startWith is start with more in the environment of the server.
func startWith(tb testing.TB, environ []string, dir string, args ...string) *exec.Cmd {
	tb.Helper()
	return run(tb, environ, append([]string{"--save", "", "--appendonly", "no", "--dir", dir}, args...)...)
}

// run runs redis-server with these arguments until the test ends.
func run(tb testing.TB, environ []string, args ...string) *exec.Cmd {
	tb.Helper()
	binary, err := exec.LookPath("redis-server")
	require.NoError(tb, err, missing)
	var said strings.Builder
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary, args...) //nolint:gosec // the arguments are ours
	cmd.Stdout, cmd.Stderr, cmd.Env = &said, &said, append(os.Environ(), environ...)
	require.NoError(tb, cmd.Start())
	tb.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if tb.Failed() {
			tb.Logf("redis-server said:\n%s", said.String())
		}
	})
	return cmd
}

// Folder returns a folder with a short name, which is removed with the test: the path of
// a socket has at most 107 bytes, and [testing.T.TempDir] can be longer.
func Folder(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "cs") //nolint:usetesting // see above
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// FreeAddr returns an address of this machine on which nobody listens. Its port is not
// one that the system gives to who asks for any, or to a client: such a port could be
// taken before the server listens, or while it is down.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	const lowest, given = 10_000, 32_768 // from here on the system gives ports out
	for {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(given-lowest))) //nolint:gosec // no secret
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", addr)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		require.NoError(tb, err)
		require.NoError(tb, l.Close())
		return addr
	}
}

func freePort(tb testing.TB) string {
	tb.Helper()
	_, port, err := net.SplitHostPort(FreeAddr(tb))
	require.NoError(tb, err)
	return port
}

// Await asks again and again until the answer is yes, and fails the test if it
// takes too long.
func Await(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startup)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			require.FailNow(tb, fmt.Sprintf("waited %s for %s", startup, what))
		case <-tick.C:
		}
	}
}

// FollowCluster makes the only node of a cluster keep what it acknowledges,
// starts a replica of it, and returns when that follows. The returned function
// stops the replica, and what that returns lets it continue.
func FollowCluster(tb testing.TB, cluster *redis.ClusterClient) (stop func() (goOn func())) {
	tb.Helper()
	ctx, dir, port, bus := tb.Context(), Folder(tb), freePort(tb), freePort(tb)
	cmd := start(tb, dir, "--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", bus,
		"--cluster-replica-no-failover", "yes")
	node := client(tb, &redis.Options{Addr: net.JoinHostPort("127.0.0.1", port)})
	Await(tb, "redis-server to answer", func() bool { return node.Ping(ctx).Err() == nil })
	primary, err := cluster.MasterForKey(ctx, "x")
	require.NoError(tb, err)
	for name, value := range map[string]string{"appendonly": "yes", "appendfsync": "always", "repl-diskless-sync-delay": "0"} {
		require.NoError(tb, primary.ConfigSet(ctx, name, value).Err())
	}
	require.NoError(tb, primary.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", port, bus).Err())
	id := primary.ClusterMyID(ctx).Val()
	Await(tb, "the nodes to meet", func() bool { return node.ClusterReplicate(ctx, id).Err() == nil })
	Await(tb, "the replica to follow", func() bool {
		return strings.Contains(primary.Info(ctx, "replication").Val(), "state=online")
	})
	return func() func() { return stopped(tb, cmd) }
}
