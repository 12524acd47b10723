package statetest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// startup is how long a server may take until it answers.
const startup = 20 * time.Second

// Miniredis returns a client of an in-process server that ends with the test.
func Miniredis(t *testing.T) redis.UniversalClient {
	t.Helper()
	m := miniredis.RunT(t)
	return client(t, &redis.Options{Addr: m.Addr()})
}

// Redis returns a client of a redis-server that this test starts on a socket
// and ends.
func Redis(t *testing.T) redis.UniversalClient {
	t.Helper()
	dir := scratch(t)
	socket := filepath.Join(dir, "s")
	start(t, dir, "--port", "0", "--unixsocket", socket)
	c := client(t, &redis.Options{Network: "unix", Addr: socket})
	await(t, "redis-server to answer", func(ctx context.Context) bool { return c.Ping(ctx).Err() == nil })
	return c
}

// Cluster returns a client of a cluster of one node, a redis-server that this
// test starts and ends. It refuses what miniredis lets pass: keys of two slots
// in one script.
func Cluster(t *testing.T) redis.UniversalClient {
	t.Helper()
	dir := scratch(t)
	port, bus := freePort(t), freePort(t)
	start(t, dir, "--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", bus)
	addr := net.JoinHostPort("127.0.0.1", port)
	node := client(t, &redis.Options{Addr: addr})
	await(t, "redis-server to answer", func(ctx context.Context) bool { return node.Ping(ctx).Err() == nil })
	require.NoError(t, node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	await(t, "the cluster to be ready", func(ctx context.Context) bool {
		return strings.Contains(node.ClusterInfo(ctx).Val(), "cluster_state:ok")
	})
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{addr}, ContextTimeoutEnabled: true, ClusterStateReloadInterval: time.Second,
	})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// Addr returns a client of the server at $REDIS_ADDR, and false if that is not
// set. The tests write to it, under prefixes of their own.
func Addr(t *testing.T) (redis.UniversalClient, bool) {
	t.Helper()
	addr := os.Getenv("REDIS_ADDR")
	if addr == "" {
		return nil, false
	}
	return client(t, &redis.Options{Addr: addr}), true
}

func client(t *testing.T, o *redis.Options) redis.UniversalClient {
	t.Helper()
	o.ContextTimeoutEnabled = true
	c := redis.NewClient(o)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// start runs a redis-server without persistence until the test ends.
func start(t *testing.T, dir string, args ...string) {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	require.NoError(t, err, "These tests run against a real Redis. Install it (apt-get install redis-server, "+
		"brew install redis) so that redis-server is in the PATH.")
	args = append([]string{"--save", "", "--appendonly", "no", "--dir", dir}, args...)
	var said strings.Builder
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary, args...) //nolint:gosec // the arguments are ours
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("redis-server said:\n%s", said.String())
		}
	})
}

// scratch is a directory with a short name: the path of a socket has at most
// 107 bytes, and [testing.T.TempDir] can be longer.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cs") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func freePort(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	addr, ok := l.Addr().(*net.TCPAddr)
	require.True(t, ok)
	return strconv.Itoa(addr.Port)
}

// await asks again and again until the answer is yes, and fails the test if it
// takes too long.
func await(t *testing.T, what string, ok func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startup)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			require.FailNow(t, fmt.Sprintf("waited %s for %s", startup, what))
		case <-tick.C:
		}
	}
}
