package config

import (
	"fmt"
	"os"
)

// openRegular opens a file that is read again whenever it changes. Only a regular file can
// be: opening a named pipe to which nobody writes would never return.
func openRegular(path string) (*os.File, error) {
	if about, err := os.Stat(path); err == nil && !about.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path) //nolint:gosec // the operator names the file
}
