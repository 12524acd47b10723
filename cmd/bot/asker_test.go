package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/state"
)

// A Redis that does not answer is asked once, and what would be asked next fails too.
func TestACommandWaitsOnceForARedisThatHangs(t *testing.T) {
	t.Parallel()
	a := &asker{most: time.Millisecond}
	asked := 0
	hangs := func(ctx context.Context, _ []redis.Cmder) error {
		asked++
		<-ctx.Done()
		return errors.New("i/o timeout")
	}
	for range 2 {
		cmd := redis.NewStatusCmd(t.Context(), "ping")
		require.EqualError(t, a.ProcessPipelineHook(hangs)(t.Context(), []redis.Cmder{cmd}), "redis has not answered for 1ms")
		require.EqualError(t, cmd.Err(), "redis has not answered for 1ms")
	}
	require.Equal(t, 1, asked)
	one := func(context.Context, redis.Cmder) error { return nil }
	require.Error(t, a.ProcessHook(one)(t.Context(), redis.NewStatusCmd(t.Context(), "ping")))
	require.True(t, state.Passes(silence(time.Second)), "the start of the bot waits for such a Redis")

	a = &asker{most: time.Hour}
	late := func(context.Context, []redis.Cmder) error {
		return &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	}
	require.ErrorIs(t, a.ProcessPipelineHook(late)(t.Context(), nil), os.ErrDeadlineExceeded)
	require.EqualError(t, a.ProcessPipelineHook(hangs)(t.Context(), nil), "redis has not answered for 1h0m0s", "go-redis gave up")

	a = &asker{most: time.Hour}
	ended, end := context.WithCancel(t.Context())
	end()
	require.EqualError(t, a.ProcessPipelineHook(hangs)(ended, nil), "i/o timeout", "it was not waited for")
	require.NoError(t, a.ProcessHook(one)(t.Context(), redis.NewStatusCmd(t.Context(), "ping")))
}

// Ctrl-C ends a command that waits for an answer of Redis.
func TestACommandThatWaitsForRedisCanBeInterrupted(t *testing.T) {
	t.Parallel()
	h := newHanging(t, miniredis.RunT(t).Addr())
	e := config.Environment{RedisURL: config.NewSecret("redis://" + h.Addr().String() + "?read_timeout=1h")}
	ctx, interrupt := context.WithCancel(t.Context())
	var c config.Config
	c.Redis.Durability = state.None
	store, err := openForCommand(ctx, c, e, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	h.hang()
	failed := make(chan error, 1)
	go func() { failed <- store.Ping(context.WithoutCancel(ctx)) }()
	<-h.asked
	interrupt()
	require.ErrorIs(t, <-failed, redis.ErrClosed)
	require.NoError(t, store.Close())
}

// A hangingRedis passes on what clients ask and what the Redis behind it answers, until it
// hangs.
type hangingRedis struct {
	net.Listener
	asked chan struct{} // each time it does not answer

	mu    sync.Mutex
	hangs bool
}

func newHanging(t *testing.T, behind string) *hangingRedis {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &hangingRedis{Listener: l, asked: make(chan struct{}, 100)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", behind)
			if err != nil {
				return
			}
			go h.pass(client, server)
			go h.pass(server, client)
		}
	}()
	return h
}

func (h *hangingRedis) hang() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hangs = true
}

func (h *hangingRedis) pass(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	part := make([]byte, 4096)
	for {
		n, err := from.Read(part)
		if err != nil {
			return
		}
		h.mu.Lock()
		hangs := h.hangs
		h.mu.Unlock()
		if hangs {
			h.asked <- struct{}{}
			continue
		}
		if _, err := to.Write(part[:n]); err != nil {
			return
		}
	}
}
