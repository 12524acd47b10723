package slackui_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state/statetest"
)

func TestStatusCostsTheSameHoweverMuchWaits(t *testing.T) {
	redis := statetest.Redis(t)
	h := newSheetWorkspaceOn(t, redis)
	sent := &statetest.Trips{}
	redis.AddHook(sent)
	require.NoError(t, h.ui.Homes.Reconcile(t.Context(), string(h.opensOnly("r", noon.Add(-time.Hour))))) // it notes the group
	opened := 1
	open := func(n int) {
		for ; opened < n; opened++ {
			h.opensOnly(fmt.Sprintf("r%d", opened), noon.Add(time.Duration(opened)*time.Second))
		}
	}
	costs := func(mine, here string) (commands, trips int) {
		said := h.slashes("U0BOB", "status") // what is looked up once and kept
		require.Contains(t, said, "Waiting for you: "+mine+", the oldest since")
		require.Contains(t, said, "Waiting in this channel: "+here)
		sent.Taken()
		h.slashes("U0BOB", "status")
		all := sent.Taken()
		return len(slices.Concat(all...)), len(all)
	}
	open(10)
	ten, trips := costs("10 requests", "10 requests.")
	open(25)
	commands, same := costs("25 requests", "25 requests.")
	require.Equal(t, ten+15, commands, "the first 25 requests are read")
	require.Equal(t, trips, same)
	open(2000)
	many, same := costs("up to 2,000 requests", "2,000 requests.")
	require.Equal(t, commands, many)
	require.Equal(t, trips, same)
}

// opensOnly stores a request that waits for @sre, without its run.
func (h *sheetWorkspace) opensOnly(name string, at time.Time) approvals.BatchID {
	h.t.Helper()
	partition := approvals.PartitionOf(name)
	b, events, err := approvals.Open(approvals.Batch{
		ID: approvals.BatchID(approvals.NewID("batch", partition, name)), Run: approvals.RunID(approvals.NewID("run", partition, name)),
		Channel: "C0OPS", Agent: "ops", Requester: "U0ALICE", OpenedAt: at,
	}, tags(1, sre), nil)
	require.NoError(h.t, err)
	require.NoError(h.t, h.store.Commit(h.t.Context(), agentrun.Commit{Opens: &agentrun.OpenBatch{Batch: b, Events: events}}))
	return b.ID
}

// A token that is revoked does not close the connection through which commands come.
func TestStatusSaysThatNoCallToSlackSucceeds(t *testing.T) {
	o := atNoon(t, escaping(), inLists)
	b := o.opens(o.say("U0ALICE", "clean up"), call("c1", "delete_file", `{}`, sre))
	var refused []slacksim.Fault
	for range 20 {
		refused = append(refused, slacksim.Fault{Error: "invalid_auth"})
	}
	o.SetFaults(slacksim.Faults{Next: refused})
	for range 10 {
		require.Error(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)))
		o.pass(2 * time.Minute)
	}
	said := o.slash("U0BOB", "status")
	require.Contains(t, said, "Countersign has a problem.")
	require.Contains(t, said, "No call to Slack succeeds, so cards don't appear or change.")

	o.SetFaults(slacksim.Faults{})
	o.draw(b)
	require.Contains(t, o.slash("U0BOB", "status"), "Countersign is working.")
}
