package redisserver

import "syscall"

// attributes are those of the child: an interrupt at the terminal is not for it, and
// it gets SIGTERM when the thread ends that has started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
