package config

import (
	"fmt"
	"os"
)

// OpenRegular opens a file that is no named pipe: opening one to which nobody writes would
// never return. The error is [os.ErrNotExist] if nothing is there.
func OpenRegular(path string) (*os.File, error) {
	if about, err := os.Stat(path); err == nil && !about.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path) //nolint:gosec // the operator names the file
}
