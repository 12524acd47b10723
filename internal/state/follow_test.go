package state_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// follow: a snapshot and what follows it are together everything that happened,
// each once, at whatever moment someone begins.
func follow(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	desk := approvals.NewDesk(s, nil, nil, newClock().Now)
	const people, followers = 40, 12
	from := approvals.From{Groups: []approvals.GroupID{"ops"}}
	opens := func(id approvals.BatchID) approvals.Batch {
		call := approvals.ToolCall{ID: "c", Name: "delete_file"}
		b, events, err := approvals.Open(approvals.Batch{ID: id, Run: ids{21}.run("r"), Requester: "bo", OpenedAt: start0},
			[]approvals.Deferral{{Call: call, Ask: approvals.Ask{Requirement: approvals.Requirement{
				Quorums: []approvals.Quorum{{Need: people, From: from}},
			}}}}, nil)
		require.NoError(t, err)
		require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &agentrun.OpenBatch{Batch: b, Events: events}}))
		return b
	}
	// The id of the other begins like the one that is followed.
	b, other := opens(ids{21}.batch("b")), opens(ids{21}.batch("bb"))
	approve := func(b approvals.Batch, n int) {
		user := approvals.UserID(fmt.Sprintf("u%d", n))
		_, err := desk.Decide(t.Context(), b.ID, approvals.RequestID(user), approvals.Decide{Decision: approvals.Decision{
			Call: "c", By: approvals.Principal{User: user, Groups: from.Groups}, Verdict: approvals.Approve, Digest: b.Approvals[0].Call.Digest,
		}})
		require.NoError(t, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	feed := state.NewFeed(s)
	began, seen := make(chan struct{}, followers), make([][]approvals.UserID, followers)
	var wg sync.WaitGroup
	problems := make([]error, followers)
	for i := range followers {
		wg.Go(func() {
			for range i { // some begin while others already hear of decisions
				<-began
				began <- struct{}{}
			}
			now, at, err := feed.Snapshot(ctx, b.ID)
			began <- struct{}{}
			problems[i] = err
			for _, d := range now.Approvals[0].Decisions {
				seen[i] = append(seen[i], d.By.User)
			}
			if now.Settled() {
				return
			}
			for f, err := range feed.Follow(ctx, b.ID, at) {
				problems[i] = err
				if e, ok := f.Event.(approvals.Decided); ok {
					seen[i] = append(seen[i], e.By.User)
				}
				if _, ok := f.Event.(approvals.Resolved); ok {
					return
				}
			}
		})
	}
	for n := range people {
		approve(other, n)
		approve(b, n)
	}
	wg.Wait()
	after, last, err := feed.Snapshot(t.Context(), b.ID)
	require.NoError(t, err)
	for i := range followers {
		require.NoError(t, problems[i])
		require.Equal(t, after.Approvals[0].Deciders(approvals.Approve), seen[i])
	}

	// From a place on, again from each fact on, and not after ctx has ended.
	var all []string
	for f, err := range feed.Follow(t.Context(), b.ID, "") {
		require.NoError(t, err)
		if all = append(all, f.ID); len(all) == people+3 { // opened, settled, resolved
			break
		}
	}
	for i, place := range all[:len(all)-1] { // the last three were stored together
		for f, err := range feed.Follow(t.Context(), b.ID, place) {
			require.NoError(t, err)
			require.Equal(t, all[i+1], f.ID)
			break
		}
	}
	var paged []string
	for after := ""; ; {
		page, err := feed.Facts(t.Context(), 21, after, 2)
		require.NoError(t, err)
		for _, f := range page {
			if after = f.ID; approvals.BatchOf(f.Event) == b.ID {
				paged = append(paged, f.ID)
			}
		}
		if len(page) < 2 {
			break
		}
	}
	require.Equal(t, all, paged)
	for _, made := range []string{"1-0.0", "1-0.x", "0-0.1", "1.1"} {
		_, err := feed.Facts(t.Context(), 21, made, 2)
		require.ErrorIs(t, err, approvals.ErrInvalid)
	}
	cancel()
	for f, err := range feed.Follow(ctx, b.ID, last) {
		t.Fatal("there is nothing behind the last fact", f, err)
	}

	_, _, err = feed.Snapshot(t.Context(), ids{21}.batch("nobody"))
	require.ErrorIs(t, err, approvals.ErrNotFound)
	for _, err := range feed.Follow(t.Context(), "made-up", "") {
		require.ErrorIs(t, err, approvals.ErrNotFound)
	}
}

// A follower that waits is woken by each commit, not by its next look: what
// follows a fact is committed only once that fact was read.
func TestACommitWakesAFollower(t *testing.T) {
	state.OnlyWhenWoken(t)
	s := openStore(t, statetest.Miniredis(t), newClock().Now)
	opens := openBatch(t, ids{22}.batch("b"), ids{22}.run("r"), 5, start0)
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
	b := opens.Batch
	decided := 0
	for f, err := range state.NewFeed(s).Follow(t.Context(), b.ID, "") {
		require.NoError(t, err)
		if _, ok := f.Event.(approvals.Resolved); ok {
			require.Equal(t, 5, decided)
			return
		}
		if _, answered := f.Event.(approvals.Decided); !answered && decided < len(b.Approvals) {
			call := b.Approvals[decided].Call
			next, events, err := b.Apply(approvals.Decide{Decision: approvals.Decision{
				Call: call.ID, By: approvals.Principal{User: "ann"}, Verdict: approvals.Approve, Digest: call.Digest, At: start0.Add(-1),
			}})
			require.NoError(t, err)
			require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Request: approvals.RequestID(call.ID), Before: b, Batch: next, Events: events}))
			b, decided = next, decided+1
		}
	}
	t.Fatal("it ended before the batch was settled")
}

// Who watches a conversation is woken by its runs too.
func TestACommitOfARunWakesAWatcher(t *testing.T) {
	s := openStore(t, statetest.Miniredis(t), newClock().Now)
	feed := state.NewFeed(s)
	run := agentrun.Run{ID: ids{23}.run("r"), Thread: ids{23}.thread("t"), Status: agentrun.RunQueued, CreatedAt: start0}
	changed, leave, err := feed.Watch(string(run.ID))
	require.NoError(t, err)
	defer leave()
	<-changed // the subscription has begun
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Runs: []agentrun.Run{run}}))
	<-changed
	// Nothing else of this commit wakes anyone: the lease ends later than any timer is set.
	run.Version, run.Status, run.Owner, run.LeaseEnds = 1, agentrun.RunRunning, "w", start0.Add(time.Hour)
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Runs: []agentrun.Run{run}, Undrawn: true}))
	<-changed
	_, _, err = feed.Watch("made-up")
	require.ErrorIs(t, err, approvals.ErrNotFound)
}
