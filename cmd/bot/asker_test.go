package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
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
	m := miniredis.RunT(t)
	e := config.Environment{RedisURL: config.NewSecret("redis://" + m.Addr() + "?read_timeout=1h")}
	ctx, interrupt := context.WithCancel(t.Context())
	var c config.Config
	c.Redis.Durability = state.None
	store, err := openForCommand(ctx, c, e, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	t.Cleanup(func() { close(answer) })
	m.Server().SetPreHook(func(*server.Peer, string, ...string) bool {
		asked <- struct{}{}
		<-answer
		return true
	})
	failed := make(chan error, 1)
	go func() { failed <- store.Ping(context.WithoutCancel(ctx)) }()
	<-asked
	interrupt()
	require.ErrorIs(t, <-failed, redis.ErrClosed)
	require.NoError(t, store.Close())
}
