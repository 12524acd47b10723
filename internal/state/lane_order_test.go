package state

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
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
	due := NewDue(&Store{conn: &conn{now: time.Now}}, DueOptions{})
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

// However much is urgent, one item of each kind that draws is handled at any time, and
// other kinds have their places. Those that draw are told when nothing is urgent any more.
func TestWhatIsUrgentLeavesOneItemToEachKindThatDraws(t *testing.T) {
	var a lane
	deadlines := a.join(Task{Kind: Deadlines, Rank: 1})
	replies := a.join(Task{Kind: Replies, Rank: 2, Slow: true})
	cards := a.join(Task{Kind: Cards, Rank: 3, Slow: true})
	over := a.hurry()
	for range 100 {
		next := a.hurry()
		over()
		over = next
		for _, m := range []*member{replies, cards} {
			require.True(t, m.take(), "each kind may handle one item")
			require.False(t, m.take())
			m.give()
		}
	}
	for range laneWorkers + 1 {
		require.True(t, deadlines.take())
	}
	for range laneWorkers + 1 {
		deadlines.give()
	}
	deadlines.done()

	require.True(t, replies.take())
	require.False(t, replies.take())
	heard(replies)
	over()
	require.NotEmpty(t, replies.ready())
	require.True(t, replies.take())
}

// While more people wait for an answer than the machine can give at once, one item of each
// kind that draws is handled at any time, and other kinds have their places.
func TestACrowdLeavesOneItemToEachKindThatDraws(t *testing.T) {
	d := NewDue(&Store{conn: &conn{now: time.Now}}, DueOptions{})
	deliveries := d.lane.join(Task{Kind: Deliveries, Rank: 1})
	cards := d.lane.join(Task{Kind: Cards, Rank: 2, Slow: true})
	var overs []func()
	for range crowd {
		overs = append(overs, d.Attend())
	}
	for range 2 {
		require.True(t, cards.take(), "it can answer so many")
	}
	overs = append(overs, d.Attend())
	require.False(t, cards.take())
	for range 2 {
		require.True(t, deliveries.take())
	}
	deliveries.done()
	heard(cards)
	overs[0]()
	require.NotEmpty(t, cards.ready())
	require.True(t, cards.take())
	for _, over := range overs[1:] {
		over()
	}
	require.Zero(t, d.lane.people)
}

// Answers that wait for a lookup in Slack, which takes no CPU, hold nothing up for long.
func TestACrowdThatWaitsForOthersHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a lane
		cards := a.join(Task{Kind: Cards, Rank: 1, Slow: true})
		require.True(t, cards.take())
		var overs []func()
		for range crowd + 1 {
			overs = append(overs, a.attend())
		}
		require.False(t, cards.take())
		time.Sleep(attendedFor)
		synctest.Wait()
		require.NotEmpty(t, cards.ready())
		require.True(t, cards.take())
		for _, over := range overs {
			over()
		}
		require.Zero(t, a.people)
	})
}

// A kind that is not worked on any more holds nobody up.
func TestAKindThatHasEndedLeavesTheLane(t *testing.T) {
	var a lane
	first := a.join(Task{Kind: Deadlines, Rank: 1})
	next := a.join(Task{Kind: Cards, Rank: 2})
	require.True(t, first.take())
	require.True(t, next.take())
	require.False(t, next.take(), "the first may have more")
	first.leave()
	require.NotEmpty(t, next.ready())
	require.True(t, next.take())
	require.Equal(t, []*member{next}, a.members)
}

// heard has a member told only of what follows.
func heard(m *member) {
	for len(m.ready()) > 0 {
		<-m.ready()
	}
}

// A run that waits for a model, or works on a call, holds nothing up for long.
func TestAnUrgentItemHoldsTheOthersUpForAShortTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a lane
		end := make(chan struct{})
		due := NewDue(&Store{conn: &conn{now: time.Now}}, DueOptions{})
		runs := newLoop(due, Task{Kind: Runs, Urgent: true, Limit: time.Hour, Reconcile: func(context.Context, string) error {
			<-end
			runtime.Goexit() // nothing is to be written down
			return nil
		}}, &a)
		runs.resume = make(chan time.Time) // it does not look for more
		cards := a.join(Task{Kind: Cards, Rank: 1, Slow: true})
		require.True(t, cards.take())

		runs.queue = []entry{{id: "other", at: 1}}
		runs.launch(t.Context(), t.Context())
		require.True(t, cards.take(), "nobody waits for this run")
		cards.give()

		runs.resume = nil
		runs.told(fresh(entry{id: "awaited", at: 1}))
		runs.launch(t.Context(), t.Context())
		require.Len(t, runs.inflight, 2)
		require.False(t, cards.take())
		heard(cards)
		time.Sleep(urgentFor - 1)
		synctest.Wait()
		require.Empty(t, cards.ready())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.NotEmpty(t, cards.ready())
		require.True(t, cards.take())

		close(end)
		for range 2 {
			runs.finished(<-runs.done)
		}
		require.Zero(t, a.urgent)
	})
}

// Work that ends in time holds nothing up any more.
func TestAnUrgentItemThatEndsHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a lane
		cards := a.join(Task{Kind: Cards, Rank: 1, Slow: true})
		require.True(t, cards.take())
		first, second := a.hurry(), a.hurry()
		require.False(t, cards.take())
		first()
		require.False(t, cards.take(), "the other one is still under way")
		second()
		require.True(t, cards.take())
		time.Sleep(urgentFor)
		synctest.Wait()
		require.Zero(t, a.urgent)
	})
}
