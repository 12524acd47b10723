package redisserver_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/redisserver"
	"github.com/countersign/countersign/internal/state/statetest"
)

// open opens a folder that is closed with the test.
func open(t *testing.T, dir string) (*redisserver.Folder, *statetest.Log) {
	t.Helper()
	var said statetest.Log
	f, err := redisserver.Open(t.Context(), dir, slog.New(slog.NewTextHandler(&said, nil)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f, &said
}

func pidOf(t *testing.T, c *redis.Client) int {
	t.Helper()
	info, err := c.InfoMap(t.Context(), "server").Result()
	require.NoError(t, err)
	pid, err := strconv.Atoi(info["Server"]["process_id"])
	require.NoError(t, err)
	return pid
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, time.Minute, 10*time.Millisecond, what)
}

// gone reports whether there is no such process, or only what is left of it until
// its parent looks.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ")
}

func TestAFolderIsPrivateAndItsRedisKeepsEverything(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(statetest.Folder(t), "data")
	f, _ := open(t, dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	c := client(t, f.URL())
	for name, want := range map[string]string{
		"port": "0", "appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no", "save": "", "maxmemory-policy": "noeviction",
		"hash-max-ziplist-value": "512",
	} {
		got, err := c.ConfigGet(t.Context(), name).Result()
		require.NoError(t, err)
		require.Equal(t, want, got[name], name)
	}
}

func TestAServerThatDiesIsStartedAgainWithItsData(t *testing.T) {
	t.Parallel()
	f, said := open(t, statetest.Folder(t))
	c := client(t, f.URL())
	require.NoError(t, c.Set(t.Context(), "key", "kept", 0).Err())
	for range 3 {
		old := pidOf(t, c)
		require.NoError(t, syscall.Kill(old, syscall.SIGKILL))
		eventually(t, "another server answers", func() bool {
			info, _ := c.InfoMap(t.Context(), "server").Result()
			pid := info["Server"]["process_id"]
			return pid != "" && pid != strconv.Itoa(old)
		})
		value, err := c.Get(t.Context(), "key").Result()
		require.NoError(t, err)
		require.Equal(t, "kept", value)
	}
	require.Contains(t, said.String(), "redis-server ended; it is started again")
}

// A server whose socket was removed serves who is connected, and nobody else.
func TestAServerWhoseSocketIsRemovedIsStartedAgainWithItsData(t *testing.T) {
	t.Parallel()
	dir := statetest.Folder(t)
	f, said := open(t, dir)
	c := client(t, f.URL())
	require.NoError(t, c.Set(t.Context(), "key", "kept", 0).Err())
	require.NoError(t, os.Remove(filepath.Join(dir, "redis.sock")))
	late := client(t, f.URL())
	eventually(t, "who connects now reaches the data", func() bool {
		value, err := late.Get(t.Context(), "key").Result()
		return err == nil && value == "kept"
	})
	require.Contains(t, said.String(), "the socket of redis-server was removed")
}

// A server on a folder that was put in the place of the one with the data would be empty.
func TestAServerIsNotStartedOnAnotherFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(statetest.Folder(t), "data")
	f, said := open(t, dir)
	c := client(t, f.URL())
	require.NoError(t, c.Set(t.Context(), "key", "kept", 0).Err())
	require.NoError(t, os.Rename(dir, dir+".moved"))
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bot.lock"), nil, 0o600))
	_ = c.ShutdownNoSave(t.Context()).Err()
	eventually(t, "the folder is missed", func() bool {
		return strings.Contains(said.String(), "the folder with the data is no longer at "+dir)
	})
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing was written there")

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Rename(dir+".moved", dir))
	eventually(t, "the data is there again", func() bool {
		value, err := client(t, f.URL()).Get(t.Context(), "key").Result()
		return err == nil && value == "kept"
	})
}

// What a machine that fails leaves at the end of the log is a part of a write that
// nobody was told of.
func TestALogWithATornEndIsRead(t *testing.T) {
	t.Parallel()
	dir := statetest.Folder(t)
	f, err := redisserver.Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, client(t, f.URL()).Set(t.Context(), "key", "kept", 0).Err())
	require.NoError(t, f.Close())
	logs, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	log, err := os.OpenFile(logs[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = log.WriteString("*3\r\n$3\r\nSET\r\n$3\r\nke")
	require.NoError(t, err)
	require.NoError(t, log.Close())

	f, said := open(t, dir)
	value, err := client(t, f.URL()).Get(t.Context(), "key").Result()
	require.NoError(t, err)
	require.Equal(t, "kept", value)
	require.Contains(t, said.String(), "Truncating the AOF")
}

// Without its manifest, Redis starts empty and writes over its data.
func TestALogWithoutItsManifestIsRefused(t *testing.T) {
	t.Parallel()
	dir := statetest.Folder(t)
	opens := func() *redisserver.Folder {
		t.Helper()
		f, err := redisserver.Open(t.Context(), dir, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		return f
	}
	manifest := filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest")
	f := opens()
	require.NoError(t, f.Close())
	require.NoError(t, os.Remove(manifest))
	f = opens()
	require.FileExists(t, manifest, "a first start that was killed is begun again")
	require.NoError(t, client(t, f.URL()).Set(t.Context(), "key", "kept", 0).Err())
	require.NoError(t, f.Close())
	names, err := os.ReadFile(manifest)
	require.NoError(t, err)
	require.NoError(t, os.Remove(manifest))
	refused := func() {
		t.Helper()
		_, err = redisserver.Check(dir)
		require.ErrorContains(t, err, "has no appendonly.aof.manifest, without which Redis would start empty")
		_, err = redisserver.Open(t.Context(), dir, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "has no appendonly.aof.manifest")
	}
	refused()
	require.NoError(t, os.WriteFile(manifest, names, 0o600))
	f = opens()
	c := client(t, f.URL())
	value, err := c.Get(t.Context(), "key").Result()
	require.NoError(t, err)
	require.Equal(t, "kept", value)
	for n := range 100 {
		require.NoError(t, c.Set(t.Context(), rand.Text()+strconv.Itoa(n), rand.Text(), 0).Err())
	}
	require.NoError(t, c.BgRewriteAOF(t.Context()).Err())
	eventually(t, "the log is rewritten", func() bool {
		info, _ := c.InfoMap(t.Context(), "persistence").Result()
		return info["Persistence"]["aof_rewrite_in_progress"] == "0"
	})
	require.NoError(t, f.Close())
	require.NoError(t, os.Remove(manifest))
	refused()
}

// What bot check says of a folder is what the start will find.
func TestAFolderThatCannotBeWrittenIsFoundBefore(t *testing.T) {
	t.Parallel()
	const readOnly = "/proc/self"
	for _, dir := range []string{readOnly, filepath.Join(readOnly, "not", "there")} {
		_, err := redisserver.Check(dir)
		require.Error(t, err, dir)
	}
	_, err := redisserver.Check(filepath.Join(readOnly, "not", "there"))
	require.ErrorContains(t, err, "cannot be written")
}

func TestASecondProcessOnAFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := statetest.Folder(t)
	f, err := redisserver.Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	used, err := redisserver.Check(dir)
	require.NoError(t, err)
	require.True(t, used)
	_, err = redisserver.Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.EqualError(t, err, fmt.Sprintf("process %d works on %s already; stop it first, or name another folder", os.Getpid(), dir))
	require.NoError(t, client(t, f.URL()).Ping(t.Context()).Err(), "the first one is not disturbed")

	require.NoError(t, f.Close())
	eventually(t, "nobody works on it", func() bool {
		used, err := redisserver.Check(dir)
		return err == nil && !used
	})
	open(t, dir)
}

// A command uses the server of the bot that runs, and one of its own if none does.
func TestACommandReachesAFolderWithAndWithoutItsBot(t *testing.T) {
	t.Parallel()
	dir := statetest.Folder(t)
	_, err := redisserver.Reach(t.Context(), filepath.Join(dir, "typo"), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "no bot has kept anything there")
	require.NoDirExists(t, filepath.Join(dir, "typo"))

	f, err := redisserver.Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	c := client(t, f.URL())
	require.NoError(t, c.Set(t.Context(), "key", "kept", 0).Err())
	end, err := redisserver.Reach(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, end())
	require.NoError(t, c.Ping(t.Context()).Err(), "the bot's server still runs")
	require.NoError(t, f.Close())

	end, err = redisserver.Reach(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	value, err := c.Get(t.Context(), "key").Result()
	require.NoError(t, err)
	require.Equal(t, "kept", value)
	require.NoError(t, end())
	require.Error(t, c.Ping(t.Context()).Err(), "nothing is left running")
}

// A unit of systemd with DynamicUser has a user whom nobody else can be: root works on
// its folder with the commands, while the bot runs.
func TestRootReachesTheBotOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away, and reaches it then")
	}
	dir := statetest.Folder(t)
	f, err := redisserver.Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, os.Chown(dir, 4711, -1))
	end, err := redisserver.Reach(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, end())
	require.NoError(t, client(t, f.URL()).Ping(t.Context()).Err(), "the bot's server still runs")
	require.NoError(t, f.Close())
	_, err = redisserver.Reach(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.EqualError(t, err, "no bot works there now, and "+dir+" belongs to another user; run the bot as that user, or name a folder of its own")
}

// orphan starts a server on the folder as one is left by a process that was killed
// on a system that tells no child.
func orphan(t *testing.T, dir string, settings ...string) *exec.Cmd {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "redis.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bot.lock"), []byte("1\n"), 0o600), "as that process left it")
	args := append([]string{"--port", "0", "--unixsocket", filepath.Join(dir, "redis.sock"), "--dir", dir, "--appendonly", "yes", "--save", ""}, settings...)
	cmd := exec.Command("redis-server", args...)
	cmd.ExtraFiles = []*os.File{f}
	require.NoError(t, cmd.Start())
	require.NoError(t, f.Close())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return cmd
}

func TestAServerThatOutlivedItsProcessIsEndedFirst(t *testing.T) {
	for name, settings := range map[string][]string{
		"one that ends when it is asked":     nil,
		"one that does not, which is killed": {"--rename-command", "SHUTDOWN", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := statetest.Folder(t)
			old := orphan(t, dir, settings...)
			c := client(t, redisserver.URL(dir))
			require.NoError(t, c.Set(t.Context(), "key", "kept", 0).Err())

			f, said := open(t, dir)
			require.True(t, gone(old.Process.Pid), "before the next one began")
			value, err := client(t, f.URL()).Get(t.Context(), "key").Result()
			require.NoError(t, err)
			require.Equal(t, "kept", value)
			require.Contains(t, said.String(), "waiting for the redis-server that was started before to end")
			require.Contains(t, said.String(), fmt.Sprintf("pid=%d", old.Process.Pid))
		})
	}
}

// A number in a file could be that of any process by now.
func TestANumberInALockFileEndsNobody(t *testing.T) {
	t.Parallel()
	dir := statetest.Folder(t)
	other := exec.Command("sleep", "1000")
	require.NoError(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	for _, name := range []string{"bot.lock", "redis.lock"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "%d\n", other.Process.Pid), 0o600))
	}
	open(t, dir)
	require.False(t, gone(other.Process.Pid))
}

func TestAFolderThatIsNotPrivateOrNotOursIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir string) string
		want    string
	}{
		"others can look into it": {func(t *testing.T, dir string) string {
			t.Helper()
			require.NoError(t, os.Chmod(dir, 0o755))
			return dir
		}, "other users can look into DIR (its mode is 0755); run chmod 700 on it"},
		"it has other files": {func(t *testing.T, dir string) string {
			t.Helper()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "dump.rdb"), nil, 0o600))
			return dir
		}, "DIR holds other files, such as dump.rdb; name a folder that is empty or not there yet"},
		"it was copied without its lock": {func(t *testing.T, dir string) string {
			t.Helper()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "appendonlydir"), 0o700))
			return dir
		}, "if it is the folder of a bot, copied without that file, run touch DIR/bot.lock as the user of the bot"},
		"it is a file": {func(t *testing.T, dir string) string {
			t.Helper()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), nil, 0o600))
			return filepath.Join(dir, "data")
		}, "DIR/data is a file; name a folder"},
		"its path is too long": {func(t *testing.T, dir string) string {
			t.Helper()
			return filepath.Join(dir, strings.Repeat("long/", 20))
		}, "name a folder with a shorter path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := statetest.Folder(t)
			path := c.prepare(t, dir)
			want := strings.ReplaceAll(c.want, "DIR", dir)
			_, err := redisserver.Check(path)
			require.ErrorContains(t, err, want)
			_, err = redisserver.Open(t.Context(), path, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, want)
			require.NoDirExists(t, filepath.Join(dir, "long"), "nothing was made")
		})
	}
}

// installed makes the script the only redis-server of this process. REAL in it is
// the real one.
func installed(t *testing.T, name, script string) {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	require.NoError(t, err)
	dir := t.TempDir()
	script = "#!/bin/sh\n" + strings.ReplaceAll(script, "REAL", bin) + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700))
	for _, tool := range []string{"sh", "echo", "test"} {
		path, err := exec.LookPath(tool)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(dir, tool)))
	}
	t.Setenv("PATH", dir)
}

func TestARedisThatDoesNotFitIsRefusedInWords(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"too old":         {`echo "Redis server v=6.0.16 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64 build=a3fdef44459b3ad6"`, "is version 6.0.16; install 6.2 or newer"},
		"without version": {`echo "hello"`, `does not report its version, which must be 6.2 or newer: "hello"`},
		"broken":          {`echo "no libc"; exit 3`, "exit status 3: no libc"},
		"one that ends": {
			`test "$1" = --version && exec REAL --version; echo "cannot do that"; exit 1`,
			"redis-server ended before it answered. It said: cannot do that",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := statetest.Folder(t)
			installed(t, "redis-server", c.script)
			_, err := redisserver.Open(t.Context(), dir, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestValkeyIsTakenToo(t *testing.T) {
	installed(t, "valkey-server", `echo "Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1"`)
	found, err := redisserver.Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, "8.0.1", found.Version)
}

// Redis 6 looks for its data in another file: it would start empty, and everything
// that waits would seem to be gone.
func TestAnOlderRedisThatWouldNotFindTheDataIsRefused(t *testing.T) {
	dir := statetest.Folder(t)
	f, err := redisserver.Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	installed(t, "redis-server", `test "$1" = --version && echo "Redis server v=6.2.14 sha=0" && exit; exec REAL "$@"`)
	_, err = redisserver.Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "was written by Redis 7 or newer")
}

// With appendfsync always Redis ends when it cannot write its log. Nothing that it
// has not stored is acknowledged, and it works again once there is room.
func TestAFullDiskRefusesWritesAndLosesNothing(t *testing.T) {
	full := filepath.Join(t.TempDir(), "full")
	require.NoError(t, os.WriteFile(full, nil, 0o600))
	installed(t, "redis-server", `test -e '`+full+`' && ulimit -f 8 && trap '' XFSZ; exec REAL "$@"`)
	f, said := open(t, statetest.Folder(t))
	c := client(t, f.URL())
	stored := 0
	for c.Set(t.Context(), "key"+strconv.Itoa(stored), strings.Repeat("x", 256), 0).Err() == nil {
		stored++
		require.Less(t, stored, 1000, "the disk never was full")
	}
	eventually(t, "the log says why", func() bool { return strings.Contains(said.String(), "AOF write error") })
	require.NoError(t, os.Remove(full))
	eventually(t, "it takes writes again", func() bool { return c.Set(t.Context(), "after", 1, 0).Err() == nil })
	for i := range stored {
		value, err := c.Get(t.Context(), "key"+strconv.Itoa(i)).Result()
		require.NoError(t, err)
		require.Len(t, value, 256)
	}
}

// openVariable makes this test a process that opens the folder and waits.
const openVariable = "REDISSERVER_TEST_OPEN"

// kill -9 of the process, at any moment, leaves the folder to the next one.
func TestAFolderOfAKilledProcessIsOpenedWithItsData(t *testing.T) {
	if dir := os.Getenv(openVariable); dir != "" {
		f, err := redisserver.Open(context.Background(), dir, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		require.NoError(t, client(t, f.URL()).Incr(t.Context(), "opened").Err())
		_, err = os.Stdout.WriteString("opened\n")
		require.NoError(t, err)
		select {}
	}
	t.Parallel()
	dir := statetest.Folder(t)
	for range 3 {
		var out statetest.Log
		cmd := exec.Command(os.Args[0], "-test.run=^TestAFolderOfAKilledProcessIsOpenedWithItsData$")
		cmd.Env = append(os.Environ(), openVariable+"="+dir)
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
		require.NoError(t, cmd.Start())
		eventually(t, "it is opened", func() bool { return strings.Contains(out.String(), "opened") })
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}
	f, _ := open(t, dir)
	opened, err := client(t, f.URL()).Get(t.Context(), "opened").Int()
	require.NoError(t, err)
	require.Equal(t, 3, opened)
}
