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
