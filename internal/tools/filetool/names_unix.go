//go:build unix

package filetool

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// countNames returns how many names (hard links) the open file has.
func countNames(f *os.File) (uint64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	return uint64(s.Nlink), nil //nolint:unconvert // it is narrower on other systems
}

// identity tells the open file from every other one of its folder, also from one
// that has its name later. It leaves out the device: replicas may have mounted
// the same folder under different ones.
func identity(f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.ErrUnsupported
	}
	return fmt.Sprint(s.Ino), nil
}
