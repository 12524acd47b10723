package redisserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/countersign/countersign/internal/state"
)

// The files of a folder beside those of Redis and its socket.
const (
	botLock   = "bot.lock"   // locked by the process that works on the folder
	redisLock = "redis.lock" // locked by its redis-server
)

// settings are those of a server whose data stays: it acknowledges a write when it
// is on the disk, forgets nothing, and holds documents compactly. Versions before 7 know
// the last one by this name only.
var settings = []string{
	"--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "no", "--aof-load-truncated", "yes", "--save", "",
	"--maxmemory-policy", "noeviction", "--loglevel", "notice", "--hash-max-ziplist-value", "512",
}

// A Folder is one with data that stays, and the redis-server on it, which is
// started again if it ends. One process at a time has it open.
type Folder struct {
	dir    string
	binary Binary
	log    *slog.Logger
	lock   *os.File
	said   *said
	server *Server // the last one; keep's, once that runs
	stop   context.CancelFunc
	kept   chan struct{} // closed when nothing is started any more
}

// Open makes the folder if it is missing, starts a redis-server on it, and returns
// when that answers. A server that outlived its process is ended before. If another
// process has the folder open, the error is an [InUseError].
func Open(ctx context.Context, dir string, log *slog.Logger) (*Folder, error) {
	return open(ctx, dir, log, asks)
}

func open(ctx context.Context, dir string, log *slog.Logger, tries int) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	binary, err := Find(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkSocket(dir); err != nil {
		return nil, err
	}
	if err := prepare(dir); err != nil {
		return nil, err
	}
	if err := cmp.Or(binary.reads(dir), complete(dir)); err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, binary: binary, log: log, kept: make(chan struct{})}
	if f.lock, err = own(ctx, dir, tries); err != nil {
		return nil, err
	}
	if err = sign(f.lock); err == nil {
		err = f.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.lock.Close())
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	go f.keep(keeping)
	return f, nil
}

// Check returns what is wrong with the folder, before it is opened, and whether a
// process has it open. It changes nothing.
func Check(dir string) (open bool, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return false, err
	}
	info, err := look(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil:
		err = judge(dir, info)
	}
	if err = errors.Join(err, checkSocket(dir)); err == nil {
		err = errors.Join(complete(dir), writable(dir))
	}
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(filepath.Join(dir, botLock)); err != nil {
		return false, nil //nolint:nilerr // nothing was kept there yet
	}
	f, err := lock(filepath.Join(dir, botLock))
	if f == nil {
		return err == nil, err
	}
	return false, f.Close()
}

// prepare makes the folder, or returns an error if one is there that others can read.
func prepare(dir string) error {
	err := os.MkdirAll(filepath.Dir(dir), 0o755) //nolint:gosec // only the folder itself is private
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := look(dir)
	if err != nil {
		return err
	}
	return judge(dir, info)
}

// look returns what the folder is, or [fs.ErrNotExist] if there is nothing. A link that
// leads nowhere is something: no folder can be made in its place.
func look(dir string) (fs.FileInfo, error) {
	info, err := os.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	if to, is := os.Readlink(dir); is == nil {
		return nil, fmt.Errorf("%s is a link to %s, which is not there; make that folder, or name another", dir, to)
	}
	return nil, err
}

// errOthers is that a folder is not this user's.
var errOthers = errors.New("belongs to another user")

// judge returns an error if data must not be kept in the folder.
func judge(dir string, info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("%s is a file; name a folder", dir)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s %w; run the bot as that user, or name a folder of its own", dir, errOthers)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("other users can look into %s (its mode is %04o); run chmod 700 on it", dir, mode)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(files, func(f fs.DirEntry) bool { return f.Name() == name })
	}
	switch {
	case has(botLock):
		return nil
	case has(logFolder):
		return fmt.Errorf("%s holds the log of a Redis in %s, but no %s: if it is the folder of a bot, copied without that file, run touch %s as the user of the bot; otherwise name another folder",
			dir, logFolder, botLock, filepath.Join(dir, botLock))
	case len(files) > 0:
		return fmt.Errorf("%s holds other files, such as %s; name a folder that is empty or not there yet", dir, files[0].Name())
	}
	return nil
}

// The files of Redis 7 and newer. The manifest names the others.
const (
	logFolder = "appendonlydir"
	manifest  = "appendonly.aof.manifest"
)

// reads returns an error if the binary would not find the data of the folder: before
// version 7, Redis kept them in another file, and starts empty without it.
func (b Binary) reads(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, logFolder)); err != nil || !strings.HasPrefix(b.Version, "6.") {
		return nil //nolint:nilerr // there are no data of that form
	}
	return fmt.Errorf("%s was written by Redis 7 or newer, and %s is version %s, which would not find its data; install the newer one", dir, b.Path, b.Version)
}

// emptyBase is more than the base of a log takes that holds nothing, in bytes. A first
// start that was killed may leave one.
const emptyBase = 1 << 10

// complete returns an error if the manifest of the log is missing: Redis would start
// empty, and write over what is there.
func complete(dir string) error {
	files, err := os.ReadDir(filepath.Join(dir, logFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(files, func(f fs.DirEntry) bool { return f.Name() == manifest }) {
		return nil
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			return err
		}
		if strings.HasSuffix(f.Name(), ".incr.aof") && info.Size() > 0 || strings.Contains(f.Name(), ".base.") && info.Size() > emptyBase {
			return fmt.Errorf("%s has no %s, without which Redis would start empty; restore it, or the whole folder, from a backup",
				filepath.Join(dir, logFolder), manifest)
		}
	}
	return nil
}

// writable returns an error if the folder, or the one in which it would be made, cannot be
// written.
func writable(dir string) error {
	at := dir
	for {
		err := unix.Access(at, unix.W_OK|unix.X_OK)
		if above := filepath.Dir(at); errors.Is(err, fs.ErrNotExist) && above != at {
			at = above
			continue
		}
		if err != nil {
			return fmt.Errorf("%s cannot be written: %w; name a folder that can", at, err)
		}
		return nil
	}
}

// leastRoom is how much room a disk has that is not full, in bytes.
const leastRoom = 1 << 20

// full says that the disk of the folder is full, if it is.
func (f *Folder) full() string {
	var disk unix.Statfs_t
	if err := unix.Statfs(f.dir, &disk); err != nil || int64(disk.Bavail)*int64(disk.Bsize) >= leastRoom { //nolint:gosec,unconvert // their types differ between systems
		return ""
	}
	return "\nThe disk of " + f.dir + " is full. Free some space; the bot then starts redis-server again by itself."
}

// URL is where Redis is.
func (f *Folder) URL() string { return URL(f.dir) }

// Close stops the server and leaves the folder to others.
func (f *Folder) Close() error {
	f.stop()
	<-f.kept
	f.said.setBusy(false)
	return errors.Join(f.server.Stop(), f.lock.Close())
}

// start starts a server and returns when it answers.
func (f *Folder) start(ctx context.Context) error {
	held, err := f.claim(ctx)
	if err != nil {
		return err
	}
	f.said = &said{log: f.log}
	cmd := exec.Cmd{Path: f.binary.Path, Stdout: f.said, Stderr: f.said, ExtraFiles: []*os.File{held}}
	server, err := start(f.dir, cmd, settings...)
	_ = held.Close() // the server has it now
	if err != nil {
		return err
	}
	f.server = server
	if err := f.answers(ctx); err != nil {
		return errors.Join(err, server.Stop())
	}
	f.said.setBusy(true)
	f.log.InfoContext(ctx, "redis-server answers", slog.String("data", f.dir), slog.String("version", f.binary.Version))
	return nil
}

// answers returns when the server answers: it may have to read its log first.
func (f *Folder) answers(ctx context.Context) error {
	client, err := state.Dial(f.URL())
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing was written
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if listens(ctx, f.dir) && client.Ping(ctx).Err() == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for redis-server: %w", ctx.Err())
		case <-f.server.Ended():
			return fmt.Errorf("redis-server ended before it answered. It said: %s", f.said.words()+f.full())
		case <-tick.C:
		}
	}
}

// listens reports whether a server answers on the socket.
func listens(ctx context.Context, dir string) bool {
	c, err := new(net.Dialer).DialContext(ctx, "unix", socket(dir))
	if err == nil {
		_ = c.Close() // it was never used
	}
	return err == nil
}
