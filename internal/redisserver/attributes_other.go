//go:build unix && !linux

package redisserver

import "syscall"

// attributes are those of the child: an interrupt at the terminal is not for it.
// Only Linux tells it that this process has died.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
