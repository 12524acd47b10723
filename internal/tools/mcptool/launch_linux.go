package mcptool

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// powers are the capabilities with which root could read this process, or the
// memory of the machine, all the same.
var powers = []uintptr{unix.CAP_SYS_PTRACE, unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_PERFMON, unix.CAP_BPF}

// launch starts the program so that it cannot read this process, and is killed
// when this process dies. ended is closed once it was waited for.
//
// The kernel sends the signal when the thread ends that started the program, so that
// thread does nothing else meanwhile. It drops its own powers first, because the program
// inherits them.
func launch(cmd *exec.Cmd, ended chan<- struct{}) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide this process from the program: %w", err)
	}
	if err := keepDescriptors(); err != nil {
		return fmt.Errorf("keep the descriptors of this process from the program: %w", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		err := dropPowers()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			_ = cmd.Wait()
			kill(cmd) // what it has started and left behind
		}
		close(ended)
	}()
	return <-started
}

// keepDescriptors marks every descriptor as one that no program gets: Go does
// that with those that it opens, and not with those that this process was given.
func keepDescriptors() error {
	const first = 3 // after those that [exec.Cmd] sets
	if unix.CloseRange(first, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	open, err := os.ReadDir("/proc/self/fd") // a kernel before 5.11
	for _, d := range open {
		if fd, bad := strconv.Atoi(d.Name()); bad == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// dropPowers takes the powers out of what programs of this thread can get: out of the
// bounding set, and out of what they inherit, which that set does not limit.
func dropPowers() error {
	for _, p := range powers {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, p, 0, 0, 0)
		if err != nil || has == 0 {
			continue // the kernel does not know it, or it is gone
		}
		err = unix.Prctl(unix.PR_CAPBSET_DROP, p, 0, 0, 0)
		if errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
			continue // a program of this user gets no powers but those that it inherits
		}
		if err != nil {
			return fmt.Errorf("the program would have powers with which it could read this process; run the bot as another user than root: %w", err)
		}
	}
	thread := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&thread, &sets[0]); err != nil {
		return fmt.Errorf("read the capabilities that the program inherits: %w", err)
	}
	for _, p := range powers {
		sets[p/32].Inheritable &^= 1 << (p % 32) // the ambient set follows
	}
	if err := unix.Capset(&thread, &sets[0]); err != nil {
		return fmt.Errorf("take capabilities from the program: %w", err)
	}
	return nil
}

func terminate(cmd *exec.Cmd) { _ = unix.Kill(-cmd.Process.Pid, unix.SIGTERM) }

func kill(cmd *exec.Cmd) { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
