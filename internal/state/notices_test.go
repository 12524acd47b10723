package state_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// notices: people are to be told after a reminder, an escalation and an
// amendment that took their decisions back, and after nothing else; until the
// surface has done so for the batch as it stands.
func notices(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	people := []approvals.UserID{"ann"}
	for name, step := range map[string]struct {
		fact approvals.Event
		due  bool
	}{
		"reminded":           {approvals.Reminded{Rung: 1}, true},
		"escalated":          {approvals.Escalated{Rung: 1}, true},
		"amended, signed":    {approvals.Amended{Cleared: people}, true},
		"amended, unsigned":  {approvals.Amended{}, false},
		"decided":            {approvals.Decided{}, false},
		"retracted":          {approvals.Retracted{}, false},
		"settled":            {approvals.Settled{}, false},
		"resolved":           {approvals.Resolved{}, false},
		"concluded":          {approvals.Concluded{}, false},
		"fulfilled":          {approvals.Fulfilled{}, false},
		"nothing of the two": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newClock()
			s := openStore(t, c, k.Now)
			opens := openBatch(t, ids{12}.batch("b"), ids{12}.run("r"), 1, time.Time{})
			id := string(opens.Batch.ID)
			require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
			requireScore(t, s, state.Notices, id, time.Time{})
			k.Advance(time.Minute)
			events := []approvals.Event{approvals.Retracted{}}
			if step.fact != nil {
				events = append(events, step.fact)
			}
			next := opens.Batch
			next.Version = 2
			require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Before: opens.Batch, Batch: next, Events: events}))
			if !step.due {
				requireScore(t, s, state.Notices, id, time.Time{})
				return
			}
			requireScore(t, s, state.Notices, id, k.Now())
		})
	}

	t.Run("others asked for it too", func(t *testing.T) {
		k := newClock()
		s := openStore(t, c, k.Now)
		opens := openBatch(t, ids{12}.batch("b"), ids{12}.run("r"), 1, time.Time{})
		opens.Batch.Participants = people
		id := string(opens.Batch.ID)
		require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
		requireScore(t, s, state.Notices, id, k.Now())
		require.NoError(t, s.CommitMemo(t.Context(), id, "notices", []byte("told"), 0, 1))
		requireScore(t, s, state.Notices, id, time.Time{})
		k.Advance(time.Minute)
		next := opens.Batch
		next.Version = 2
		require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{
			Before: opens.Batch, Batch: next, Events: []approvals.Event{approvals.Amended{}},
		}))
		requireScore(t, s, state.Notices, id, k.Now())
	})

	t.Run("they are told of the batch as it stands", func(t *testing.T) {
		k := newClock()
		s := openStore(t, c, k.Now)
		ctx := t.Context()
		opens := openBatch(t, ids{12}.batch("b"), ids{12}.run("r"), 2, time.Time{})
		id := string(opens.Batch.ID)
		require.NoError(t, s.Commit(ctx, agentrun.Commit{Opens: &opens}))
		reminded := opens.Batch
		reminded.Version = 2
		require.NoError(t, s.CommitBatch(ctx, approvals.BatchCommit{
			Before: opens.Batch, Batch: reminded, Events: []approvals.Event{approvals.Reminded{Batch: opens.Batch.ID, Rung: 1}},
		}))
		at := k.Now()
		k.Advance(time.Minute)
		require.NoError(t, s.CommitBatch(ctx, decide(t, reminded, approvals.Approve, "")))
		requireScore(t, s, state.Notices, id, at)
		require.NoError(t, s.CommitMemo(ctx, id, "notices", []byte("v2"), 0, 2))
		requireScore(t, s, state.Notices, id, at)
		told, _, err := s.Memo(ctx, id, "notices")
		require.NoError(t, err)
		require.Equal(t, "v2", string(told), "who was told is kept although the batch has moved on")
		require.NoError(t, s.CommitMemo(ctx, id, "notices", []byte("v3"), 1, 3))
		requireScore(t, s, state.Notices, id, time.Time{})
		require.Contains(t, due(t, s, state.Cards), id, "the card is another surface's")
	})
}

// rungs: time moves a batch at its next rung, and the index knows when.
func rungs(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	s := openStore(t, c, k.Now)
	ctx := t.Context()
	hour := func(n int) time.Time { return start0.Add(time.Duration(n) * time.Hour) }
	opens := openBatch(t, ids{13}.batch("b"), ids{13}.run("r"), 2, hour(8))
	id := opens.Batch.ID
	oncall := approvals.From{Users: []approvals.UserID{"cy"}}
	for i := range opens.Batch.Approvals {
		opens.Batch.Approvals[i].Requirement.Ladder = []approvals.Rung{
			{At: hour(2 + i), Kind: approvals.Remind},
			{At: hour(4), Kind: approvals.Escalate, Quorum: "ops", Add: oncall, Channel: "C2"},
		}
	}
	require.NoError(t, s.Commit(ctx, agentrun.Commit{Opens: &opens}))
	b, told := opens.Batch, time.Time{}
	for _, next := range []time.Time{hour(2), hour(3), hour(4), hour(8)} {
		requireScore(t, s, state.Deadlines, string(id), next)
		k.Advance(next.Sub(k.Now()))
		var cmd approvals.Command = approvals.Climb{At: k.Now()}
		expires := next.Equal(hour(8))
		if expires {
			cmd = approvals.Expire{At: k.Now()}
		}
		after, events, err := b.Apply(cmd)
		require.NoError(t, err)
		require.NoError(t, s.CommitBatch(ctx, approvals.BatchCommit{Before: b, Batch: after, Events: events}))
		b = after
		if !expires { // the card alone says that it has expired
			told = next
		}
		requireScore(t, s, state.Notices, string(id), told)
	}
	requireScore(t, s, state.Deadlines, string(id), time.Time{})
	stored, err := s.Batch(ctx, id)
	require.NoError(t, err)
	require.Equal(t, b, stored)
	require.True(t, stored.Settled())
	var kinds []string
	facts, err := state.NewFeed(s).Facts(ctx, 13, "", 100)
	require.NoError(t, err)
	for _, f := range facts {
		switch e := f.Event.(type) {
		case approvals.Reminded:
			kinds = append(kinds, "reminded "+string(e.Call))
		case approvals.Escalated:
			kinds = append(kinds, "escalated "+string(e.Call))
		default:
		}
	}
	require.Equal(t, []string{"reminded call-0", "reminded call-1", "escalated call-0", "escalated call-1"}, kinds)
}
