package state

import (
	"testing"

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
