package state_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// The backlog is the same whichever process reads it: what waits, since when, and
// what was given up.
func TestTheBacklogSaysWhatWaitsAndSinceWhen(t *testing.T) {
	k := newClock()
	s := openStore(t, statetest.Redis(t), k.Now)
	d := state.NewDue(s, state.DueOptions{Attempts: 1, Sweep: never})
	now, err := d.Backlog(t.Context())
	require.NoError(t, err)
	require.Equal(t, state.Backlog{Parked: map[state.Kind]int64{}, OldestDue: map[state.Kind]time.Time{}}, now)

	began := k.Now()
	var first approvals.Batch
	for n, after := range []time.Duration{time.Hour, 0, 2 * time.Hour} {
		id := ids{n}
		open := openBatch(t, id.batch("b"), id.run("r"), 1, began.Add(9*time.Hour))
		open.Batch.OpenedAt = began.Add(after)
		require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Request: "open", Batch: open.Batch, Events: open.Events, Args: open.Args}))
		if after == 0 {
			first = open.Batch
		}
	}
	r := commitRun(t, s, agentrun.Run{ID: ids{9}.run("r"), Status: agentrun.RunRunning, LeaseEnds: began, Failure: "x"})
	r.Status = agentrun.RunParked
	commitRun(t, s, r)
	k.Advance(time.Minute)
	now, err = d.Backlog(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3, now.Waiting)
	require.WithinDuration(t, began, now.OldestWaiting, time.Millisecond)
	require.EqualValues(t, 1, now.ParkedRuns)
	require.WithinDuration(t, began, now.OldestDue[state.Cards], time.Millisecond)
	require.NotContains(t, now.OldestDue, state.Deadlines, "they are due in hours")

	for n := range 40 {
		require.NoError(t, s.MakeDue(t.Context(), 9, state.Replies, string(ids{9}.run(fmt.Sprint("later", n))), k.Now().Add(time.Hour)))
	}
	require.NoError(t, s.MakeDue(t.Context(), 9, state.Homes, string(ids{9}.batch("home")), began.Add(-time.Hour)))
	crowded, err := d.Backlog(t.Context())
	require.NoError(t, err)
	now.OldestDue[state.Homes] = crowded.OldestDue[state.Homes]
	require.WithinDuration(t, began.Add(-time.Hour), crowded.OldestDue[state.Homes], time.Millisecond)
	require.Equal(t, now.OldestDue, crowded.OldestDue, "however much is due later")

	require.NoError(t, s.CommitBatch(t.Context(), decide(t, first, approvals.Deny, "deny")))
	work(t, d, state.Cards, func(context.Context, string) error { return errors.New("no") })
	statetest.Await(t, "the cards to be parked", func() bool {
		now, err = d.Backlog(t.Context())
		return err == nil && now.Parked[state.Cards] == 3
	})
	require.EqualValues(t, 2, now.Waiting)
	require.WithinDuration(t, began.Add(time.Hour), now.OldestWaiting, time.Millisecond)
	require.NotContains(t, now.OldestDue, state.Cards)
}

// A call in doubt is counted until people have answered, also while an older version
// works on the store, which does not list it.
func TestTheBacklogCountsTheCallsInDoubt(t *testing.T) {
	c := statetest.Redis(t)
	s := openStore(t, c, newClock().Now)
	d := state.NewDue(s, state.DueOptions{Sweep: never})
	doubts := func(want int) {
		t.Helper()
		now, err := d.Backlog(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, want, now.InDoubt)
	}
	open := openBatch(t, ids{3}.batch("b"), ids{3}.run("r"), 3, time.Time{})
	for i := range 2 {
		open.Batch.Approvals[i].Doubt = approvals.Doubt{Began: start0, Key: "k"}
	}
	commit := func(request string, b approvals.Batch, change approvals.Command) approvals.Batch {
		t.Helper()
		next, events, err := b.Apply(change)
		require.NoError(t, err)
		require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Request: approvals.RequestID(request), Before: b, Batch: next, Events: events}))
		return next
	}
	require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Request: "open", Batch: open.Batch, Events: open.Events, Args: open.Args}))
	doubts(2)

	require.NoError(t, s.Unlist(t.Context(), 3, approvals.Doubtful, open.Batch))
	doubts(0)
	late := approvals.Execution{State: approvals.Ran}
	b := commit("late", open.Batch, approvals.Report{Call: "call-0", Execution: late, At: start0.Add(time.Minute)})
	doubts(2)
	b = commit("up", b, approvals.Decide{Decision: approvals.Decision{
		Call: "call-0", By: ann(), Verdict: approvals.GiveUp, Digest: b.Approvals[0].Call.Digest, Reason: "no", At: start0.Add(2 * time.Minute),
	}})
	doubts(1)
	commit("end", b, approvals.Withdraw{By: "bo", At: start0.Add(3 * time.Minute)})
	doubts(0)
	require.NoError(t, s.MakeListed(t.Context(), 3, approvals.Doubtful, open.Batch))
	doubts(0)
}

// What begins says how late it is, so that a backlog is seen before it grows.
func TestWorkSaysHowLateItBegins(t *testing.T) {
	k := newClock()
	s := openStore(t, statetest.Redis(t), k.Now)
	type begun struct {
		kind state.Kind
		late time.Duration
	}
	begins := make(chan begun, 1)
	d := state.NewDue(s, state.DueOptions{Started: func(k state.Kind, late time.Duration) {
		select {
		case begins <- begun{k, late}:
		default:
		}
	}})
	open := openBatch(t, ids{1}.batch("b"), ids{1}.run("r"), 1, time.Time{})
	require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Request: "open", Batch: open.Batch, Events: open.Events, Args: open.Args}))
	k.Advance(90 * time.Second)
	work(t, d, state.Cards, func(context.Context, string) error { return nil })
	first := <-begins
	require.Equal(t, state.Cards, first.kind)
	require.InDelta(t, 90, first.late.Seconds(), 0.01)
}

// The size of each kind is what its keys need, measured on some of them.
func TestTheSizesAreThoseOfTheServer(t *testing.T) {
	c := statetest.Redis(t)
	s := openStore(t, c, newClock().Now)
	const batches = 300
	for i := range batches {
		open := openBatch(t, ids{i % 64}.batch(string(rune('a'+i%26))+time.Duration(i).String()), ids{i % 64}.run("r"), 1, time.Time{})
		require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Request: "open", Batch: open.Batch, Events: open.Events, Args: open.Args}))
	}
	require.NoError(t, s.CommitMemo(t.Context(), string(ids{3}.batch("b")), "cards", []byte("{}"), 0, 0))
	sizes, err := state.NewBrowser(s).Sizes(t.Context())
	require.NoError(t, err)
	found := map[string]state.Size{}
	for _, x := range sizes {
		found[x.Kind] = x
		require.Positive(t, x.Bytes, x.Kind)
	}
	require.Equal(t, batches, found["batch"].Keys)
	require.True(t, found["batch"].Estimated)
	exact := int64(0)
	for _, key := range c.Keys(t.Context(), s.Prefix()+":*:batch:*").Val() {
		exact += c.MemoryUsage(t.Context(), key, 0).Val()
	}
	require.InEpsilon(t, exact, found["batch"].Bytes, 0.1)
	require.Equal(t, 1, found["memo:cards"].Keys)
	require.False(t, found["memo:cards"].Estimated)
}
