package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// patience is how long a named pipe may have nobody who writes to it. The system would
// wait for ever, and not end with the context of the caller.
const patience = 10 * time.Second

// silence is how long the writer of a pipe that is read to its end may send nothing. The
// command of a process substitution may ask a person first.
const silence = time.Minute

// ReadFile reads a file for [Open], and no more of it than shows that it is too large: a
// device such as /dev/zero has no end. A named pipe to which nobody writes, or whose writer
// keeps it open and is silent, is an error. The pipe of a process substitution has its
// writer from the start.
func ReadFile(path string) ([]byte, error) { return readFile(path, time.After(patience), silence) }

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

// readFile reads a file. If it is a named pipe, its writer must come before enough, and
// then never be silent for so long.
func readFile(path string, enough <-chan time.Time, silence time.Duration) ([]byte, error) {
	f, err := open(path, enough)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var from io.Reader = f
	if is, err := f.Stat(); err == nil && is.Mode()&os.ModeNamedPipe != 0 {
		late := time.AfterFunc(silence, func() { _ = f.SetReadDeadline(time.Unix(0, 1)) })
		defer late.Stop()
		from = &heard{f, func() { late.Reset(silence) }}
	}
	src, err := io.ReadAll(io.LimitReader(from, mostBytes+1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("%s is a pipe, and its writer neither sends anything nor closes it", path)
	}
	return src, err
}

// heard calls came after each read that brought something.
type heard struct {
	io.Reader

	came func()
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.came()
	}
	return n, err
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
	// While the pipe is open for both, the system opens it for reading at once. If it is not
	// there any more, it is left alone: its place may have been taken by a file.
	if both, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil { //nolint:gosec // the operator names the file
		defer func() { _ = both.Close() }()
		if now, err := both.Stat(); err == nil && os.SameFile(is, now) {
			if o := <-done; o.err == nil {
				_ = o.file.Close()
			}
		}
	}
	return nil, fmt.Errorf("%s is a named pipe, and nothing writes to it", path)
}
