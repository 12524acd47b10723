package state

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A sharedPipe sends what several handlers ask of the store in one round trip: once
// each of them has asked for something or has left. It is for handlers that take the
// same steps and wait for nothing but the store.
type sharedPipe struct {
	conn *conn

	mu   sync.Mutex
	in   int // handlers that have not left
	next *roundTrip
}

// A roundTrip is what is asked together.
type roundTrip struct {
	asked    []func(redis.Pipeliner)
	behind   barrier
	answered chan struct{} // closed once everything is
	durable  func() error  // the answer of the barrier
}

func newRoundTrip() *roundTrip { return &roundTrip{answered: make(chan struct{})} }

func (s *conn) sharePipe(handlers int) *sharedPipe {
	return &sharedPipe{conn: s, in: handlers, next: newRoundTrip()}
}

type sharedPipeKey struct{}

// with returns a context of a handler that shares the pipeline.
func (p *sharedPipe) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, sharedPipeKey{}, p)
}

// shared returns the pipeline that the context shares, or nil.
func (s *conn) shared(ctx context.Context) *sharedPipe {
	if p, ok := ctx.Value(sharedPipeKey{}).(*sharedPipe); ok && p.conn == s {
		return p
	}
	return nil
}

// do has ask add commands, and returns when they are answered. The barrier follows
// the commands of all.
func (p *sharedPipe) do(ctx context.Context, b barrier, ask func(redis.Pipeliner)) *roundTrip {
	p.mu.Lock()
	r := p.next
	r.asked = append(r.asked, ask)
	if b.asks() {
		r.behind = b
	}
	if len(r.asked) < p.in {
		p.mu.Unlock()
		<-r.answered
		return r
	}
	defer p.mu.Unlock()
	p.send(ctx)
	return r
}

// leave says that a handler asks for nothing more. The others do not wait for it.
func (p *sharedPipe) leave(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in--
	if n := len(p.next.asked); n > 0 && n >= p.in {
		p.send(ctx)
	}
}

// send asks everything. The caller holds mu; all others wait for the answer.
func (p *sharedPipe) send(ctx context.Context) {
	r := p.next
	p.next = newRoundTrip()
	pipe := p.conn.client.Pipeline()
	for _, ask := range r.asked {
		ask(pipe)
	}
	if r.behind.asks() {
		r.durable = r.behind.ask(ctx, pipe)
	}
	execute(ctx, pipe)
	close(r.answered)
}

// ask runs a command, together with those of the handlers that share a pipeline with
// the context. What has no answer then, for example because the context of another
// one is over, is run again by itself.
func ask[C redis.Cmder](ctx context.Context, s *conn, run func(redis.Cmdable) C) C {
	if p := s.shared(ctx); p != nil {
		var cmd C
		p.do(ctx, barrier{}, func(pipe redis.Pipeliner) { cmd = run(pipe) })
		if !unanswered(cmd.Err()) {
			return cmd
		}
	}
	return run(s.client)
}

// execute sends a pipeline. Afterwards each command has an answer or an error of its own.
// The client by itself leaves the commands of a pipeline without either if Redis refuses
// the connection, because of another password or too many clients for example.
func execute(ctx context.Context, pipe redis.Pipeliner) {
	cmds, err := pipe.Exec(ctx)
	if err == nil || slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Err() != nil }) {
		return
	}
	for _, c := range cmds {
		c.SetErr(err)
	}
}

// unanswered reports whether an error is not the server's.
func unanswered(err error) bool {
	var answer redis.Error
	return err != nil && !errors.As(err, &answer)
}
