package intake

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

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
	doc     *agentDoc // as this process has stored it last; nil if that is not known
	version int64
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

// maxTogether is how many requests one change is about: those that are admitted are
// some 100 words of a script each, and some servers take no more than 3,999.
const maxTogether = 32

// next returns what the next change of the document is about: the first of those that
// wait, and the requests that have their outcome.
func (c *counter) next() ([]*reservation, []approvals.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.waiting[:min(maxTogether, len(c.waiting))]), slices.Clone(c.done)
}

// known returns the document as this process has stored it last, if it has.
func (c *counter) known() (d agentDoc, version int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doc == nil {
		return agentDoc{}, 0, false
	}
	d = *c.doc
	d.Recent = slices.Clone(d.Recent)
	return d, c.version, true
}

// keep notes what this process has stored; nil if that is not known.
func (c *counter) keep(d *agentDoc, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doc, c.version = d, version; d != nil {
		d.stored()
	}
}

// full reports whether a further request is one too many as far as is known.
func (c *counter) full(client Client, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doc != nil && c.doc.full(client, now)
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
