// Package regular opens regular files, and nothing else. Opening a named pipe to which
// nobody writes would never return, and reading a device may never end.
package regular

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Open opens the regular file at the path for reading. It follows links, and does not wait
// for a pipe that is there instead. The error is [os.ErrNotExist] if nothing is there.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, err
	}
	about, err := f.Stat()
	if err == nil && !about.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Read reads at most so many bytes of the regular file at the path, from its start.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, most))
	return raw, errors.Join(err, f.Close())
}
