//go:build unix

package hook

import (
	"os"
	"syscall"
)

// ownedBy reports whether a user owns a file.
func ownedBy(about os.FileInfo, user int) bool {
	stat, ok := about.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == int64(user)
}
