package state_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// prefetches: what a request reads ahead is one round trip, and what it is handed is
// never older than what it has written itself.
func prefetches(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	ctx := t.Context()
	now := start0
	s, err := state.Open(ctx, state.Options{Client: c, Prefix: prefix(), Now: func() time.Time { return now }})
	require.NoError(t, err)
	id := ids{3}
	b, events, err := approvals.Open(approvals.Batch{ID: id.batch("b"), Run: id.run("r"), Requester: "ann", OpenedAt: start0},
		[]approvals.Deferral{{Call: approvals.ToolCall{ID: "c", Name: "look", Args: json.RawMessage(`{"at":1}`)}, Ask: approvals.Ask{
			Requirement: approvals.Requirement{Quorums: []approvals.Quorum{{Name: "q", Need: 1, From: approvals.From{Users: []approvals.UserID{"ann"}}}}},
		}}}, nil)
	require.NoError(t, err)
	digest := b.Approvals[0].Call.Digest
	require.NoError(t, s.CommitBatch(ctx, approvals.BatchCommit{Batch: b, Events: events, Args: map[approvals.Digest]json.RawMessage{digest: json.RawMessage(`{"at":1}`)}}))
	elsewhere := string(ids{60}.batch("other")) // on another server of a cluster
	require.NoError(t, s.CommitMemo(ctx, elsewhere, "people", []byte("1"), 0, 0))

	all := approvals.Reads{
		Batches: []approvals.BatchID{b.ID, id.batch("none"), "no id"},
		Args:    []approvals.ArgsKey{{Batch: b.ID, Digest: digest}},
		Memos:   []approvals.MemoKey{{ID: elsewhere, Surface: "people"}, {ID: string(b.ID), Surface: "cards"}},
	}
	memo := func(ctx context.Context, want string) {
		t.Helper()
		got, _, err := s.Memo(ctx, elsewhere, "people")
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	var seen statetest.Trips
	if client, ok := c.(*redis.Client); ok { // the hook of a client of its own
		o := *client.Options()
		own := redis.NewClient(&o)
		t.Cleanup(func() { require.NoError(t, own.Close()) })
		own.AddHook(&seen)
		s, err = state.Open(ctx, state.Options{Client: own, Prefix: s.Prefix(), Now: func() time.Time { return now }})
		require.NoError(t, err)
	}
	counts := func(n int) {
		t.Helper()
		if _, ok := c.(*redis.Client); ok {
			require.Len(t, seen.Taken(), n)
		}
	}

	seen.Taken()
	ahead := s.Prefetch(ctx, all)
	counts(0)
	got, err := s.Batch(ahead, b.ID)
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Version)
	args, err := s.Args(ahead, b.ID, digest)
	require.NoError(t, err)
	require.JSONEq(t, `{"at":1}`, string(args))
	_, err = s.Batch(ahead, id.batch("none"))
	require.ErrorIs(t, err, approvals.ErrNotFound)
	memo(ahead, "1")
	counts(1)

	// Each is handed out once.
	require.NoError(t, s.CommitMemo(ctx, elsewhere, "people", []byte("2"), 1, 0))
	memo(ahead, "2")

	// What the request has written itself is read again.
	ahead = s.Prefetch(ctx, all)
	_, err = s.Batch(ahead, b.ID)
	require.NoError(t, err)
	require.NoError(t, s.CommitMemo(ahead, elsewhere, "people", []byte("3"), 2, 0))
	memo(ahead, "3")

	// What follows the answer of a request does not rely on what it had read.
	ahead = s.Prefetch(ctx, all)
	_, err = s.Batch(ahead, b.ID)
	require.NoError(t, err)
	require.NoError(t, s.CommitMemo(ctx, elsewhere, "people", []byte("4"), 3, 0))
	now = now.Add(2 * time.Second)
	memo(ahead, "4")

	// A commit before the first read is in the same round trip.
	ahead = s.Prefetch(ctx, approvals.Reads{Batches: []approvals.BatchID{b.ID}, Memos: []approvals.MemoKey{{ID: elsewhere, Surface: "people"}}})
	seen.Taken()
	require.NoError(t, s.CommitMemo(ahead, elsewhere, "people", []byte("5"), 4, 0))
	_, err = s.Batch(ahead, b.ID)
	require.NoError(t, err)
	counts(1)
	memo(ahead, "5") // and what it has written is read again
	require.ErrorIs(t, s.CommitMemo(s.Prefetch(ctx, all), elsewhere, "people", []byte("6"), 4, 0), approvals.ErrConflict)

	// Messages, too, and no others than those that were named.
	thread := agentrun.Thread{ID: id.thread("t"), Messages: 2}
	say := func(words string) agentrun.Message {
		return agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: words, At: start0}}, At: start0}
	}
	require.NoError(t, s.Commit(ctx, agentrun.Commit{Thread: &thread, Append: &agentrun.Append{Thread: thread.ID, Messages: []agentrun.Message{say("one"), say("two")}}}))
	named := approvals.Reads{Batches: []approvals.BatchID{b.ID}, Messages: []approvals.MessagesKey{{Thread: string(thread.ID), From: 0, To: 2}}}
	for _, from := range []int{0, 1} {
		at := s.Prefetch(ctx, named)
		seen.Taken()
		_, err = s.Batch(at, b.ID)
		require.NoError(t, err)
		got, err := s.Messages(at, thread.ID, from, 2)
		require.NoError(t, err)
		require.Equal(t, []agentrun.Message{say("one"), say("two")}[from:], got)
		counts(1 + from)
	}

	// A reader whose time is over takes nothing from the others.
	ahead = s.Prefetch(ctx, all)
	over, cancel := context.WithCancel(ahead)
	cancel()
	_, err = s.Batch(over, b.ID)
	require.ErrorIs(t, err, context.Canceled)
	memo(ahead, "5")
}
