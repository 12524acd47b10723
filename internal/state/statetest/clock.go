package statetest

import (
	"sync"
	"time"
)

// A Clock tells the time that a test says.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock returns a clock that stands at this time.
func NewClock(at time.Time) *Clock { return &Clock{at: at} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Advance lets time pass.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
