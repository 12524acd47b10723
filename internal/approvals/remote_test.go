package approvals_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

func TestARequesterThatIsAServiceIsNoPerson(t *testing.T) {
	name, ok := approvals.ServiceUser("ci").Service()
	require.True(t, ok)
	require.Equal(t, "ci", name)
	_, ok = approvals.UserID("U0ALICE").Service()
	require.False(t, ok)
}

// remoteBatch is a batch of a shared agent, with one call that bob or dave may
// approve.
func remoteBatch(t *testing.T, r approvals.Requirement) approvals.Batch {
	t.Helper()
	r.Quorums = []approvals.Quorum{{Need: 1, From: approvals.From{Users: []approvals.UserID{"bob", "dave"}}}}
	b, _, err := approvals.Open(approvals.Batch{
		ID: "batch-01-b", Run: "run-01-r", Executor: "client", Requester: approvals.ServiceUser("ci"),
		Participants: []approvals.UserID{"bob"}, OpenedAt: at0,
	}, []approvals.Deferral{{
		Call: approvals.ToolCall{ID: "c", Name: "deploy", Args: []byte(`{}`)}, Ask: approvals.Ask{Requirement: r},
	}}, nil)
	require.NoError(t, err)
	return b
}

var at0 = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func says(b approvals.Batch, u approvals.UserID) (approvals.Batch, error) {
	next, _, err := b.Apply(approvals.Decide{Decision: approvals.Decision{
		Call: "c", By: approvals.Principal{User: u}, Verdict: approvals.Approve, Digest: b.Approvals[0].Call.Digest, At: at0,
	}})
	return next, err
}

func TestNoRuleLetsThoseApproveWhoShareTheCredential(t *testing.T) {
	b := remoteBatch(t, approvals.Requirement{Separation: true, ParticipantsMaySign: true})
	_, err := says(b, "bob")
	require.ErrorIs(t, err, approvals.ErrOwnWords)
	require.True(t, b.BarsParticipants(b.Approvals[0].Requirement))
	_, err = says(b, "dave")
	require.NoError(t, err)
}

func TestWhatIsSaidOfACallThatRanElsewhereIsRecordedOnceAfterItsClaim(t *testing.T) {
	b, err := says(remoteBatch(t, approvals.Requirement{}), "dave")
	require.NoError(t, err)
	tell := func(s approvals.ExecutionState, by string) error {
		next, events, err := b.Apply(approvals.Conclude{At: at0, Calls: []approvals.Conclusion{{Call: "c", Execution: approvals.Execution{State: s, By: by}}}})
		if len(events) > 0 {
			b = next
		}
		return err
	}
	require.ErrorIs(t, tell(approvals.Claimed, ""), approvals.ErrInvalid, "somebody claims it")
	require.NoError(t, tell(approvals.Claimed, "ci"))
	require.Equal(t, approvals.Claimed, b.Approvals[0].Execution.State)
	require.NoError(t, tell(approvals.Ran, "ci"))
	require.NoError(t, tell(approvals.Claimed, "ci"))
	require.NoError(t, tell(approvals.RanFailed, "ci"))
	require.Equal(t, approvals.Ran, b.Approvals[0].Execution.State)
}

func TestADecisionIsUsableFromTheLastOneOn(t *testing.T) {
	b := remoteBatch(t, approvals.Requirement{ClaimWithin: time.Minute})
	require.Zero(t, b.UsableUntil(b.Approvals[0]))
	b, err := says(b, "dave")
	require.NoError(t, err)
	require.Equal(t, at0.Add(time.Minute), b.UsableUntil(b.Approvals[0]))
}
