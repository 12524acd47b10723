// Package redisserver runs a private redis-server beside this process: it listens
// on a socket in a folder and on no port, and on Linux it ends when this process
// does, even if that was killed.
package redisserver

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// ErrMissing says that there is no redis-server, and how to get one.
var ErrMissing = errors.New("there is no redis-server in the PATH. Install it (apt-get install redis-server, brew install redis)")

// patience is how long a server has to stop before it is killed.
const patience = 10 * time.Second

// A Server is a redis-server that this process has started.
type Server struct {
	cmd   *exec.Cmd
	ended chan struct{}
	dir   string
}

// Start starts a server that keeps its data in dir. The settings are further
// arguments of redis-server; what it says goes to said. It returns before the
// server answers.
func Start(dir string, said io.Writer, settings ...string) (*Server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrMissing
	}
	s := &Server{ended: make(chan struct{}), dir: dir}
	args := append([]string{"--port", "0", "--unixsocket", s.socket(), "--unixsocketperm", "700", "--dir", dir}, settings...)
	s.cmd = exec.Command(binary, args...) //nolint:gosec,noctx // the arguments are ours; Stop ends it
	s.cmd.Stderr = said
	s.cmd.SysProcAttr = attributes()
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

func (s *Server) socket() string { return filepath.Join(s.dir, "redis.sock") }

// URL is where the server listens.
func (s *Server) URL() string { return "unix://" + s.socket() }

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
