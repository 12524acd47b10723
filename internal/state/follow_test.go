package state_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// follow: whoever follows a partition hears of everything after the place where they
// begin, each once, at whatever moment that is.
func follow(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	desk := approvals.NewDesk(s, nil, nil, newClock().Now)
	const people = 40
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
	b, end := opens(ids{21}.batch("b")), ids{21}.batch("end")

	type follower struct {
		from string
		seen []string
		err  error
	}
	feed := state.NewFeed(s)
	var followers []*follower
	var began, ended sync.WaitGroup
	for n := range people {
		if n%4 == 0 {
			f := &follower{}
			followers = append(followers, f)
			began.Add(1)
			ended.Go(func() {
				f.from, f.err = feed.LastFact(t.Context(), 21)
				began.Done()
				for fact, err := range feed.Follow(t.Context(), 21, f.from) {
					f.err = errors.Join(f.err, err)
					f.seen = append(f.seen, fact.ID)
					if approvals.BatchOf(fact.Event) == end {
						return
					}
				}
			})
		}
		user := approvals.UserID(fmt.Sprintf("u%d", n))
		_, err := desk.Decide(t.Context(), b.ID, approvals.RequestID(user), approvals.Decide{Decision: approvals.Decision{
			Call: "c", By: approvals.Principal{User: user, Groups: from.Groups}, Verdict: approvals.Approve, Digest: b.Approvals[0].Call.Digest,
		}})
		require.NoError(t, err)
	}
	began.Wait()
	opens(end)
	ended.Wait()

	var all []string
	for after := ""; ; {
		page, err := feed.Facts(t.Context(), 21, after, 2)
		require.NoError(t, err)
		for _, f := range page {
			after = f.ID
			all = append(all, f.ID)
		}
		if len(page) < 2 {
			break
		}
	}
	require.Len(t, all, people+4, "opened twice, settled, resolved")
	for _, f := range followers {
		require.NoError(t, f.err)
		require.Equal(t, all[slices.Index(all, f.from)+1:], f.seen)
	}
	// Again from each fact on, also between those that were stored together.
	for i, place := range append([]string{""}, all[:len(all)-1]...) {
		for f, err := range feed.Follow(t.Context(), 21, place) {
			require.NoError(t, err)
			require.Equal(t, all[i], f.ID)
			break
		}
	}
	for _, made := range []string{"1-0.0", "1-0.x", "0-0.1", "1.1"} {
		_, err := feed.Facts(t.Context(), 21, made, 2)
		require.ErrorIs(t, err, approvals.ErrInvalid)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for f, err := range feed.Follow(ctx, 21, all[len(all)-1]) {
		t.Fatal("there is nothing behind the last fact", f, err)
	}
	for _, err := range feed.Follow(t.Context(), approvals.Partitions, "") {
		require.ErrorIs(t, err, approvals.ErrInvalid)
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
	for f, err := range state.NewFeed(s).Follow(t.Context(), 22, "") {
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
