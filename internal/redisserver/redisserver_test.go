package redisserver_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/redisserver"
	"github.com/countersign/countersign/internal/state/statetest"
)

func client(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	require.NoError(t, err)
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	require.Eventually(t, func() bool { return c.Ping(t.Context()).Err() == nil }, time.Minute, 10*time.Millisecond)
	return c
}

func start(t *testing.T, dir string) *redisserver.Server {
	t.Helper()
	s, err := redisserver.Start(t.Context(), dir, os.Stderr, "--appendonly", "yes", "--save", "")
	require.NoError(t, err)
	return s
}

// What was written before the server stopped is there when it starts again.
func TestAStoppedServerKeepsItsData(t *testing.T) {
	dir := statetest.Folder(t)
	s := start(t, dir)
	require.NoError(t, client(t, s.URL()).Set(t.Context(), "key", "kept", 0).Err())
	require.NoError(t, s.Stop())
	require.NoError(t, s.Stop(), "it has ended")

	s = start(t, dir)
	value, err := client(t, s.URL()).Get(t.Context(), "key").Result()
	require.NoError(t, err)
	require.Equal(t, "kept", value)
	require.NoError(t, s.Stop())
}

func TestAServerThatDiesHasEnded(t *testing.T) {
	s := start(t, statetest.Folder(t))
	require.Error(t, client(t, s.URL()).ShutdownNoSave(t.Context()).Err(), "it answers no more")
	<-s.Ended()
}

func TestAServerIsNotReachableFromOutside(t *testing.T) {
	dir := statetest.Folder(t)
	s := start(t, dir)
	c := client(t, s.URL())
	port, err := c.ConfigGet(t.Context(), "port").Result()
	require.NoError(t, err)
	require.Equal(t, "0", port["port"])
	info, err := os.Stat(filepath.Join(dir, "redis.sock"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, s.Stop())
}

func TestWithoutRedisPeopleReadHowToGetIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := redisserver.Start(t.Context(), t.TempDir(), os.Stderr)
	require.ErrorIs(t, err, redisserver.ErrMissing)
}

// folderVariable makes this test a process that starts a server there and waits.
const folderVariable = "REDISSERVER_TEST_FOLDER"

// A process that is killed cannot stop its server; it ends all the same.
func TestAServerEndsWithItsProcess(t *testing.T) {
	if dir := os.Getenv(folderVariable); dir != "" {
		s := start(t, dir)
		client(t, s.URL())
		_, err := os.Stdout.WriteString("started\n")
		require.NoError(t, err)
		<-s.Ended()
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child that its parent has died: run the test on Linux, as CI does")
	}
	dir := statetest.Folder(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestAServerEndsWithItsProcess$")
	cmd.Env = append(os.Environ(), folderVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "started") {
	}
	socket := filepath.Join(dir, "redis.sock")
	require.FileExists(t, socket)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	require.Eventually(t, func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, time.Minute, 10*time.Millisecond, "the server still answers")
}
