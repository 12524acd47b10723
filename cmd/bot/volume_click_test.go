package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// Hundreds of cards wait for Slack, whose limit is fifty updates a minute, because their
// requests have expired at once. The card that someone clicks on is updated next, and
// all the others are. With -soak it is thousands.
func TestTheCardOfAClickGoesBeforeThoseOfAStorm(t *testing.T) {
	t.Parallel()
	storm := 150
	if *soak {
		storm = 3000
	}
	f := newFlood(t, 1, 1_000_000)
	asks := approvals.Requirement{Quorums: []approvals.Quorum{{Name: "many", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"S0MANY"}}}}}
	clicked := f.request(storm, 1, asks)
	asks.Deadline = f.now().Add(24 * time.Hour)
	var expire []approvals.Batch
	for n := range storm {
		expire = append(expire, f.request(n, 1, asks))
	}
	f.goes(f.now().Add(12 * time.Hour))
	require.Empty(t, f.due)

	f.mu.Lock()
	f.at = asks.Deadline
	f.mu.Unlock()
	for _, b := range expire {
		require.NoError(t, f.desk.Tick(t.Context(), b.ID))
		f.due[string(b.ID)] = f.now()
	}
	f.goes(f.now().Add(30 * time.Second))
	require.Greater(t, len(f.due), storm/2, "they wait for Slack")

	call, before := clicked.Approvals[0].Call, f.calls["chat.update"]
	_, err := f.desk.Decide(t.Context(), clicked.ID, "click", approvals.Decide{Decision: approvals.Decision{
		Call: call.ID, By: approvals.Principal{User: "U0P000", Groups: []approvals.GroupID{"S0MANY"}, GroupsAt: f.now()},
		Verdict: approvals.Approve, Digest: call.Digest, At: f.now(),
	}})
	require.NoError(t, err)
	f.due[string(clicked.ID)], f.awaited = f.now(), string(clicked.ID)
	for f.due[string(clicked.ID)] != (time.Time{}) {
		f.goes(f.now().Add(time.Second))
		require.LessOrEqual(t, f.calls["chat.update"], before+3, "it is among the next")
	}
	f.goes(f.now().Add(12 * time.Hour))
	require.Empty(t, f.due)
	require.Equal(t, 1+len(expire), f.calls["chat.update"], "every card once")
}

// awaitedKey is of the context in which an item is drawn that someone waits for.
type awaitedKey struct{}

func awaits(ctx context.Context) bool { return ctx.Value(awaitedKey{}) != nil }
