package strictyaml

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// patience is how long a named pipe may have nobody who writes to it. The system would
// wait for ever, and not end with the context of the caller.
const patience = 10 * time.Second

// ReadFile reads a file for [Open], and no more of it than shows that it is too large: a
// device such as /dev/zero has no end. A named pipe to which nobody writes is an error. The
// pipe of a process substitution has its writer from the start.
func ReadFile(path string) ([]byte, error) { return readFile(path, time.After(patience)) }

// OpenFile opens a file to read. A named pipe to which nobody writes is an error.
func OpenFile(path string) (*os.File, error) { return open(path, time.After(patience)) }

// ReadWhole is ReadFile for a file that is not given to [Open]: one with more bytes than
// that takes is an error.
func ReadWhole(path string) ([]byte, error) {
	src, err := ReadFile(path)
	if err == nil && len(src) > mostBytes {
		return nil, fmt.Errorf("%s: %w", path, tooLong())
	}
	return src, err
}

// readFile reads a file. If it is a named pipe, its writer must come before enough.
func readFile(path string, enough <-chan time.Time) ([]byte, error) {
	f, err := open(path, enough)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, mostBytes+1))
}

func open(path string, enough <-chan time.Time) (*os.File, error) {
	is, err := os.Stat(path)
	if err != nil || is.Mode()&os.ModeNamedPipe == 0 {
		return os.Open(path) //nolint:gosec // the operator names the file
	}
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(path) //nolint:gosec // the operator names the file
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.file, o.err
	case <-enough:
	}
	// While the pipe is open for both, the system opens it for reading at once.
	if both, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil { //nolint:gosec // the operator names the file
		defer func() { _ = both.Close() }()
		if o := <-done; o.err == nil {
			_ = o.file.Close()
		}
	}
	return nil, fmt.Errorf("%s is a named pipe, and nothing writes to it", path)
}
