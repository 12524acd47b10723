package state_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// crowd counts what is handled, by kind. A handler that enters stays until it may
// leave.
type crowd struct {
	mu     sync.Mutex
	cond   *sync.Cond
	inside map[state.Kind]int
	most   int
	begun  map[state.Kind]int
	leave  map[state.Kind]bool
}

func newCrowd() *crowd {
	c := &crowd{inside: map[state.Kind]int{}, begun: map[state.Kind]int{}, leave: map[state.Kind]bool{}}
	c.cond = sync.NewCond(&c.mu)
	return c
}

func (c *crowd) all() int {
	n := 0
	for _, inside := range c.inside {
		n += inside
	}
	return n
}

// task handles a kind. seen is called with everything as it is when an item begins.
func (c *crowd) task(k state.Kind, rank int, slow bool, seen func()) state.Task {
	return state.Task{Kind: k, Rank: rank, Slow: slow, Limit: time.Minute, Reconcile: func(ctx context.Context, _ string) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		defer context.AfterFunc(ctx, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.cond.Broadcast()
		})()
		c.begun[k]++
		c.inside[k]++
		c.most = max(c.most, c.all())
		seen()
		c.cond.Broadcast()
		for !c.leave[k] && ctx.Err() == nil {
			c.cond.Wait()
		}
		c.inside[k]--
		c.cond.Broadcast()
		return handled{}
	}}
}

// handled has an item not come again in a test. It is no failure.
type handled struct{}

func (handled) Error() string             { return "once is enough" }
func (handled) RetryAfter() time.Duration { return time.Hour }

// until waits until cond holds. It is called with the lock.
func (c *crowd) until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		late = true
		c.cond.Broadcast()
	})
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !cond() {
		require.False(t, late, "waited for %s; inside: %v", what, c.inside)
		c.cond.Wait()
	}
}

// let lets the handlers of these kinds leave, now and from now on.
func (c *crowd) let(kinds ...state.Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range kinds {
		c.leave[k] = true
	}
	c.cond.Broadcast()
}

// openMany opens n requests, each in a partition of its own: its card and the Homes
// are due, and if it is late its deadline too.
func openMany(t *testing.T, s *state.Store, n int, name string, late bool) {
	t.Helper()
	for i := range n {
		deadline := time.Time{}
		if late {
			deadline = time.Now()
		}
		open := openBatch(t, ids{i}.batch(name), ids{i}.run(name), 1, deadline)
		require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Request: approvals.RequestID(fmt.Sprint(name, i)), Batch: open.Batch, Events: open.Events, Args: open.Args}))
	}
}

// The kinds that share workers handle twelve items together and one more each, of
// however many there are at once.
func TestKindsThatShareWorkersAreBoundedTogether(t *testing.T) {
	t.Parallel()
	s := openStore(t, statetest.Miniredis(t), time.Now)
	c := newCrowd()
	openMany(t, s, 30, "a", true)
	workOn(t, state.NewDue(s, state.DueOptions{Grace: grace}),
		c.task(state.Deadlines, 1, false, func() {}), c.task(state.Cards, 2, true, func() {}), c.task(state.Homes, 3, true, func() {}))
	c.until(t, "all that may begin", func() bool { return c.all() == 12+3 })
	c.let(state.Deadlines, state.Cards, state.Homes)
	c.until(t, "everything", func() bool {
		return c.begun[state.Deadlines] >= 30 && c.begun[state.Cards] >= 30 && c.begun[state.Homes] >= 30
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Equal(t, 12+3, c.most)
}

// When Slack does not answer, and every worker that may draw waits for it, deadlines
// are worked on all the same, several at a time.
func TestKindsThatWaitForOthersLeaveWorkersToTheRest(t *testing.T) {
	t.Parallel()
	s := openStore(t, statetest.Miniredis(t), time.Now)
	c := newCrowd()
	openMany(t, s, 30, "a", false)
	workOn(t, state.NewDue(s, state.DueOptions{Grace: grace}),
		c.task(state.Cards, 1, true, func() {}), c.task(state.Homes, 1, true, func() {}), c.task(state.Deadlines, 2, false, func() {}))
	c.until(t, "all that may draw", func() bool { return c.all() == 8+2 })
	openMany(t, s, 30, "b", true)
	c.until(t, "deadlines", func() bool { return c.inside[state.Deadlines] == 4+1 })
	c.let(state.Deadlines, state.Cards, state.Homes)
}

// While deadlines wait for a worker, cards are drawn one at a time: those that end
// make room for deadlines.
// Whatever the order in which work is found, the kinds behind get the places that the
// first one leaves. [TestAPlaceIsForTheLowestRankThatWaits] has the order itself.
func TestKindsBehindGetThePlacesThatTheFirstLeaves(t *testing.T) {
	t.Parallel()
	s := openStore(t, statetest.Miniredis(t), time.Now)
	c := newCrowd()
	const all = 60
	openMany(t, s, all, "a", true)
	deadlines := c.task(state.Deadlines, 1, false, func() {})
	cards := c.task(state.Cards, 2, true, func() {})
	ready, draw := false, cards.Reconcile
	cards.Reconcile = func(ctx context.Context, id string) error {
		c.mu.Lock()
		may := ready
		c.mu.Unlock()
		if !may {
			return soon{}
		}
		return draw(ctx, id)
	}
	workOn(t, state.NewDue(s, state.DueOptions{Grace: grace}), deadlines, cards)
	c.until(t, "the deadlines that may begin", func() bool { return c.inside[state.Deadlines] == 12+1 })
	c.mu.Lock()
	ready = true
	c.mu.Unlock()
	c.until(t, "a card", func() bool { return c.inside[state.Cards] == 1 })
	c.let(state.Deadlines)
	c.until(t, "more cards", func() bool { return c.inside[state.Cards] == 8+1 })
	c.let(state.Cards)
}

// soon has an item looked at again soon.
type soon struct{}

func (soon) Error() string             { return "not yet" }
func (soon) RetryAfter() time.Duration { return 10 * time.Millisecond }
