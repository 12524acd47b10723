package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

var (
	server redis.UniversalClient // shared by all tests of the package
	stores atomic.Int64          // that were opened on it, each with a prefix of its own
)

func TestMain(m *testing.M) {
	statetest.Main(m, func(c redis.UniversalClient) { server = c })
}

// A hooked store is the store that is shipped, with hooks around its commits.
type hooked struct {
	*state.Store
	before   func(n int, c agentrun.Commit) error // called before the nth commit is made
	after    func(n int, c agentrun.Commit) error // called after it was made
	volatile func() bool                          // whether what was stored may be lost
	replaced func()                               // called once, before Confirm: another server takes the place

	mu      sync.Mutex
	n       int
	commits []agentrun.Commit // that were made, in order
}

func newStore(t *testing.T, now func() time.Time) *hooked {
	t.Helper()
	store, err := state.Open(t.Context(), state.Options{
		Client: server, Prefix: fmt.Sprintf("t%d", stores.Add(1)), Now: now,
	})
	require.NoError(t, err)
	return &hooked{Store: store}
}

func (h *hooked) Commit(ctx context.Context, c agentrun.Commit) error {
	h.mu.Lock()
	h.n++
	n := h.n
	h.mu.Unlock()
	if h.before != nil {
		if err := h.before(n, c); err != nil {
			return err
		}
	}
	if err := h.Store.Commit(ctx, c); err != nil {
		return err
	}
	h.mu.Lock()
	h.commits = append(h.commits, c)
	h.mu.Unlock()
	if h.after != nil {
		return h.after(n, c)
	}
	return nil
}

func (h *hooked) Confirm(ctx context.Context, id string) error {
	if f := h.replaced; f != nil {
		h.replaced = nil
		f()
	}
	if h.volatile != nil && h.volatile() {
		return approvals.ErrNotDurable
	}
	return h.Store.Confirm(ctx, id)
}

// loses is a failover to a server that has nothing of the store.
func (h *hooked) loses(t *testing.T) {
	t.Helper()
	keys, err := server.Keys(t.Context(), h.Prefix()+":{p*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	require.NoError(t, server.Del(t.Context(), keys...).Err())
}

// opened lists the batches that commits have opened.
func (h *hooked) opened() []approvals.BatchID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []approvals.BatchID
	for _, c := range h.commits {
		if c.Opens != nil {
			ids = append(ids, c.Opens.Batch.ID)
		}
	}
	return ids
}

// move applies commands to a batch one after the other, as the desk would, but
// at the times that they say. The arguments are those of an amendment.
func (h *hooked) move(id approvals.BatchID, args json.RawMessage, cmds ...approvals.Command) error {
	for _, cmd := range cmds {
		err := approvals.ErrConflict
		for errors.Is(err, approvals.ErrConflict) {
			err = h.moveOnce(id, args, cmd)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *hooked) moveOnce(id approvals.BatchID, args json.RawMessage, cmd approvals.Command) error {
	ctx := context.Background()
	before, err := h.Batch(ctx, id)
	if err != nil {
		return err
	}
	next, events, err := before.Apply(cmd)
	if err != nil || len(events) == 0 {
		return err
	}
	c := approvals.BatchCommit{Before: before, Batch: next, Events: events}
	if amend, ok := cmd.(approvals.Amend); ok {
		for _, a := range next.Approvals {
			if a.Call.ID == amend.Call {
				c.Args = map[approvals.Digest]json.RawMessage{a.Call.Digest: args}
			}
		}
	}
	return h.CommitBatch(ctx, c)
}

// key is a key of the store, for what no program of ours does.
func (h *hooked) key(t *testing.T, kind, id string) string {
	t.Helper()
	n, err := approvals.Partition(id)
	require.NoError(t, err)
	return fmt.Sprintf("%s:{p%02d}:%s:%s", h.Prefix(), n, kind, id)
}
