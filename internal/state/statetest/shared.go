package statetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Main runs the tests of a package on one redis-server, which it starts, hands
// to them and ends; TestMain calls it. Tests share it under prefixes of their
// own. It is for many short tests, and for those in a synctest bubble: one that
// had to wait for a miniredis of its own would keep the clock of the bubble from
// moving, and the race detector slows a miniredis down several times.
func Main(m *testing.M, use func(redis.UniversalClient)) {
	c, stop, err := shared()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer stop()
	use(c)
	m.Run()
}

func shared() (c *redis.Client, stop func(), err error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", missing, err)
	}
	dir, err := os.MkdirTemp("", "cs")
	if err != nil {
		return nil, nil, err
	}
	socket := filepath.Join(dir, "s")
	ctx, cancel := context.WithTimeout(context.Background(), startup)
	defer cancel()
	cmd := exec.Command(binary, "--save", "", "--appendonly", "no", "--dir", dir, "--port", "0", "--unixsocket", socket) //nolint:gosec,noctx // the arguments are ours; stop ends it
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	c = redis.NewClient(&redis.Options{
		Network: "unix", Addr: socket, ContextTimeoutEnabled: true, MaintNotificationsConfig: quiet(),
		PoolSize: 512, // waiting for a connection would share timers with other bubbles, which panics
	})
	stop = func() {
		_ = c.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	for c.Ping(ctx).Err() != nil {
		select {
		case <-ctx.Done():
			stop()
			return nil, nil, fmt.Errorf("waited %s for redis-server to answer", startup)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return c, stop, nil
}
