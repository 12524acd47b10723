package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/redisserver"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state/statetest"
)

// dataFolder is the path of a folder that is not there yet.
func dataFolder(t *testing.T) string {
	t.Helper()
	return filepath.Join(statetest.Folder(t), "data")
}

// newDataWorld is newWorld for a bot that has no Redis but its own.
func newDataWorld(t *testing.T) *world {
	t.Helper()
	dir := dataFolder(t) // it is removed after the bots were killed
	w := newWorld(t)
	w.data = dir
	w.env = slices.DeleteFunc(w.env, func(v string) bool { return strings.HasPrefix(v, "REDIS_URL=") })
	w.env = append(w.env, "PATH="+os.Getenv("PATH"))
	o, err := redis.ParseURL(redisserver.URL(dir))
	require.NoError(t, err)
	w.redis = redis.NewClient(o)
	t.Cleanup(func() { _ = w.redis.Close() })
	return w
}

// redisPID is which process the private Redis is.
func (w *world) redisPID() int {
	w.t.Helper()
	info, err := w.redis.InfoMap(w.t.Context(), "server").Result()
	require.NoError(w.t, err)
	pid, err := strconv.Atoi(info["Server"]["process_id"])
	require.NoError(w.t, err)
	return pid
}

// Nothing acknowledged is lost when the bot, its Redis, or both are killed, and
// nothing runs twice.
func TestABotOnAFolderSurvivesKillsOfItselfAndOfItsRedis(t *testing.T) {
	t.Parallel()
	w := newDataWorld(t)
	first := w.start()
	root := w.sim.ask(cleanUp, "")
	card := w.sim.await(bob, root, "the card", says("2023-q1-sales.txt", "2023-q2-sales.txt", "delete_file"))
	require.Empty(t, w.sim.click(bob, card, "2023-q1", "Approve").VisibleError, "the click was acknowledged")
	first.kill()

	second := w.start()
	listed, err := w.admin("list", "--data", w.data)
	require.NoError(t, err, "beside the bot")
	require.Contains(t, listed, "delete_file")
	card = w.sim.await(bob, root, "one approved", func(m message) bool {
		return m.TS == card.TS && len(m.buttons("2023-q1")) < 3 && len(m.buttons("2023-q2")) > 0
	})
	require.Empty(t, w.sim.click(bob, card, "2023-q2", "Approve").VisibleError, "the click was acknowledged")
	require.NoError(t, syscall.Kill(w.redisPID(), syscall.SIGKILL))
	second.out.await(t, "redis-server ended; it is started again")
	answer := w.sim.await(alice, root, "an end", ended)
	requireOnce(t, first, second)
	if !strings.Contains(answer.words(), "may or may not") {
		require.NoFileExists(t, filepath.Join(w.folder, "reports", "2023-q1-sales.txt"))
		require.NoFileExists(t, filepath.Join(w.folder, "reports", "2023-q2-sales.txt"))
	}
	require.NoError(t, second.term())

	require.Error(t, w.redis.Ping(t.Context()).Err(), "the bot ends its Redis")
	listed, err = w.admin("size", "--data", w.data)
	require.NoError(t, err, "without the bot")
	require.Contains(t, listed, "messages")
	require.Error(t, w.redis.Ping(t.Context()).Err(), "the command ends its Redis")
}

func TestASecondBotOnAFolderIsRefused(t *testing.T) {
	t.Parallel()
	w := newDataWorld(t)
	first := w.start()
	pid := w.redisPID()
	w.env = append(w.env, "COUNTERSIGN_ADDR=127.0.0.1:0")
	second := w.launch()
	require.Error(t, second.cmd.Wait())
	require.Contains(t, second.out.String(), "--data: process "+strconv.Itoa(first.cmd.Process.Pid)+" works on "+w.data+" already; stop it first, or name another folder")
	require.Equal(t, pid, w.redisPID(), "the first one is not disturbed")
	require.NoError(t, first.term())
}

// A Redis with much data reads its log for minutes before it answers.
func TestABotThatIsStoppedWhileItsRedisReadsItsLogEndsWithoutAnError(t *testing.T) {
	t.Parallel()
	w := newDataWorld(t)
	programs := t.TempDir()
	const reads = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'Redis server v=7.0.15' && exit\necho reading >&2\nexec sleep 600\n"
	require.NoError(t, os.WriteFile(filepath.Join(programs, "redis-server"), []byte(reads), 0o700))
	w.env = append(w.env, "PATH="+programs+":"+os.Getenv("PATH"), "COUNTERSIGN_LOG_LEVEL=debug")
	b := w.launch()
	b.out.await(t, "said=reading")
	require.NoError(t, b.term(), "%s", b.out)
}

// serveOnData is what `bot serve --data` says of an installation.
func serveOnData(t *testing.T, i *installation, data string) error {
	t.Helper()
	i.env["COUNTERSIGN_ADDR"] = "127.0.0.1:0"
	i.o.Online, i.o.Data = false, data
	i.check() // writes the files
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	return run(ctx, []string{"serve", "--config", i.o.Path, "--data", data}, i.o.Environ, &out, &out)
}

func TestAFolderAndARedisAtOnceAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		redis string // of the configuration
		url   bool
		want  string
	}{
		"REDIS_URL": {"", true, "REDIS_URL: is set, but --data FOLDER keeps everything in a Redis of its own; remove REDIS_URL, or remove --data to use the Redis that you have"},
		"addresses": {"redis: {addresses: ['redis.internal:6379']}\n", false, "redis.addresses: is set, but --data FOLDER keeps everything"},
		"everysec":  {"redis: {durability: everysec}\n", false, "redis.durability: is everysec, but --data FOLDER always has fsync; remove redis.durability, or write fsync"},
	} {
		t.Run(name, func(t *testing.T) {
			i, dir := newInstallation(t, slacksim.Config{}), dataFolder(t)
			i.replace("redis: {durability: fsync}\n", c.redis)
			if !c.url {
				delete(i.env, "REDIS_URL")
			}
			require.ErrorContains(t, serveOnData(t, i, dir), c.want)
			require.Contains(t, i.check(), c.want)
			require.NoDirExists(t, dir, "nothing was made")
		})
	}
}

func TestAnAgentCannotWorkOnWhatTheBotKeeps(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	delete(i.env, "REDIS_URL")
	dir := dataFolder(t)
	require.NoError(t, os.Mkdir(dir, 0o700))
	i.replace("files: reports", "files: "+filepath.Dir(dir))
	const want = " contains what the bot keeps, "
	require.ErrorContains(t, serveOnData(t, i, dir), want)
	require.Contains(t, i.check(), want)
}

func TestWithoutRedisServerAFolderSaysHowToGetIt(t *testing.T) {
	i, dir := newInstallation(t, slacksim.Config{}), dataFolder(t)
	delete(i.env, "REDIS_URL")
	t.Setenv("PATH", t.TempDir())
	const want = "--data: there is no redis-server in the PATH. Install it (apt-get install redis-server, brew install redis)"
	require.ErrorContains(t, serveOnData(t, i, dir), want)
	require.Contains(t, i.check(), want)
	require.NoDirExists(t, dir)
}

func TestCheckLooksAtTheFolder(t *testing.T) {
	t.Parallel()
	i, dir := newInstallation(t, slacksim.Config{}), dataFolder(t)
	delete(i.env, "REDIS_URL")
	i.o.Data = dir
	found := i.check()
	require.Contains(t, found, "0 wrong")
	require.Contains(t, found, "nobody works on "+dir+", and a bot can")
	require.NoDirExists(t, dir, "a check writes nothing")

	require.NoError(t, os.Symlink(dir+"-gone", dir))
	const want = "-gone, which is not there; make that folder, or name another"
	require.Contains(t, i.check(), want)
	_, err := openData(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, want)
	require.NoError(t, os.Remove(dir))

	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Chmod(dir, 0o755)) // whatever the umask is
	require.Contains(t, i.check(), "run chmod 700 on it")
	require.NoError(t, os.Chmod(dir, 0o700))

	end, err := openData(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	found = i.check()
	require.Contains(t, found, "a bot works on "+dir)
	require.Contains(t, found, "keeps every acknowledged write (appendonly yes, appendfsync always)")
	require.NoError(t, end())
	require.Contains(t, i.check(), "keeps every acknowledged write (appendonly yes, appendfsync always)", "it is asked without its bot too")
	statetest.Await(t, "nobody to work on it", func() bool {
		open, err := redisserver.Check(dir)
		return err == nil && !open
	})
}
