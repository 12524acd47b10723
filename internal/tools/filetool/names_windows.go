package filetool

import (
	"fmt"
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

// identity tells the open file from every other one of its folder, also from one
// that has its name later.
func identity(f *os.File) (string, error) {
	var info syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &info); err != nil {
		return "", os.NewSyscallError("GetFileInformationByHandle", err)
	}
	return fmt.Sprint(uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)), nil
}
