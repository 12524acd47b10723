//go:build !unix

package hook

import "os"

// ownedBy is not known here.
func ownedBy(os.FileInfo, int) bool { return true }
