// Package redisserver runs a private redis-server beside this process: it listens
// on a socket in a folder and on no port, and on Linux it ends when this process
// does, even if that was killed. [Open] is for a folder whose data stays: one
// process at a time works on it.
package redisserver

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// patience is how long a server has to stop before it is killed.
const patience = 10 * time.Second

// A Server is a redis-server that this process has started.
type Server struct {
	cmd   *exec.Cmd
	ended chan struct{}
	dir   string
}

// Start starts a server that keeps its data in dir. The settings are further
// arguments of redis-server; its errors go to said. It returns before the server
// answers.
func Start(ctx context.Context, dir string, said io.Writer, settings ...string) (*Server, error) {
	binary, err := Find(ctx)
	if err != nil {
		return nil, err
	}
	return start(dir, exec.Cmd{Path: binary.Path, Stderr: said}, settings...)
}

// start starts the command with these settings.
func start(dir string, cmd exec.Cmd, settings ...string) (*Server, error) {
	if err := checkSocket(dir); err != nil {
		return nil, err
	}
	s := &Server{ended: make(chan struct{}), dir: dir, cmd: &cmd}
	cmd.Args = append([]string{cmd.Path, "--port", "0", "--unixsocket", socket(dir), "--unixsocketperm", "700", "--dir", dir}, settings...)
	cmd.Env, cmd.SysProcAttr = environ(), attributes()
	cmd.WaitDelay = time.Second // a process of it that rewrites its log may outlive it, with its output open
	started := make(chan error)
	go s.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	return s, nil
}

// run starts the server and waits for its end. On Linux the server is told to stop
// when the thread ends that started it, so that thread does nothing else until then.
func (s *Server) run(started chan<- error) {
	runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
	defer close(s.ended)
	err := s.cmd.Start()
	started <- err
	if err == nil {
		_ = s.cmd.Wait() // how it ended does not matter
	}
}

func socket(dir string) string { return filepath.Join(dir, "redis.sock") }

// longest is how many bytes the path of a socket may have.
const longest = len(syscall.RawSockaddrUnix{}.Path) - 1

func checkSocket(dir string) error {
	if path := socket(dir); len(path) > longest {
		return fmt.Errorf("the socket %s has a path of %d bytes, and this system allows %d; name a folder with a shorter path", path, len(path), longest)
	}
	return nil
}

// URL is where the server of the folder listens.
func URL(dir string) string { return (&url.URL{Scheme: "unix", Path: socket(dir)}).String() }

// URL is where the server listens.
func (s *Server) URL() string { return URL(s.dir) }

// Ended is closed when the server has ended.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Stop ends the server as Redis wants to be ended: it writes what it has to write.
// A server that takes too long is killed, which is an error.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-s.ended:
		return nil
	case <-late.C:
		_ = s.cmd.Process.Kill() // it may have ended by now
		<-s.ended
		return fmt.Errorf("redis-server did not stop within %s, and was killed", patience)
	}
}
