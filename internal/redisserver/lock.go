package redisserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// An InUseError says that another process works on the folder.
type InUseError struct {
	Dir string
	PID int // 0: not known
}

func (e *InUseError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s works on %s already; stop it first, or name another folder", who, e.Dir)
}

// lock opens the file and locks it, and returns nil if another process has it
// locked. The kernel frees a lock when no process has the file open any more that
// was locked: a process that was killed leaves none behind.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator names the folder
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, f.Close()
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
}

// own locks the folder for this process. It tries so many times, since a process
// that only looks has the lock for a moment.
func own(ctx context.Context, dir string, tries int) (*os.File, error) {
	path := filepath.Join(dir, botLock)
	for n := range tries {
		if n > 0 && !sleep(ctx, step) {
			break
		}
		if f, err := lock(path); f != nil || err != nil {
			return f, err
		}
	}
	return nil, &InUseError{dir, signed(path)}
}

// sign writes into a lock file which process holds it, for people.
func sign(f *os.File) error {
	_, err := f.WriteAt(fmt.Appendf(nil, "%-20d\n", os.Getpid()), 0)
	return err
}

// signed returns which process has written into a lock file.
func signed(path string) int {
	f, err := os.Open(path) //nolint:gosec // see lock
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }() // it was only read
	text, _ := io.ReadAll(io.LimitReader(f, 64))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text))) // 0 for what is no number
	return pid
}
