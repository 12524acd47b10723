package uistream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// To approve a call in doubt would mean to run it again, so it is not offered. A
// client that has answered it before must not be left with that answer.
func TestACallInDoubtIsNotOfferedForApproval(t *testing.T) {
	now := time.Now()
	asked := approvals.Approval{
		Call: approvals.CallRef{ID: "c", Name: "del"}, Status: approvals.Pending, Doubt: approvals.Doubt{Began: now.Add(-time.Minute)},
		Requirement: approvals.Requirement{Quorums: []approvals.Quorum{{Need: 1}}},
	}
	made := &call{id: "c", name: "del", batch: approvals.Batch{ID: "batch-01-x"}, asked: &asked}
	turn := &turn{head: "run-01-x", steps: []*step{{calls: []*call{made}}}, waits: true, people: true}
	for _, d := range []Dialect{Common, V7, V7082, V5} {
		w := newTeller(d, "U", false)
		w.knows(message{Parts: []part{{Tool: "del", CallID: "c", State: stateResponded, Approval: &approvalPart{ID: "batch-01-x.old"}}}}, turn)
		out := w.tell(turn, now)
		require.Equal(t, []string{typeStart, typeApproval}, types(out), d)
		require.Equal(t, statusInDoubt, out[1].Data.Status)
		if d.approvals() {
			require.Equal(t, []string{typeInputAvailable}, types(w.unsettled(turn, now)))
			require.Empty(t, w.unsettled(turn, now))
		}
	}
}

// A call in doubt began, so nobody reads that it was not executed.
func TestWhyACallInDoubtDoesNotRunAgainIsSaid(t *testing.T) {
	now := time.Now()
	for status, says := range map[approvals.Status]string{
		approvals.Denied: approvals.DoubtGivenUpMessage, approvals.Withdrawn: approvals.DoubtWithdrawnMessage, approvals.Expired: approvals.DoubtExpiredMessage,
	} {
		a := approvals.Approval{Call: approvals.CallRef{ID: "c", Name: "del"}, Status: status, Doubt: approvals.Doubt{Began: now.Add(-time.Minute)}}
		require.Equal(t, says, approvalOf(approvals.Batch{ID: "batch-01-x"}, a, nil, "U", now).Reason)
	}
}

// Between its deadline and the moment when that is stored, a call has no decision to tell.
func TestWhatIsOverButNotStoredYetIsNotToldAsADenialByAPerson(t *testing.T) {
	now := time.Now()
	asked := approvals.Approval{Call: approvals.CallRef{ID: "c", Name: "del"}, Status: approvals.Pending, Requirement: approvals.Requirement{Deadline: now}}
	made := &call{id: "c", name: "del", batch: approvals.Batch{ID: "batch-01-x"}, asked: &asked}
	turn := &turn{head: "run-01-x", steps: []*step{{calls: []*call{made}}}, waits: true, people: true}
	w := newTeller(V7, "U", false)
	require.NotContains(t, types(w.tell(turn, now)), typeApprovalResponse)
	asked.Status = approvals.Expired
	out := w.tell(turn, now)
	require.Contains(t, types(out), typeApprovalResponse)
	require.Equal(t, approvals.ExpiredMessage, out[len(out)-1].Reason)
}

// A reason must not reorder what a page writes beside it.
func TestWhatPeopleAndChecksWroteShowsEveryCharacter(t *testing.T) {
	a := approvals.Approval{
		Call: approvals.CallRef{ID: "c", Name: "del"}, Status: approvals.Approved,
		Decisions: []approvals.Decision{{By: approvals.Principal{User: "U"}, Verdict: approvals.Approve, Reason: "yes\u202e"}},
		Checked:   approvals.Checked{Check: "fraud", Answer: approvals.CheckAsk, Said: approvals.Quote{Text: "new\u200b"}},
	}
	d := approvalOf(approvals.Batch{ID: "batch-01-x"}, a, nil, "U", time.Now())
	require.Equal(t, `yes\u202e`, d.Decisions[0].Reason)
	require.Equal(t, `new\u200b`, d.Check.Says)
	require.Equal(t, `yes\u202e`, (&call{asked: &a}).why())
}

func types(all []chunk) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.Type)
	}
	return names
}
