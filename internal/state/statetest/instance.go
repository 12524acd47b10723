package statetest

import (
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// An Instance is a redis-server that keeps what it acknowledges (appendonly
// yes, appendfsync always), unless its arguments say otherwise. A test may kill
// it, stop it for a while and start it again where it was.
type Instance struct {
	Client *redis.Client // over the socket
	Socket string
	Addr   string // host and port, for replicas

	tb      testing.TB
	dir     string
	args    []string
	environ []string
	notes   string // where it is noted what was synced, on a machine
	cmd     *exec.Cmd
}

// NewInstance starts a server that ends with the test.
func NewInstance(tb testing.TB, args ...string) *Instance {
	tb.Helper()
	return newInstance(tb, nil, args...)
}

func newInstance(tb testing.TB, environ []string, args ...string) *Instance {
	tb.Helper()
	dir, port := Folder(tb), freePort(tb)
	i := &Instance{tb: tb, dir: dir, Socket: filepath.Join(dir, "s"), Addr: net.JoinHostPort("127.0.0.1", port), environ: environ}
	i.args = append([]string{
		"--port", port, "--bind", "127.0.0.1", "--unixsocket", i.Socket, "--appendonly", "yes", "--appendfsync", "always",
		"--repl-diskless-sync-delay", "0",
	}, args...)
	c, ok := client(tb, &redis.Options{Network: "unix", Addr: i.Socket}).(*redis.Client)
	require.True(tb, ok)
	i.Client = c
	i.Start()
	return i
}

// Replica starts a server that follows i, and returns when it does.
func (i *Instance) Replica(args ...string) *Instance {
	i.tb.Helper()
	host, port, err := net.SplitHostPort(i.Addr)
	require.NoError(i.tb, err)
	r := NewInstance(i.tb, append([]string{"--replicaof", host + " " + port, "--repl-ping-replica-period", "1"}, args...)...)
	r.Follows()
	return r
}

// Follow makes the server a replica of another, and returns when it is one.
func (i *Instance) Follow(primary *Instance) {
	i.tb.Helper()
	host, port, err := net.SplitHostPort(primary.Addr)
	require.NoError(i.tb, err)
	require.NoError(i.tb, i.Client.Do(i.tb.Context(), "REPLICAOF", host, port).Err())
	i.Follows()
}

// Follows returns when the server has what its primary has.
func (i *Instance) Follows() {
	i.tb.Helper()
	Await(i.tb, "the replica to follow", func() bool {
		return strings.Contains(i.Client.Info(i.tb.Context(), "replication").Val(), "master_link_status:up")
	})
}

// isPrimary reports whether the server takes writes.
func (i *Instance) isPrimary() bool {
	role, err := i.Client.Do(i.tb.Context(), "ROLE").Slice()
	return err == nil && role[0] == "master"
}

// commands returns how many commands the server has done, ours among them.
func (i *Instance) commands() (n int64) {
	for line := range strings.Lines(i.Client.Info(i.tb.Context(), "stats").Val()) {
		if v, ok := strings.CutPrefix(line, "total_commands_processed:"); ok {
			n, _ = strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		}
	}
	return n
}

// Promote makes a replica one that takes writes.
func (i *Instance) Promote() {
	i.tb.Helper()
	require.NoError(i.tb, i.Client.Do(i.tb.Context(), "REPLICAOF", "NO", "ONE").Err())
}

// Start starts the server, and returns when it answers.
func (i *Instance) Start() {
	i.tb.Helper()
	i.cmd = startWith(i.tb, i.environ, i.dir, i.args...)
	Await(i.tb, "redis-server to answer", func() bool { return i.Client.Ping(i.tb.Context()).Err() == nil })
}

// Kill is kill -9. It returns when the process is gone.
func (i *Instance) Kill() {
	i.tb.Helper()
	require.NoError(i.tb, i.cmd.Process.Kill())
	_ = i.cmd.Wait()
}

// Stop makes the server stop answering until it is resumed.
func (i *Instance) Stop() (goOn func()) {
	i.tb.Helper()
	return stopped(i.tb, i.cmd)
}

func stopped(tb testing.TB, cmd *exec.Cmd) (goOn func()) {
	tb.Helper()
	require.NoError(tb, cmd.Process.Signal(syscall.SIGSTOP))
	goOn = sync.OnceFunc(func() { _ = cmd.Process.Signal(syscall.SIGCONT) })
	tb.Cleanup(goOn)
	return goOn
}

// Set changes a setting of the server.
func (i *Instance) Set(name, value string) {
	i.tb.Helper()
	require.NoError(i.tb, i.Client.ConfigSet(i.tb.Context(), name, value).Err())
}
