package state

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// mostUnderWay is how many round trips of a pipe are under way before what is asked
	// next waits for the end of one. With one alone, Redis and the processes would take
	// turns, and each would wait for the other.
	mostUnderWay = 3
	// mostTogether bounds how many questions one round trip has. The next one then does
	// not wait for those that are under way.
	mostTogether = 64
	// pipePatience is how long a question waits for the round trips that are under way. A
	// connection that hangs holds up nobody for longer.
	pipePatience = 10 * time.Millisecond
	// pipeTimeout bounds a round trip of several. Who asked waits no longer than its own
	// context lasts.
	pipeTimeout = 3 * time.Second
)

// An autoPipe sends what is asked of the store while some round trips are under way
// together, in the next one. So each question of many at once costs the processes and the
// network less, and with a barrier the disk is asked once for all of them. While there are
// few questions at a time, each is sent by itself, at once.
type autoPipe struct {
	conn     *conn
	patience time.Duration
	most     int // round trips under way before the next one waits

	mu    sync.Mutex
	under int        // round trips under way, the end of each of which sends the next one
	next  *roundTrip // what waits for that; nil if nothing does
}

// autoPipes are those of a conn. What people wait for shares nothing with due work, and
// what follows from their clicks nothing with what follows from time. What waits for a
// barrier shares nothing with what does not.
type autoPipes [3][2]autoPipe

func (p *autoPipes) init(s *conn) {
	for who := range p {
		for behind := range p[who] {
			p[who][behind].conn, p[who][behind].patience, p[who][behind].most = s, pipePatience, mostUnderWay
		}
	}
}

// of returns the pipe for a question.
func (p *autoPipes) of(ctx context.Context, b barrier) *autoPipe {
	who, behind := 0, 0
	if h, ok := ctx.Value(handledKey{}).(*handled); ok {
		who = 1
		if !h.awaited {
			who = 2
		}
	}
	if b.asks() {
		behind = 1
	}
	return &p[who][behind]
}

// ask calls add to add its commands to the next round trip, and returns that round trip
// once it is answered. It returns nil if the context ends first, and if fewer round trips
// are under way than may be: then the caller asks by itself, and calls done when it is
// answered.
func (p *autoPipe) ask(ctx context.Context, b barrier, add func(redis.Pipeliner)) (answered *roundTrip, done func()) {
	p.mu.Lock()
	if p.under < p.most {
		p.under++
		p.mu.Unlock()
		return nil, p.over
	}
	if p.next == nil {
		p.next = newRoundTrip()
	}
	r := p.next
	r.add(b, add)
	full := len(r.asked) >= mostTogether
	if full {
		p.next = nil
	}
	p.mu.Unlock()
	if full {
		p.send(ctx, r)
		return r, nothing
	}
	return p.await(ctx, r), nothing
}

func nothing() {}

// await returns the round trip once it is answered, or nil if the context ends first.
func (p *autoPipe) await(ctx context.Context, r *roundTrip) *roundTrip {
	patience := time.NewTimer(p.patience)
	defer patience.Stop()
	for {
		select {
		case <-r.answered:
			return r
		case <-ctx.Done():
			return nil
		case <-patience.C:
			if p.takeIf(r) {
				p.send(ctx, r)
				return r
			}
		}
	}
}

// over sends what was asked while the round trips were under way, one of which has ended.
func (p *autoPipe) over() {
	if r := p.take(); r != nil {
		go func() {
			for ; r != nil; r = p.take() {
				p.send(context.Background(), r)
			}
		}()
	}
}

// take takes out what is to be sent next. If there is nothing, one round trip
// fewer is under way.
func (p *autoPipe) take() *roundTrip {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.next
	p.next = nil
	if r == nil {
		p.under--
	}
	return r
}

// takeIf takes out the round trip if it is still to be sent.
func (p *autoPipe) takeIf(r *roundTrip) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != r {
		return false
	}
	p.next = nil
	return true
}

// send asks everything. It goes on if the context ends: others wait for it, too.
func (p *autoPipe) send(ctx context.Context, r *roundTrip) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pipeTimeout)
	defer cancel()
	r.send(ctx, p.conn)
}
