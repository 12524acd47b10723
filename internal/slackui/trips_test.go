package slackui_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// roundTrips keeps the first command of each round trip of a client.
type roundTrips struct {
	mu    sync.Mutex
	names []string
}

func (s *roundTrips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.note(cmd.Name())
		return next(ctx, cmd)
	}
}

func (s *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.note(cmds[0].Name())
		return next(ctx, cmds)
	}
}

func (s *roundTrips) note(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains([]string{"hello", "client"}, name) { // a connection begins with these
		s.names = append(s.names, name)
	}
}

func (s *roundTrips) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}

// counted makes the store use a client of its own whose round trips are kept.
func (o *workspace) counted() *roundTrips {
	o.t.Helper()
	of, ok := server.(*redis.Client)
	require.True(o.t, ok)
	c := redis.NewClient(of.Options())
	seen := &roundTrips{}
	c.AddHook(seen)
	store, err := state.Open(o.t.Context(), state.Options{Client: c, Prefix: o.kept.Prefix(), Now: o.now.read})
	require.NoError(o.t, err)
	o.kept = store
	o.t.Cleanup(func() { require.NoError(o.t, c.Close()) })
	seen.names = nil
	return seen
}

func TestAClickReadsTheBatchOnceAndDecidesWithOneCommit(t *testing.T) {
	o, root, b := one(t)
	card := o.card("U0BOB", root)
	seen := o.counted()
	require.Equal(t, 200, o.press("U0BOB", card, "approve", 0).Status)
	require.Equal(t, []string{
		"hmget",   // the batch
		"get",     // the arguments, to know whether the card shows them all
		"hmget",   // the group
		"hmget",   // who is away
		"evalsha", // the decision
		"hmget",   // whether the message is known as a card
	}, seen.taken())
	require.Equal(t, approvals.Approved, o.status(b, 0))
}
