package slackui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// inOneDigest is a workspace with requests that are all to be listed in one digest. The
// one card that there is room for is posted. Since returns how many lists of digests were
// read, and how many memos were written, since it was called last.
func inOneDigest(t *testing.T, many int) (o *workspace, all []approvals.Batch, since func() (lists, writes int)) {
	t.Helper()
	o = atNoon(t, slacksim.Config{}, func(c *slackui.Config) {
		c.CardsPerMinute, c.Background = 1, func(context.Context) bool { return true }
	})
	var lists, writes atomic.Int64
	o.onMemo = func(surface string, write bool) error {
		if write {
			writes.Add(1)
		} else if surface == "digest" {
			lists.Add(1)
		}
		return nil
	}
	o.drawsAll(o.another("first", 0, call("c1", "x", `{}`, sre)))
	for n := range many {
		all = append(all, o.another(fmt.Sprint("n", n), 0, call("c1", "x", `{}`, sre)))
	}
	return o, all, func() (int, int) { return int(lists.Swap(0)), int(writes.Swap(0)) }
}

// round draws each of the batches once, and returns the shortest time that one of them
// has to wait.
func (o *workspace) round(all []approvals.Batch) time.Duration {
	o.t.Helper()
	soonest := time.Hour
	for _, b := range all {
		var later *slackapi.LaterError
		require.ErrorAs(o.t, o.ui.Cards.Reconcile(o.t.Context(), string(b.ID)), &later)
		soonest = min(soonest, later.After)
	}
	return soonest
}

// While Slack limits or answers no call, requests that wait for their digest cost little:
// nothing is written about them, and none of them reads the list of all.
func TestRequestsWaitCheaplyForTheirDigest(t *testing.T) {
	const many = 20
	for name, faults := range map[string]slacksim.Faults{
		"limited": {Chaos: &slacksim.Chaos{Limited: 1}},
		"away":    {OutageMS: int(time.Hour / time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			o, all, since := inOneDigest(t, many)
			o.SetFaults(faults)
			o.round(all)
			for range 5 {
				o.pass(o.round(all)) // until one of them may try again
				since()
				o.round(all)
				lists, writes := since()
				require.LessOrEqual(t, lists, 5, "of the one that tries")
				require.LessOrEqual(t, writes, 8, "of the one that tries")
				o.round(all)
				lists, writes = since()
				require.LessOrEqual(t, lists, 1)
				require.Zero(t, writes)
			}
			o.SetFaults(slacksim.Faults{})
			o.pass(2 * time.Minute)
			o.drawsAll(all...)
			require.Len(t, o.digests(), 1)
			require.Contains(t, plainWords(o.digests()[0]), fmt.Sprint(many, " requests wait"))
		})
	}
}

// A digest is tried once each time that it may be, however many requests wait for it.
func TestADigestIsTriedOnceForAllItsRequests(t *testing.T) {
	o, all, _ := inOneDigest(t, 20)
	o.SetFaults(slacksim.Faults{OutageMS: int(time.Hour / time.Millisecond)})
	before := len(o.Calls("chat.postMessage"))
	for round := range 6 {
		wait := o.round(all)
		require.Len(t, o.Calls("chat.postMessage"), before+round+1)
		require.Less(t, wait, 2*time.Minute)
		o.pass(wait)
	}
}

// Whoever had to draw the digest may have died. Any other request draws it.
func TestADigestIsDrawnByAnyOfItsRequests(t *testing.T) {
	o, all, _ := inOneDigest(t, 5)
	o.SetFaults(slacksim.Faults{Chaos: &slacksim.Chaos{Limited: 1}})
	for range 3 {
		o.pass(o.round(all))
	}
	o.SetFaults(slacksim.Faults{})
	o.pass(2 * time.Minute)
	o.drawsAll(all[4])
	require.Contains(t, plainWords(o.digests()[0]), "5 requests wait")
}

// A full digest takes no more, not even in its first minute and however many requests
// come at once. They go into the next one, and each is in one.
func TestADigestHoldsAtMostThreeHundredRequests(t *testing.T) {
	const many, most = 330, 300
	o, all, _ := inOneDigest(t, many)
	o.SetFaults(slacksim.Faults{Chaos: &slacksim.Chaos{Limited: 1}})
	var wg sync.WaitGroup
	for part := range 6 {
		wg.Go(func() {
			for i := part; i < many; i += 6 {
				_ = o.ui.Cards.Reconcile(t.Context(), string(all[i].ID))
			}
		})
	}
	wg.Wait()
	o.pass(2 * time.Minute)
	o.SetFaults(slacksim.Faults{})
	o.drawsAll(all...)

	require.Len(t, o.digests(), 2)
	seen := map[approvals.BatchID]bool{}
	for _, m := range o.digests() {
		raw, _, err := o.Memo(t.Context(), m.Actions()[0].Value, "digest")
		require.NoError(t, err)
		var memo struct {
			Body struct {
				Requests map[approvals.BatchID]json.RawMessage `json:"requests"`
			} `json:"body"`
		}
		require.NoError(t, json.Unmarshal(raw, &memo))
		require.LessOrEqual(t, len(memo.Body.Requests), most)
		for id := range memo.Body.Requests {
			require.False(t, seen[id], "it is listed once")
			seen[id] = true
		}
	}
	require.Len(t, seen, many)
}
