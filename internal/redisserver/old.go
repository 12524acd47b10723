package redisserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/state"
)

// How long an old server is waited for.
const (
	step   = 100 * time.Millisecond
	asks   = int(time.Second / step) // it is asked to end as often
	killed = int(patience / step)    // then it is killed, if it told which process it is
	given  = int(time.Minute / step) // then it is given up
)

// claim returns the lock that the next server on the folder holds. Who holds it is
// a server whose process died without ending it, or what is left of one that
// crashed: it is ended before, so that there are never two.
//
// The lock says whether there is one, and its socket which process that is: a
// number in a file could be that of any other process by now.
func (f *Folder) claim(ctx context.Context) (*os.File, error) {
	path, pid := filepath.Join(f.dir, redisLock), 0
	for n := 0; ; n++ {
		held, err := lock(path)
		if held != nil || err != nil {
			return held, err
		}
		switch {
		case n == given:
			return nil, fmt.Errorf("a redis-server that was started before still has %s open and does not end; end it, and start the bot again", path)
		case n == killed && pid > 0:
			f.log.WarnContext(ctx, "the redis-server that was started before does not end; it is killed", slog.Int("pid", pid))
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by now
		case n%asks == 0:
			if told := f.endOld(ctx); told > 0 {
				pid = told
			}
			f.log.WarnContext(ctx, "waiting for the redis-server that was started before to end", slog.String("data", f.dir), slog.Int("pid", pid))
		}
		if !sleep(ctx, step) {
			return nil, fmt.Errorf("wait for the old redis-server to end: %w", ctx.Err())
		}
	}
}

// endOld asks the server that listens on the folder's socket to end, and returns
// which process it is, or 0.
func (f *Folder) endOld(ctx context.Context) int {
	client, err := state.Dial(f.URL())
	if err != nil {
		return 0
	}
	defer func() { _ = client.Close() }() // nothing was written
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	pid, _ := strconv.Atoi(infoOf(ctx, client, "process_id")) // 0: it does not tell
	_ = client.Shutdown(ctx).Err()                            // the lock tells whether it has ended
	return pid
}

func infoOf(ctx context.Context, client redis.UniversalClient, field string) string {
	info, _ := client.InfoMap(ctx, "server").Result() // what is not told is empty
	return info["Server"][field]
}

// Reach has the Redis on a folder answer for one command. If a bot has the folder
// open, that is the bot's; otherwise one is started, which the function ends. Root
// reaches that of another user's bot too, but starts none among the files of that user.
func Reach(ctx context.Context, dir string, log *slog.Logger) (end func() error, err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("no bot has kept anything there; bot serve makes the folder: %w", err)
	}
	for range asks {
		f, err := open(ctx, dir, log, 1)
		if err == nil {
			return f.Close, nil
		}
		_, used := errors.AsType[*InUseError](err)
		others := errors.Is(err, errOthers)
		if (used || others) && listens(ctx, dir) {
			return func() error { return nil }, nil
		}
		if others {
			return nil, fmt.Errorf("no bot works there now, and %w", err)
		}
		if !used {
			return nil, err
		}
		if !sleep(ctx, step) { // the bot may be about to start its server
			break
		}
	}
	return nil, fmt.Errorf("a process works on %s, but its Redis does not answer", dir)
}
