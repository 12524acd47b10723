package approvals_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/countersign/countersign/internal/approvals"
)

// doubted is a batch with one call in doubt.
func doubted(t require.TestingT, r Requirement) (Batch, Digest) {
	call := ToolCall{ID: "a", Name: "refund", Args: json.RawMessage(`{"n":1}`)}
	b, events, err := Open(Batch{ID: "batch-17-b", Run: "run-17-r", Requester: "req", OpenedAt: opened},
		[]Deferral{{Call: call, Ask: Ask{Requirement: r}, Doubt: Doubt{Began: opened.Add(-time.Hour), Key: "run-17-q/a", Approved: "batch-17-a"}}}, nil)
	require.NoError(t, err)
	require.Equal(t, []ToolCallID{"a"}, events[0].(Opened).Doubts)
	return b, b.Approvals[0].Call.Digest
}

// Whatever people say in whatever order: the first that gives the call up or says
// that it happened settles it, it runs again only with the whole requirement, and
// nobody counts who may not approve.
func TestAnyAnswersToADoubt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{dice: &rapidDice{t, 40}, now: opened}
		r := m.requirement()
		r.Ladder = nil
		b, digest := doubted(t, r)
		for range rapid.IntRange(1, 12).Draw(t, "answers") {
			v := rapid.SampledFrom([]Verdict{RunAgain, RunAgain, RunAgain, Happened, GiveUp, Approve, Deny, ""}).Draw(t, "verdict")
			by, before := m.principal(), b
			next, events, err := b.Apply(Decide{Decision{Call: "a", By: by, Verdict: v, Digest: digest, Reason: "r", At: m.now}})
			if b.Settled() || overdue(b.Approvals[0], m.now) {
				require.Error(t, err)
				continue
			}
			if err != nil || len(events) == 0 {
				alike(t, snapshot(before), snapshot(next))
				continue
			}
			require.Contains(t, []Verdict{RunAgain, Happened, GiveUp}, v)
			require.True(t, eligible(r.Quorums, by) && !barred(b, before.Approvals[0], by.User, Approve))
			b = next
			a := b.Approvals[0]
			var yes []Principal
			for _, d := range a.Decisions {
				if d.Verdict == RunAgain {
					yes = append(yes, d.By)
				}
			}
			want := Pending
			switch {
			case v == Happened:
				want = Confirmed
			case v == GiveUp:
				want = Denied
			case slices.ContainsFunc(everyWay(r.Quorums), func(way []Quorum) bool { return fills(way, yes) }):
				want = Approved
			}
			require.Equal(t, want, a.Status)
		}
		args := map[ToolCallID]json.RawMessage{"a": json.RawMessage(`{"n":1}`)}
		got, err := b.Results(args)
		if !b.Settled() {
			is(t, err, ErrOpen)
			return
		}
		require.NoError(t, err)
		switch a := b.Approvals[0]; a.Status {
		case Approved:
			require.Equal(t, ToolApproved{}, got.Approvals["a"])
		case Confirmed:
			require.Contains(t, got.Approvals["a"].(ToolHappened).Message, HappenedMessage)
		case Denied:
			require.Contains(t, got.Approvals["a"].(ToolDenied).Message, DoubtGivenUpMessage)
		case Pending, Expired, Withdrawn:
		}
	})
}

// A doubt that ends without an answer is not taken for a denial, nor for a call
// that did not run.
func TestADoubtThatNobodyAnswersIsToldAsUnknown(t *testing.T) {
	r := Requirement{Quorums: []Quorum{{Name: "q", Need: 1, From: From{Users: []UserID{"ann"}}}}, Deadline: opened.Add(time.Hour)}
	for want, cmd := range map[string]Command{
		DoubtExpiredMessage:   Expire{At: opened.Add(time.Hour)},
		DoubtWithdrawnMessage: Withdraw{By: "req", At: opened},
	} {
		b, _ := doubted(t, r)
		b = mustApply(t, b, cmd)
		got, err := b.Results(nil)
		require.NoError(t, err)
		require.Equal(t, ToolDenied{Message: want}, got.Approvals["a"])
	}
}

// What is not in doubt is not answered as a doubt, and a doubt is neither approved,
// denied nor amended.
func TestADoubtHasVerdictsOfItsOwn(t *testing.T) {
	r := Requirement{Quorums: []Quorum{{Name: "q", Need: 1, From: From{Users: []UserID{"ann"}}}}}
	b, digest := doubted(t, r)
	ann := Principal{User: "ann"}
	for _, v := range []Verdict{Approve, Deny} {
		_, _, err := b.Apply(Decide{Decision{Call: "a", By: ann, Verdict: v, Digest: digest, At: opened}})
		require.ErrorIs(t, err, ErrInDoubt)
	}
	_, _, err := b.Apply(Amend{Call: "a", From: digest, Args: json.RawMessage(`{}`), Ruling: Permit{}, By: ann, At: opened})
	require.ErrorIs(t, err, ErrInDoubt)
	b.Approvals[0].Doubt = Doubt{}
	for _, v := range []Verdict{RunAgain, Happened, GiveUp} {
		_, _, err := b.Apply(Decide{Decision{Call: "a", By: ann, Verdict: v, Digest: digest, At: opened}})
		require.ErrorIs(t, err, ErrInvalid)
	}
}

// A late report is recorded once, before and after people have decided, and moves
// nothing else.
func TestALateReportDecidesNothing(t *testing.T) {
	r := Requirement{Quorums: []Quorum{{Name: "q", Need: 1, From: From{Users: []UserID{"ann"}}}}}
	open, digest := doubted(t, r)
	decided := mustApply(t, open, Decide{Decision{Call: "a", By: Principal{User: "ann"}, Verdict: GiveUp, Digest: digest, At: opened}})
	for _, b := range []Batch{open, decided} {
		_, _, err := b.Apply(Report{Call: "a", Execution: Execution{State: Ran, Excerpt: "re_1"}})
		require.ErrorIs(t, err, ErrInvalid, "it needs a time")
		next, events, err := b.Apply(Report{Call: "a", Execution: Execution{State: Ran, Excerpt: "re_1"}, At: opened})
		require.NoError(t, err)
		require.Equal(t, []Event{Reported{Batch: b.ID, Call: "a", State: Ran, At: opened}}, events)
		require.Equal(t, b.Version+1, next.Version)
		require.Equal(t, "re_1", next.Approvals[0].Doubt.Late.Excerpt)
		again, events, err := next.Apply(Report{Call: "a", Execution: Execution{State: RanFailed}, At: opened})
		require.NoError(t, err)
		require.Empty(t, events)
		alike(t, snapshot(next), snapshot(again))
		next.Version, next.Approvals[0].Doubt.Late = b.Version, Execution{}
		alike(t, snapshot(b), snapshot(next))
	}
}
