package state_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// figures is what a bulk decision of 500 calls of 200 batches costs.
type figures struct {
	Click   time.Duration // one decision of the same kind, alone: the measure of the others
	Submit  time.Duration // until the person can be answered
	Work    time.Duration // until all is decided
	Commits int64         // of the work
}

// signInBulk signs 500 calls from one sheet and checks that it did.
func signInBulk(tb testing.TB, c redis.UniversalClient) figures {
	tb.Helper()
	ctx := tb.Context()
	var count atomic.Int64
	c.AddHook(scripts(&count))
	s, err := state.Open(ctx, state.Options{Client: c, Prefix: prefix()})
	require.NoError(tb, err)
	now := func() time.Time { return start0.Add(time.Minute) }
	sheet := approvals.Sheet{ID: sheetID, By: "ann", Verdict: approvals.Approve}
	const batches, clicks = 200, 20
	var alone []approvals.Batch
	for i := range batches + clicks {
		id := ids{i % approvals.Partitions}
		opens := openBatch(tb, id.batch(fmt.Sprintf("b%04d", i)), id.run("r"), 2+i%2, time.Time{})
		require.NoError(tb, s.Commit(ctx, agentrun.Commit{Opens: &opens}))
		if i >= batches {
			alone = append(alone, opens.Batch)
			continue
		}
		for _, a := range opens.Batch.Approvals {
			sheet.Lines = append(sheet.Lines, opens.Batch.Line(a, false))
		}
	}
	require.Len(tb, sheet.Lines, 500)
	bulk := newBulk(s, "w", now)
	_, err = bulk.Show(ctx, sheet)
	require.NoError(tb, err)

	var f figures
	f.Click = took(func() {
		for _, b := range alone {
			_, err = newDesk(s, now).Decide(ctx, b.ID, "r", approvals.Decide{Decision: approvals.Decision{
				Call: "call-0", By: ann(), Verdict: approvals.Approve, Digest: b.Approvals[0].Call.Digest,
			}})
			require.NoError(tb, err)
		}
	}) / clicks
	f.Submit = took(func() { _, err = bulk.Submit(ctx, sheetID, "click", ann(), nil, "") })
	require.NoError(tb, err)
	count.Store(0)
	f.Work = took(func() { err = bulk.Work(ctx, sheetID) })
	require.NoError(tb, err)
	f.Commits = count.Load()
	got, err := s.Sheet(ctx, sheetID)
	require.NoError(tb, err)
	require.Equal(tb, approvals.SheetSummary{Signed: 500}, got.Summary())
	return f
}

// inboxPage reads a page of 20 from the lists of a person with five groups
// while so many batches are open.
func inboxPage(b *testing.B, c redis.UniversalClient, size int) {
	b.Helper()
	ctx := b.Context()
	s, err := state.Open(ctx, state.Options{Client: c, Prefix: prefix()})
	require.NoError(b, err)
	for i := range size {
		id := ids{i % approvals.Partitions}
		opens := openBatch(b, id.batch(fmt.Sprintf("b%05d", i)), id.run("r"), 1, time.Time{})
		require.NoError(b, s.Commit(ctx, agentrun.Commit{Opens: &opens}))
	}
	lists := []approvals.ListKey{approvals.WaitsForUser("ann")}
	for i := range 5 {
		lists = append(lists, approvals.WaitsForGroup(approvals.GroupID(fmt.Sprint("S", i))))
	}
	b.Run(fmt.Sprint(size, " open"), func(b *testing.B) {
		for b.Loop() {
			page, _, err := s.Inbox(ctx, lists, "", 20)
			if err != nil || len(page) != min(size, 20) {
				b.Fatal(len(page), err)
			}
		}
		const pings = 200
		each := took(func() {
			for range pings {
				require.NoError(b, s.Ping(ctx))
			}
		}) / pings
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(each), "pings/op")
	})
}

func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
