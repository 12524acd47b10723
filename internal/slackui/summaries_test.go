package slackui_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state/statetest"
)

// trips counts the round trips of a client and the commands in them. A
// connection begins with commands of its own, which are not counted.
type trips struct{ trips, commands atomic.Int64 }

func (c *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.add(cmd)
		return next(ctx, cmd)
	}
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.add(cmds...)
		return next(ctx, cmds)
	}
}

func (c *trips) add(cmds ...redis.Cmder) {
	if name := cmds[0].Name(); name == "hello" || name == "client" {
		return
	}
	c.trips.Add(1)
	c.commands.Add(int64(len(cmds)))
}

// A page of a Home reads the arguments of its rows in one round trip, and asks
// once who the person is, however many rows it has.
func TestTheSummariesOfAPageTakeAsManyRoundTripsAsThatOfOneRow(t *testing.T) {
	read := func(rows int) (tripsMade, commands int64) {
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
		var c trips
		client.AddHook(&c)
		require.Contains(t, words(h.atHome("U0BOB").Blocks), `Tag file (path: "reports/0.txt"`)
		return c.trips.Load(), c.commands.Load()
	}
	oneTrips, oneCommands := read(1)
	allTrips, allCommands := read(15)
	t.Logf("a page of 1 row: %d round trips, %d commands; of 15 rows: %d round trips, %d commands", oneTrips, oneCommands, allTrips, allCommands)
	require.Equal(t, oneTrips, allTrips)
	require.Equal(t, oneCommands+2*14, allCommands, "a batch and its arguments for each further row")
}
