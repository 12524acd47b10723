package filetool

import (
	"os"
	"syscall"
)

// countNames returns how many names (hard links) the open file has.
func countNames(f *os.File) (uint64, error) {
	var info syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &info); err != nil {
		return 0, os.NewSyscallError("GetFileInformationByHandle", err)
	}
	return uint64(info.NumberOfLinks), nil
}
