//go:build unix

package filetool

import (
	"errors"
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
