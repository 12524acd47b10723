package state

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Clock compares the clock of this process with that of the store. Leases and
// due times are times of whoever wrote them, so a process whose clock differs by
// much would take work from others before its time, or lose its own to them.
type Clock struct {
	store *Store
	most  time.Duration

	mu     sync.Mutex
	skewed bool          // at the last comparison, so that a change is logged once
	by     time.Duration // how far this process was ahead then, if it was too much
	agreed time.Time     // when they agreed at the last comparison; zero if they did not
	told   time.Time     // what the store told last
	since  time.Time     // when that answer came; zero before the first one
}

// A SkewError says that the clock of this process is too far from the store's.
type SkewError struct {
	By   time.Duration // positive: this process is ahead
	Most time.Duration
}

func (e *SkewError) Error() string {
	return fmt.Sprintf("the clock of this process differs by %s from that of Redis, and more than %s is too much", e.By.Round(time.Millisecond), e.Most)
}

// mostAhead bounds the difference for long leases: deadlines of people go by the same clocks.
const mostAhead = 10 * time.Second

// Clock returns a clock that refuses a difference of more than a quarter of the
// lease, or of ten seconds.
func (s *Store) Clock(lease time.Duration) *Clock {
	return &Clock{store: s, most: min(lease/4, mostAhead)}
}

// Now returns the time of the store. If the clock of this process differs from it
// by more than it may, there is a [*SkewError] too: the time is still that of the
// store, for work that is under way. Any other error means that the store did not
// answer.
func (c *Clock) Now(ctx context.Context) (time.Time, error) {
	before := c.store.now()
	at, err := c.store.time(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask redis for its time: %w", err)
	}
	took := c.store.now().Sub(before)
	by := before.Add(took / 2).Sub(at)
	// How long the answer took may all be on one way, so that much is not known.
	unsure := took.Abs() / 2
	skewed := max(by.Abs()-unsure, 0) > c.most
	c.follow(ctx, before, before.Add(took), at)
	c.note(ctx, before, by, unsure, skewed)
	if skewed {
		return at, &SkewError{By: by, Most: c.most}
	}
	return at, nil
}

// Time returns the time of the store without asking it: that of this process, less what it
// was ahead of the store, as far as a [Clock] has compared them. It has no monotonic clock.
func (s *Store) Time() time.Time { return s.now().Round(0).Add(-time.Duration(s.ahead.Load())) }

// time returns the time of a server. In a cluster, whose servers have a clock each, it is
// that of the server of the first partition, in every process: a lease that is written by
// one clock would not hold by another. While that one does not answer, it is any other's.
func (s *conn) time(ctx context.Context) (time.Time, error) {
	if _, cluster := s.client.(*redis.ClusterClient); cluster {
		soon, cancel := context.WithTimeout(ctx, confirming)
		defer cancel()
		if node, err := s.master(soon, s.partition(0).base); err == nil {
			if at, err := node.Time(soon).Result(); err == nil {
				return at, nil
			}
		}
	}
	return s.client.Time(ctx).Result()
}

// Check is nil if the clocks agree.
func (c *Clock) Check(ctx context.Context) error {
	_, err := c.Now(ctx)
	return err
}

// Agrees is Check for those who ask often. The clocks are compared again once this
// process' is as far from the time of the last comparison as they may differ.
func (c *Clock) Agrees(ctx context.Context) error {
	c.mu.Lock()
	since := c.store.now().Round(0).Sub(c.agreed) // a clock that was set shows only without the monotonic one
	c.mu.Unlock()
	if since >= 0 && since < c.most {
		return nil
	}
	return c.Check(ctx)
}

// Shown returns the time for what is only shown, without asking the store: that of this
// process, or if they differed by too much at the last comparison, the earlier one of the
// two. Which of them is wrong is not known, and what has not expired for both is pending.
// Nothing is to be stored by it.
func (c *Clock) Shown() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store.now().Add(-max(c.by, 0))
}

// follow notes what the store told, and logs if its clock was set back. Due times that
// were written before then lie further ahead than they should. How long the two answers took
// does not count: the store told its time at some moment between asked and answered.
func (c *Clock) follow(ctx context.Context, asked, answered, told time.Time) {
	c.mu.Lock()
	back := asked.Sub(c.since) - told.Sub(c.told) // by the monotonic clock, which nobody sets
	known := !c.since.IsZero()
	c.told, c.since = told, answered
	c.mu.Unlock()
	if known && back > c.most {
		c.store.log.WarnContext(ctx, "the clock of Redis was set back; work that was put off before waits until it is there again. Run bot admin redraw, which draws the cards of open requests at once",
			slog.Duration("by", back))
	}
}

// note keeps the comparison that began then. [Store.Time] is moved by no more than is
// known: by what is unsure, the processes that claim something could move apart.
func (c *Clock) note(ctx context.Context, then time.Time, by, unsure time.Duration, skewed bool) {
	c.mu.Lock()
	c.store.ahead.Store(min(max(c.store.ahead.Load(), int64(by-unsure)), int64(by+unsure)))
	changed := c.skewed != skewed
	c.skewed, c.by, c.agreed = skewed, by, time.Time{}
	if !skewed {
		c.by = 0
		c.agreed = then.Round(0)
	}
	c.mu.Unlock()
	attrs := []any{slog.Duration("ahead_by", by), slog.Duration("most", c.most)}
	switch {
	case changed && skewed:
		c.store.log.ErrorContext(ctx, "the clocks of this process and of Redis differ; this process takes no work until they agree", attrs...)
	case changed:
		c.store.log.InfoContext(ctx, "the clocks of this process and of Redis agree again", attrs...)
	}
}
