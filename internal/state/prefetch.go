package state

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// prefetchKept is how long what was read ahead may be handed out. A request is
// answered sooner; what follows its answer reads again.
const prefetchKept = time.Second

// Prefetch returns a context in which the first read of any of these documents
// reads all of them, in one round trip, and a memo before the batch that it is
// about: that may be newer than the memo and is never older. Each is handed out once: whoever reads it
// again, after a lost race for example, reads it from the server. So is what this
// context's own commits have written meanwhile. It never fails: what cannot be
// read ahead is an error, or is missing, where it is read.
func (s *Store) Prefetch(ctx context.Context, r approvals.Reads) context.Context {
	p := &prefetch{conn: s.conn, found: make(map[string]redis.Cmder)}
	p.pipe = s.client.Pipeline()
	document := func(id string, key func(partition) hashKey) {
		if at, err := s.partitionOf(id); err == nil {
			k := key(at)
			p.found[string(k)] = readDocument(ctx, p.pipe, k)
		}
	}
	for _, m := range r.Memos {
		document(m.ID, func(at partition) hashKey { return at.memo(m.Surface, m.ID) })
	}
	for _, id := range r.Batches {
		document(string(id), func(at partition) hashKey { return at.batch(string(id)) })
	}
	for _, id := range r.Runs {
		document(string(id), func(at partition) hashKey { return at.run(string(id)) })
	}
	for _, a := range r.Args {
		if at, err := s.partitionOf(string(a.Batch)); err == nil {
			k := string(at.args(string(a.Batch), a.Digest))
			p.found[k] = p.pipe.Get(ctx, k)
		}
	}
	return context.WithValue(ctx, prefetchKey{}, p)
}

type prefetchKey struct{}

// A prefetch is what a context reads ahead.
type prefetch struct {
	conn *conn

	mu    sync.Mutex
	pipe  redis.Pipeliner // nil once it was sent
	at    time.Time       // when that was
	found map[string]redis.Cmder
}

// prefetched takes the answer for this key out of what the context reads ahead,
// which is read now if it was not. It is nil for any other key.
func (s *conn) prefetched(ctx context.Context, key string) redis.Cmder {
	p, ok := ctx.Value(prefetchKey{}).(*prefetch)
	if !ok || p.conn != s {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := p.found[key]
	if cmd == nil {
		return nil
	}
	delete(p.found, key)
	if p.pipe != nil {
		p.at = s.now()
		_, _ = p.pipe.Exec(ctx) // each command has its own error
		p.pipe = nil
	}
	if age := s.now().Sub(p.at); age < 0 || age > prefetchKept {
		return nil
	}
	return cmd
}

// written takes out of what the context reads ahead what a change may have written.
func (s *conn) written(ctx context.Context, c *change) {
	p, ok := ctx.Value(prefetchKey{}).(*prefetch)
	if !ok || p.conn != s {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range c.keys {
		delete(p.found, k)
	}
}
