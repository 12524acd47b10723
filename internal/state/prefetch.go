package state

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// prefetchKept is how long a document that was read in advance may be used. Requests are
// answered sooner, and work that follows the answer reads the document again.
const prefetchKept = time.Second

// Prefetch returns a context in which the first read of any of these documents, or the
// first commit, reads all of them in the same round trip. Memos are read before batches,
// so a batch may be newer than its memo and is never older. Arguments never change; every
// other document that was read in advance is used once: a second read, after a lost race
// for example, goes to the server, and so does a read after a commit in this context that
// wrote the document. What the given context has read in advance is not used in the new
// one, and a commit in the new one does not discard it. Prefetch never fails: a document
// that cannot be read is an error, or missing, where it is used.
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
	for _, id := range r.Threads {
		document(id, func(at partition) hashKey { return at.thread(id) })
	}
	for _, a := range r.Args {
		if at, err := s.partitionOf(string(a.Batch)); err == nil {
			k := string(at.args(string(a.Batch), a.Digest))
			p.found[k] = p.pipe.Get(ctx, k)
		}
	}
	for _, m := range r.Messages {
		if at, err := s.partitionOf(m.Thread); err == nil && m.From < m.To {
			k := string(at.messages(m.Thread))
			p.found[k] = readMessages(ctx, p.pipe, k, m.From, m.To)
		}
	}
	return context.WithValue(ctx, prefetchKey{}, p)
}

type prefetchKey struct{}

// A prefetch is what a context reads in advance.
type prefetch struct {
	conn *conn

	mu    sync.Mutex
	pipe  redis.Pipeliner // nil once it was sent
	at    time.Time       // when that was
	found map[string]redis.Cmder
}

// prefetched returns the answer for a key that the context reads in advance, once. The
// first call reads all of them. It returns nil for any other key.
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
	if _, fixed := cmd.(*redis.StringCmd); !fixed {
		delete(p.found, key)
	}
	if !p.send(ctx) {
		return nil
	}
	if age := s.now().Sub(p.at); age < 0 || age > prefetchKept || unanswered(cmd.Err()) {
		return nil
	}
	return cmd
}

// send reads everything, if that was not done yet. It reports whether there is an answer.
// The caller holds mu.
func (p *prefetch) send(ctx context.Context) bool {
	if p.pipe == nil {
		return true
	}
	p.at = p.conn.now()
	pipe := p.pipe
	p.pipe = nil
	r, done := p.conn.together(ctx, barrier{}, func(all redis.Pipeliner) { _ = all.BatchProcess(ctx, pipe.Cmds()...) })
	defer done()
	if r != nil {
		return true
	}
	if ctx.Err() != nil {
		clear(p.found) // the round trip with the others may still write there
		return false
	}
	execute(ctx, pipe)
	return true
}

// along asks for something in the same round trip as what the context reads in advance,
// if that was not sent yet.
func along[C redis.Cmder](ctx context.Context, s *conn, run func(redis.Cmdable) C) C {
	p, ok := ctx.Value(prefetchKey{}).(*prefetch)
	if !ok || p.conn != s {
		return ask(ctx, s, run)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pipe != nil {
		if cmd := run(p.pipe); p.send(ctx) && succeeded(cmd.Err()) {
			return cmd
		}
	}
	return ask(ctx, s, run)
}

// written discards the documents read in advance that a change may have written.
func (s *conn) written(ctx context.Context, c *change) {
	p, ok := ctx.Value(prefetchKey{}).(*prefetch)
	if !ok || p.conn != s {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range c.keys.all {
		delete(p.found, k)
	}
}
