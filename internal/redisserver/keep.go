package redisserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// The times of a server that ends by itself.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 10 * time.Second
	steady      = time.Minute     // after which it counts as one that works
	looks       = 2 * time.Second // between two looks whether its socket is still there
)

// keep starts the server again whenever it has ended, until ctx ends.
func (f *Folder) keep(ctx context.Context) {
	defer close(f.kept)
	wait := firstWait
	look := time.NewTicker(looks)
	defer look.Stop()
	for {
		works := time.NewTimer(steady)
		for ended := false; !ended; {
			select {
			case <-ctx.Done():
				works.Stop()
				return
			case <-works.C:
				wait = firstWait
			case <-look.C:
				if f.cutOff() {
					f.log.ErrorContext(ctx, "the socket of redis-server was removed; redis-server is started again", slog.String("data", f.dir))
					_ = f.server.Stop() // however it ended, another one is started
				}
			case <-f.server.Ended():
				ended = true
			}
		}
		works.Stop()
		f.log.ErrorContext(ctx, "redis-server ended; it is started again", slog.Duration("wait", wait), slog.String("said", f.said.words()+f.full()))
		for {
			if !sleep(ctx, wait) {
				return
			}
			wait = min(2*wait, longestWait)
			err := f.startAgain(ctx)
			if err == nil {
				break
			}
			f.log.ErrorContext(ctx, "redis-server does not start; trying again", slog.Duration("wait", wait), slog.Any("err", err))
		}
	}
}

// startAgain starts a server unless the data is no longer here.
func (f *Folder) startAgain(ctx context.Context) error {
	if !f.isHere() {
		return fmt.Errorf("the folder with the data is no longer at %s: put it back", f.dir)
	}
	return f.start(ctx)
}

// isHere reports whether the folder that the bot has locked is still at its path. A server
// on another one would not have the data.
func (f *Folder) isHere() bool {
	held, err := f.lock.Stat()
	there, thereErr := os.Lstat(filepath.Join(f.dir, botLock))
	return err == nil && thereErr == nil && os.SameFile(held, there)
}

// cutOff reports whether the socket of the server was removed: it never makes another one,
// so nothing that connects from then on reaches it.
func (f *Folder) cutOff() bool {
	_, err := os.Lstat(socket(f.dir))
	return errors.Is(err, fs.ErrNotExist) && f.isHere()
}

// sleep reports whether ctx did not end meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
