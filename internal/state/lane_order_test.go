package state

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// While the kind with the lowest rank has more work than places, those behind it
// handle one item each, and a place that becomes free is for the first.
func TestAPlaceIsForTheLowestRankThatWaits(t *testing.T) {
	var a lane
	behind := a.join(Task{Kind: Cards, Rank: 2, Slow: true})
	first := a.join(Task{Kind: Deadlines, Rank: 1})
	for range laneWorkers + 1 {
		require.True(t, first.take())
	}
	require.False(t, first.take(), "the lane is full")
	require.True(t, behind.take(), "each kind may handle one item")
	require.False(t, behind.take())
	first.give()
	require.NotEmpty(t, first.ready(), "it is told of the place")
	require.False(t, behind.take(), "the place is for the first")
	require.True(t, first.take())

	require.False(t, first.take())
	first.done() // it has nothing more to handle
	first.give()
	require.NotEmpty(t, behind.ready())
	require.True(t, behind.take())
}

// While a kind takes what it has, the places are its own. Those that it leaves are
// offered to the next at once, not when another item is done.
func TestWhatTheFirstLeavesIsOfferedToTheNext(t *testing.T) {
	var a lane
	first := a.join(Task{Kind: Deadlines, Rank: 1})
	next := a.join(Task{Kind: Announcements, Rank: 2})
	last := a.join(Task{Kind: Removals, Rank: 3})
	for range laneWorkers + 1 {
		require.True(t, first.take())
	}
	require.False(t, first.take())
	for _, behind := range []*member{next, last} {
		require.True(t, behind.take())
		require.False(t, behind.take())
	}
	for range 4 {
		first.give()
	}
	require.True(t, first.take())
	require.False(t, next.take(), "the first may have more")
	require.True(t, first.take())

	first.done()
	require.NotEmpty(t, next.ready())
	require.Empty(t, last.ready(), "one is told at a time")
	require.True(t, next.take())
	require.False(t, last.take())
	next.done()
	require.NotEmpty(t, last.ready())
	require.True(t, last.take())
	require.False(t, last.take(), "the lane is full")
}

// While more of a kind is known than its workers handle, those behind it handle one
// item each: deadlines that are handled in groups leave places of the lane unused, and
// these are not for the cards of the same deadlines.
func TestAKindWithMoreThanItsWorkersHandleHoldsTheOthersUp(t *testing.T) {
	var a lane
	end := make(chan struct{})
	due := &Due{store: &Store{conn: &conn{now: time.Now}}, o: DueOptions{Workers: 16, Started: func(Kind, time.Duration) {}}}
	first := newLoop(due, Task{Kind: Deadlines, Rank: 1, Together: 2, Limit: time.Minute, Reconcile: func(context.Context, string) error {
		<-end
		runtime.Goexit() // nothing is to be written down
		return nil
	}}, &a)
	first.resume = make(chan time.Time) // it does not look for more
	next := a.join(Task{Kind: Cards, Rank: 2})
	for i := range 2*groups + 2 {
		first.queue = append(first.queue, entry{id: strconv.Itoa(i)})
	}
	first.launch(t.Context(), t.Context())
	require.Equal(t, groups, first.busy)
	require.Len(t, first.inflight, 2*groups)
	require.True(t, next.take())
	require.False(t, next.take(), "the first has more")

	close(end)
	for range groups {
		first.finished(<-first.done)
	}
	require.Empty(t, first.inflight)
	require.False(t, next.take(), "the first has more")
	first.launch(t.Context(), t.Context())
	require.NotEmpty(t, next.ready())
	require.True(t, next.take())
	first.finished(<-first.done)
}
