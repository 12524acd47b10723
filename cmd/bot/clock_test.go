package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

// A process whose clock is an hour behind would count decisions and claims an hour
// after their time. It stores none, and does when its clock is right again.
func TestAProcessWithAWrongClockDecidesAndClaimsNothing(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	client := intake.Client{Name: "refunds", Owner: dave, Channel: ops, Credential: "c", OpenLimit: 10, PerMinute: 100}
	ask := func(id string) (intake.Request, error) {
		return f.b.intake.Ask(t.Context(), client, intake.Ask{
			Door: "api", ExternalID: id, Calls: []intake.Call{{ID: "c1", Tool: "refund", Args: json.RawMessage(`{}`)}},
		})
	}
	asked, err := ask("right")
	require.NoError(t, err)
	f.sees("its card", func() bool { return f.reads(bob, ops, "", "Refund") })
	require.Equal(t, 200, f.clicks("", "Refund").Status)
	differs := new(state.SkewError)
	version := func() int64 {
		_, version, err := f.b.store.Memo(t.Context(), string(asked.ID), "intake")
		require.NoError(t, err)
		return version
	}
	before := version()

	f.redis.SetTime(time.Now().Add(time.Hour))
	require.ErrorAs(t, f.b.clock.Check(t.Context()), &differs)
	_, err = f.b.intake.Claim(t.Context(), client, asked.ID, "c1")
	require.ErrorAs(t, err, &differs)
	require.Greater(t, version(), before, "a claim that was on its way is refused when it arrives")
	_, err = ask("wrong")
	require.ErrorAs(t, err, &differs)
	out := f.clicks(f.root, "Delete a.txt")
	require.Equal(t, 500, out.Status)
	require.NotEmpty(t, out.VisibleError)
	away := func() slacksim.CommandOutcome {
		out, err := f.slack.Command(slacksim.Command{User: bob, Channel: ops, Command: "/countersign", Text: "away for 2h"})
		require.NoError(t, err)
		return out
	}
	require.Equal(t, 500, away().Status)

	f.redis.SetTime(time.Time{}) // that of the machine
	_, err = f.b.intake.Claim(t.Context(), client, asked.ID, "c1")
	require.NoError(t, err)
	require.Equal(t, 200, away().Status)
	f.approves()
}

// What is read does not follow a wrong clock either, whosever it is: an agent would read, and
// the bot would sign, that a request has expired about which people still decide.
func TestARequestHasNotExpiredByOneWrongClock(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	client := intake.Client{Name: "refunds", Owner: dave, Channel: ops, Credential: "c", OpenLimit: 10, PerMinute: 100}
	asked, err := f.b.intake.Ask(t.Context(), client, intake.Ask{
		Door: "api", ExternalID: "r", Calls: []intake.Call{{ID: "c1", Tool: "refund", Args: json.RawMessage(`{}`)}},
	})
	require.NoError(t, err)
	reads := func() intake.Outcome {
		r, err := f.b.intake.Get(t.Context(), client, asked.ID)
		require.NoError(t, err)
		return r.Calls[0].Outcome
	}
	require.Equal(t, intake.OutcomePending, reads())
	for _, wrong := range []time.Duration{48 * time.Hour, -48 * time.Hour} {
		f.redis.SetTime(time.Now().Add(wrong))
		require.Error(t, f.b.clock.Check(t.Context()))
		require.Equal(t, intake.OutcomePending, reads())
	}
	f.redis.SetTime(time.Time{})
	require.NoError(t, f.b.clock.Check(t.Context()))
	require.Equal(t, intake.OutcomePending, reads())
}

// Nobody reads that it is too late to decide from a process whose clock is ahead.
func TestADeadlineHasNotPassedByAWrongClock(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	b := approvals.Batch{
		ID: approvals.BatchID(approvals.NewID("batch", 0, "late")), Run: approvals.RunID(approvals.NewID("run", 0, "late")), OpenedAt: time.Now().Add(-2 * time.Hour),
	}
	call := approvals.ToolCall{ID: "c1", Name: "refund", Args: json.RawMessage(`{}`)}
	b, events, err := approvals.Open(b, []approvals.Deferral{{Call: call, Ask: approvals.Ask{Requirement: approvals.Requirement{
		Quorums: []approvals.Quorum{{Name: "ops", Need: 1, From: approvals.From{Users: []approvals.UserID{bob}}}}, Deadline: time.Now().Add(-time.Hour),
	}}}}, nil)
	require.NoError(t, err)
	f.redis.SetTime(time.Now().Add(-90 * time.Minute))
	require.Error(t, f.b.clock.Check(t.Context()))
	require.NoError(t, f.b.store.CommitBatch(t.Context(), approvals.BatchCommit{Batch: b, Events: events, Args: map[approvals.Digest]json.RawMessage{approvals.DigestOf(b.ID, call): call.Args}}))
	records := newTimely(f.b.store, f.b.clock)
	_, err = records.Batch(t.Context(), b.ID)
	require.ErrorAs(t, err, new(*state.SkewError))
	f.redis.SetTime(time.Time{})
	_, err = records.Batch(t.Context(), b.ID)
	require.NoError(t, err)
}
