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

// send asks everything.
func (r *roundTrip) send(ctx context.Context, s *conn) {
	pipe := s.client.Pipeline()
	for _, ask := range r.asked {
		ask(pipe)
	}
	if r.behind.asks() {
		r.durable = r.behind.ask(ctx, pipe)
	}
	execute(ctx, pipe)
	close(r.answered)
}

// add adds a question. The caller holds the mutex of the pipe to which it belongs.
func (r *roundTrip) add(b barrier, ask func(redis.Pipeliner)) {
	r.asked = append(r.asked, ask)
	if b.asks() {
		r.behind = b
	}
}

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
	r.add(b, ask)
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
	r.send(ctx, p.conn)
}

// together calls add to add its commands to a shared round trip, and returns that round
// trip once it is answered. It returns nil if there is none or the context ends first:
// then what the commands hold must not be read, and the caller asks by itself and calls
// done. In a cluster, whose partitions have servers of their own, no barrier is shared,
// and only handlers that share a pipeline share anything.
func (s *conn) together(ctx context.Context, b barrier, add func(redis.Pipeliner)) (answered *roundTrip, done func()) {
	p := s.shared(ctx)
	_, cluster := s.client.(*redis.ClusterClient)
	switch {
	case cluster && (p == nil || b.asks()):
		return nil, nothing
	case p != nil:
		return p.do(ctx, b, add), nothing
	}
	return s.pipes.of(ctx, b).ask(ctx, b, add)
}

// ask runs a command, together with what others ask at the same time. What has no answer
// then, for example because the context of another one is over, or an error for one, is
// run again by itself.
func ask[C redis.Cmder](ctx context.Context, s *conn, run func(redis.Cmdable) C) C {
	var cmd C
	r, done := s.together(ctx, barrier{}, func(pipe redis.Pipeliner) { cmd = run(pipe) })
	if r != nil && succeeded(cmd.Err()) {
		return cmd
	}
	defer done()
	return run(s.client)
}

// execute sends a pipeline. Afterwards each command has an answer or an error of its own.
// The client leaves the commands of a pipeline without either if Redis refuses the
// connection, for example because the password has changed or there are too many clients.
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

// succeeded reports whether the server answered a question and refused nothing.
func succeeded(err error) bool { return err == nil || errors.Is(err, redis.Nil) }
