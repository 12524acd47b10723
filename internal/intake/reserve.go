package intake

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// reserve counts a new request, or says that it is one too many. Requests of one
// agent that are made at the same time are counted with one change of its
// document, so that they do not lose races to each other. It is enough that one
// process does so: the document is changed under its version.
func (s *Service) reserve(ctx context.Context, c Client, a Ask, id approvals.RunID) error {
	of := s.counters.of(c.Name)
	r := &reservation{client: c, request: agentRequest{Run: id, External: a.ExternalID, Group: a.Group}, counted: make(chan struct{})}
	of.join(r)
	defer of.leave(r)
	select {
	case <-r.counted:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	case of.turn <- struct{}{}:
	}
	defer func() { <-of.turn }()
	select {
	case <-r.counted:
		return r.err
	default:
	}
	all, done := of.next()
	err := s.count(ctx, c.Name, all, done)
	if err != nil && ctx.Err() != nil {
		return err // it says nothing about the others: the next of them tries again
	}
	of.end(all, done, err)
	return r.err
}

// count changes the document of the agent so that it has these requests, each
// unless it is one too many.
func (s *Service) count(ctx context.Context, agent string, all []*reservation, done []approvals.RunID) error {
	now := s.c.Now().UTC()
	_, err := update(ctx, s, indexID(agent, "agent", ""), agentMemo, func(d *agentDoc, _ bool) (bool, error) {
		changed, learned := d.settle(done), false
		var first time.Time
		for _, r := range all {
			r.err = nil
			if slices.ContainsFunc(d.Recent, func(o agentRequest) bool { return o.Run == r.request.Run }) {
				continue
			}
			made, minute := d.Made, now.Truncate(time.Minute)
			if !d.Minute.Equal(minute) {
				made = 0
			}
			if limit := cmp.Or(r.client.PerMinute, DefaultPerMinute); made >= limit {
				r.err = &LimitError{What: "requests in a minute", Limit: limit, RetryAfter: minute.Add(time.Minute).Sub(now)}
				continue
			}
			limit := cmp.Or(r.client.OpenLimit, DefaultOpenLimit)
			if d.open() >= limit && !learned {
				var err error
				if first, err = s.learn(ctx, d, now); err != nil {
					return false, err
				}
				learned = true
			}
			if d.open() >= limit {
				r.err = &LimitError{What: "open requests", Limit: limit, RetryAfter: soon(first, now)}
				continue
			}
			r.request.At = now
			d.Minute, d.Made, d.Recent = minute, made+1, append(d.Recent, r.request)
			changed = true
		}
		d.Schema = schema
		d.forget()
		return changed, nil
	})
	return err
}

// A reservation is a request that is to be counted. Its error is of use once it is.
type reservation struct {
	client  Client
	request agentRequest
	counted chan struct{} // closed
	err     error
}

// counters are what this process is about to change in the documents of agents.
type counters struct {
	mu  sync.Mutex
	all map[string]*counter
}

func (c *counters) of(agent string) *counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.all[agent]
	if of == nil {
		if c.all == nil {
			c.all = map[string]*counter{}
		}
		of = &counter{turn: make(chan struct{}, 1)}
		c.all[agent] = of
	}
	return of
}

// A counter is that of one agent.
type counter struct {
	turn chan struct{} // held by the only one that changes the document

	mu      sync.Mutex
	waiting []*reservation
	done    []approvals.RunID // requests that have their outcome, which the document does not say yet
}

// maxEnded bounds the memory. What is dropped is found out by [Service.learn].
const maxEnded = 500

func (c *counter) join(r *reservation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, r)
}

func (c *counter) leave(r *reservation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(o *reservation) bool { return o == r })
}

// next returns what the next change of the document is about: all that wait, and
// the requests that have their outcome.
func (c *counter) next() ([]*reservation, []approvals.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.waiting), slices.Clone(c.done)
}

// end tells those that waited for the change how it went.
func (c *counter) end(all []*reservation, done []approvals.RunID, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(r *reservation) bool { return slices.Contains(all, r) })
	if err == nil {
		c.done = slices.DeleteFunc(c.done, func(id approvals.RunID) bool { return slices.Contains(done, id) })
	}
	for _, r := range all {
		r.err = cmp.Or(err, r.err)
		close(r.counted)
	}
}

// ended notes that a request has its outcome. The next change of the document says
// so; it is worth none of its own.
func (c *counter) ended(id approvals.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.done, id) {
		return
	}
	if c.done = append(c.done, id); len(c.done) > maxEnded {
		c.done = slices.Delete(c.done, 0, 1)
	}
}
