package slackui_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// manyRuns are 500 calls of 200 runs in #ops.
func (h *sheetWorkspace) manyRuns() []approvals.Batch {
	h.t.Helper()
	var all []approvals.Batch
	for i := range 200 {
		root := h.say("U0ALICE", "tag the reports")
		all = append(all, h.asksIn("C0OPS", root, fmt.Sprintf("r%03d", i), "U0ALICE", time.Hour-time.Duration(i)*time.Second, tags(2+i%2, sre)...))
	}
	return all
}

// slackCalls counts what was asked of Slack since, without the cards.
func (h *sheetWorkspace) slackCalls(since int) (all map[string]int, sum int) {
	h.t.Helper()
	all = map[string]int{}
	for _, e := range h.Log() {
		if e.Direction == slacksim.FromApp && e.Seq > since {
			all[e.Kind]++
			if e.Kind != "chat.update" {
				sum++
			}
		}
	}
	return all, sum
}

func (h *sheetWorkspace) lastSeq() int {
	log := h.Log()
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].Seq
}

// works does all that is due, as a process does, until the answer is there and
// so many cards are drawn.
func (h *sheetWorkspace) works(bulk *approvals.Bulk, user string, cards int) {
	h.t.Helper()
	ctx, stop := context.WithCancel(h.t.Context())
	due := state.NewDue(h.store, state.DueOptions{Sweep: 100 * time.Millisecond})
	ended := make(chan error, 1)
	go func() {
		ended <- statetest.Work(ctx, due,
			state.Task{Kind: state.Sheets, Limit: time.Minute, Reconcile: func(ctx context.Context, id string) error { return bulk.Work(ctx, approvals.SheetID(id)) }},
			state.Task{Kind: state.Answers, Limit: time.Minute, Reconcile: h.ui.Answers.Reconcile},
			state.Task{Kind: state.Cards, Limit: time.Minute, Reconcile: h.ui.Cards.Reconcile},
		)
	}()
	require.Eventually(h.t, func() bool { return len(h.letters(user)) > 0 && len(h.Calls("chat.update")) >= cards }, time.Minute, 10*time.Millisecond)
	stop()
	require.NoError(h.t, <-ended)
}

// 500 calls of 200 runs are one word: answered inside Slack's 3 s, which the
// simulator enforces, one commit of each batch, and few calls to Slack.
func TestFiveHundredCallsAreSignedAtOnce(t *testing.T) {
	h := newSheetWorkspaceOn(t, statetest.Redis(t), func(c *slackui.Config) { c.CardsPerMinute = 1000 })
	batches := h.manyRuns()
	for _, b := range batches {
		require.NoError(t, h.ui.Cards.Reconcile(t.Context(), string(b.ID)))
	}
	before := h.lastSeq()
	began := time.Now()
	out, err := h.Command(slacksim.Command{User: "U0BOB", Channel: "C0OPS", Command: "/countersign", Text: "approve tool:tag_*"})
	asked := time.Since(began)
	require.NoError(t, err)
	require.Equal(t, slacksim.CommandOutcome{Status: 200}, out)
	require.NoError(t, h.ui.Server.Shutdown(t.Context()))
	listed := time.Since(began)
	v := h.top1("U0BOB")
	require.Equal(t, "Approve 500 calls", v.Submit)
	require.Contains(t, shows(v), "Page 1 of 17.")
	id := h.sheetID("U0BOB")

	h.counts.batches.Store(0)
	h.counts.sheets.Store(0)
	began = time.Now()
	sent := h.sendsSheet("U0BOB")
	acknowledged := time.Since(began)
	require.Empty(t, sent.VisibleError)
	require.Contains(t, shows(*sent.View), "Approving 500 calls…")
	require.EqualValues(t, 1, h.counts.sheets.Load(), "one commit, and then the answer")
	require.Zero(t, h.counts.batches.Load())

	// A worker is killed in the middle; another takes over when its lease ends.
	h.counts.dies.Store(120)
	require.Error(t, h.bulk.Work(t.Context(), id))
	signed := 0
	for _, b := range batches {
		signed += strings.Count(h.statuses(b), "approved")
	}
	require.NotZero(t, signed)
	require.Less(t, signed, 500, "it was in the middle")
	done := h.counts.batches.Load()
	h.counts.dies.Store(0)
	h.pass(time.Minute)
	began = time.Now()
	h.works(approvals.NewBulk(h.desk, h.counts, "two", h.now.Now), "U0BOB", len(batches))
	worked := time.Since(began)

	sheet, err := h.store.Sheet(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, approvals.SheetSummary{Signed: 500}, sheet.Summary())
	for _, b := range batches {
		require.Equal(t, 1, h.counts.made[b.ID], "one commit of each batch")
		for _, a := range h.stored(b).Approvals {
			require.Len(t, a.Decisions, 1)
		}
	}
	require.Len(t, h.letters("U0BOB"), 1, "one answer")
	require.Contains(t, h.letters("U0BOB")[0], "Approved 500 calls.")
	calls, others := h.slackCalls(before)
	posts := calls["chat.postMessage"]
	t.Logf("asked %s, listed %s, acknowledged %s, finished %s; %d commits of batches tried before the kill, %d after; Slack: %v",
		asked, listed, acknowledged, worked, done, h.counts.batches.Load()-done, calls)
	require.LessOrEqual(t, others-posts+1, 10, "besides cards: %v", calls)
	require.Equal(t, 200, calls["chat.update"], "each card is drawn once, for all its calls: %v", calls)
}
