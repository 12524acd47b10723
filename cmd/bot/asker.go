package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// An asker bounds how long a command waits for one answer of Redis, with all that
// go-redis does to get it. After an answer that did not come it asks for no other one.
// What [state.Browser] asks of the single nodes of a cluster is not bounded.
type asker struct {
	most time.Duration
	over atomic.Bool
}

// DialHook implements [redis.Hook].
func (*asker) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (a *asker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return a.ask(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (a *asker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		err := a.ask(ctx, func(ctx context.Context) error { return next(ctx, all) })
		if errors.Is(err, silence(a.most)) {
			for _, cmd := range all {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

func (a *asker) ask(ctx context.Context, question func(context.Context) error) error {
	if a.over.Load() {
		return silence(a.most)
	}
	asking, cancel := context.WithTimeout(ctx, a.most)
	defer cancel()
	err := question(asking)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if asking.Err() != nil {
		err = silence(a.most)
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() { // go-redis may give up sooner
		a.over.Store(true)
	}
	return err
}

// A silence is the error of a Redis that has not answered for so long. It is a [net.Error],
// as that of go-redis would be.
type silence time.Duration

// Timeout implements [net.Error].
func (silence) Timeout() bool { return true }

// Temporary implements [net.Error].
func (silence) Temporary() bool { return true }

func (s silence) Error() string {
	return fmt.Sprintf("redis has not answered for %s", time.Duration(s))
}
