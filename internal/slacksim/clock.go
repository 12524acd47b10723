package slacksim

import (
	"sync"
	"time"
)

// clock is the workspace's time: the injected clock plus what
// [Server.Advance] added. It runs tasks when they are due.
type clock struct {
	base func() time.Time
	wake chan struct{}

	mu      sync.Mutex
	offset  time.Duration
	pending []task
}

type task struct {
	at  time.Time
	run func()
}

func newClock(base func() time.Time) *clock {
	return &clock{base: base, wake: make(chan struct{}, 1)}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base().Add(c.offset)
}

// after runs fn once d has passed on this clock. fn must not block.
func (c *clock) after(d time.Duration, fn func()) {
	c.mu.Lock()
	c.pending = append(c.pending, task{at: c.base().Add(c.offset + d), run: fn})
	c.mu.Unlock()
	c.poke()
}

// advance moves the clock and runs what became due before it returns.
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	c.offset += d
	c.mu.Unlock()
	c.runDue()
	c.poke()
}

func (c *clock) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// runDue runs the due tasks in order and returns how long the next one has.
func (c *clock) runDue() (next time.Duration, any bool) {
	for {
		c.mu.Lock()
		now, first := c.base().Add(c.offset), -1
		for i, t := range c.pending {
			if first < 0 || t.at.Before(c.pending[first].at) {
				first = i
			}
		}
		if first < 0 {
			c.mu.Unlock()
			return 0, false
		}
		due := c.pending[first]
		if due.at.After(now) {
			c.mu.Unlock()
			return due.at.Sub(now), true
		}
		c.pending = append(c.pending[:first], c.pending[first+1:]...)
		c.mu.Unlock()
		due.run()
	}
}

// loop runs tasks in real time until done is closed.
func (c *clock) loop(done <-chan struct{}) {
	for {
		var timer <-chan time.Time
		if next, any := c.runDue(); any {
			timer = time.After(next)
		}
		select {
		case <-timer:
		case <-c.wake:
		case <-done:
			return
		}
	}
}
