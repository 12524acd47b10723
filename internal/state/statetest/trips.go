package statetest

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Trips is a hook of a client. It keeps the names of the commands that the client
// sends, those of each round trip together, without those with which a connection
// begins.
type Trips struct {
	Of func(redis.Cmder) bool // chooses the commands; nil: all of them

	mu   sync.Mutex
	sent [][]string
}

// DialHook implements [redis.Hook].
func (t *Trips) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (t *Trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return Hook(t.pass).ProcessHook(next)
}

// ProcessPipelineHook implements [redis.Hook].
func (t *Trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return Hook(t.pass).ProcessPipelineHook(next)
}

func (t *Trips) pass(_ context.Context, cmds []redis.Cmder, send func() error) error {
	t.note(cmds)
	return send()
}

func (t *Trips) note(cmds []redis.Cmder) {
	var names []string
	for _, c := range cmds {
		if name := c.Name(); name != "hello" && name != "client" && (t.Of == nil || t.Of(c)) {
			names = append(names, name)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(names) > 0 {
		t.sent = append(t.sent, names)
	}
}

// Taken returns what was sent since the last call.
func (t *Trips) Taken() [][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	sent := t.sent
	t.sent = nil
	return sent
}
