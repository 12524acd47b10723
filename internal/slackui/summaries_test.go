package slackui_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state/statetest"
)

// A page of a Home reads the arguments of its rows in one round trip, and asks
// once who the person is, however many rows it has.
func TestTheSummariesOfAPageTakeAsManyRoundTripsAsThatOfOneRow(t *testing.T) {
	read := func(rows int) (trips, commands int) {
		client := statetest.Miniredis(t)
		h := newSheetWorkspaceOn(t, client)
		for i := range rows {
			b := h.asks(fmt.Sprintf("n%02d", i), "U0ALICE", time.Hour, tags(1, sre)...)
			if i == 0 {
				require.NoError(t, h.stirs(b))
			}
		}
		h.atHome("U0BOB") // now it is known who is in the groups
		h.pass(3 * time.Second)
		var seen statetest.Trips
		client.AddHook(&seen)
		require.Contains(t, words(h.atHome("U0BOB").Blocks), `Tag file (path: "reports/0.txt"`)
		sent := seen.Taken()
		return len(sent), len(slices.Concat(sent...))
	}
	oneTrips, oneCommands := read(1)
	allTrips, allCommands := read(15)
	t.Logf("a page of 1 row: %d round trips, %d commands; of 15 rows: %d round trips, %d commands", oneTrips, oneCommands, allTrips, allCommands)
	require.Equal(t, oneTrips, allTrips)
	require.Equal(t, oneCommands+2*14, allCommands, "a batch and its arguments for each further row")
}
