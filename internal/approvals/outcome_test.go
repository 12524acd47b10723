package approvals_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

func TestACallIsExpiredFromItsDeadlineOnSweptOrNot(t *testing.T) {
	r := all(of(1, "ann"))
	r.Deadline = deadline
	b := open(t, r)
	a := b.Approvals[0]
	require.True(t, a.OpenAt(deadline.Add(-time.Nanosecond)))
	require.Equal(t, Outcome{Status: Pending}, a.Outcome(deadline.Add(-time.Nanosecond)))
	require.False(t, a.OpenAt(deadline))
	require.Equal(t, Outcome{Status: Expired, At: deadline}, a.Outcome(deadline.Add(time.Minute)))

	swept := must(t, b, Expire{At: deadline.Add(time.Second)}).Approvals[0]
	require.Equal(t, Outcome{Status: Expired, At: deadline.Add(time.Second)}, swept.Outcome(deadline.Add(time.Hour)))

	approved := must(t, b, say(b, "ann", Approve)).Approvals[0]
	require.Equal(t, Approved, approved.StatusAt(deadline.Add(time.Hour)), "what is settled does not expire")
}

func TestAnOutcomeNamesWhoBroughtItAbout(t *testing.T) {
	at := opened.Add(time.Minute)
	r := all(of(2, "ann", "bo"))
	r.Deny, r.Delegation = 2, true
	b := open(t, r)

	stand := say(b, "cy", Approve)
	stand.By.For = []Absent{{User: "bo", Until: deadline}}
	approved := must(t, b, stand, say(b, "ann", Approve))
	require.Equal(t, Outcome{Status: Approved, At: at, By: []Seat{{User: "cy", For: "bo"}, {User: "ann"}}},
		approved.Approvals[0].Outcome(at))

	denied := must(t, b, say(b, "bo", Deny), say(b, "ann", Deny))
	require.Equal(t, Outcome{Status: Denied, At: at, By: []Seat{{User: "bo"}, {User: "ann"}}}, denied.Approvals[0].Outcome(at))

	withdrawn := must(t, b, Withdraw{By: "req", At: at})
	require.Equal(t, Outcome{Status: Withdrawn, At: at, By: []Seat{{User: "req"}}}, withdrawn.Approvals[0].Outcome(at))
	superseded := must(t, b, Withdraw{By: "req", Reason: Superseded, At: at})
	require.True(t, superseded.Approvals[0].Outcome(at).Superseded)
}

// Whoever approves in the place of someone away may be in an alternative by themselves,
// too. Only the one that is met says for whom they counted.
func TestAnOutcomeSaysForWhomADelegateCountedInTheAlternativeThatIsMet(t *testing.T) {
	at := opened.Add(time.Minute)
	security := Quorum{Name: "security", Need: 1, From: From{Users: []UserID{"cy"}}, Choice: 1}
	lead := Quorum{Name: "lead", Need: 2, From: From{Users: []UserID{"dee", "ann"}}, Choice: 1}
	for _, order := range [][]Quorum{{security, lead}, {lead, security}} {
		r := Requirement{Quorums: order, Delegation: true}
		r.Quorums[0].Option, r.Quorums[1].Option = 1, 2
		b := open(t, r)
		stands := say(b, "dee", Approve)
		stands.By.For = []Absent{{User: "cy", Until: deadline}}
		require.Equal(t, []Seat{{User: "dee", For: "cy"}}, must(t, b, stands).Approvals[0].Outcome(at).By, "%v", order)

		herself := say(b, "dee", Approve)
		require.Equal(t, []Seat{{User: "dee"}, {User: "ann"}}, must(t, b, herself, say(b, "ann", Approve)).Approvals[0].Outcome(at).By)
	}
}

func TestWhoDecidedIsKnownUntilTheArgumentsChange(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo", "cy")))
	said := say(b, "ann", Approve)
	b = must(t, b, said)
	a := b.Approvals[0]
	mine, ok := a.DecisionBy("ann")
	require.True(t, ok)
	require.Equal(t, Approve, mine.Verdict)
	_, ok = a.DecisionBy("bo")
	require.False(t, ok)
	require.Equal(t, []UserID{"ann"}, a.Deciders(Approve))
	require.Empty(t, a.Deciders(Deny))
	require.True(t, b.Has(said.Decision))
	require.False(t, b.Has(say(b, "ann", Deny).Decision))

	b = must(t, b, Amend{
		Call: theCall, From: a.Call.Digest, Args: []byte(`{}`), Ruling: Permit{}, By: Principal{User: "cy"}, At: opened.Add(time.Minute),
	})
	require.Empty(t, b.Approvals[0].Deciders(""))
	require.False(t, b.Has(said.Decision))
}

func TestOpenCallsAreThoseWithoutAnOutcome(t *testing.T) {
	b, _, err := Open(Batch{ID: "batch-17-b", Run: "run-17-r", Requester: "req", OpenedAt: opened},
		[]Deferral{
			{Call: ToolCall{ID: "one", Name: "delete"}, Ask: Ask{Requirement: all(of(1, "ann"))}},
			{Call: ToolCall{ID: "two", Name: "send"}, Ask: Ask{Requirement: all(of(1, "bo"))}},
		},
		[]Deferral{{Call: ToolCall{ID: "three", Name: "render"}}})
	require.NoError(t, err)
	names := func(b Batch) (names []string) {
		for _, c := range b.OpenCalls() {
			names = append(names, c.Name)
		}
		return names
	}
	require.Equal(t, []string{"delete", "send", "render"}, names(b))
	one, ok := b.Approval("one")
	require.True(t, ok)
	_, ok = b.Approval("three")
	require.False(t, ok, "nobody is asked about what runs elsewhere")
	at := opened.Add(time.Minute)
	b = must(t, b, Decide{Decision{Call: "one", By: Principal{User: "ann"}, Verdict: Deny, Digest: one.Call.Digest, At: at}},
		Fulfill{Call: "three", Result: ToolFailed{Message: "no"}, By: "svc", At: at})
	require.Equal(t, []string{"send"}, names(b))
	require.Equal(t, []UserID{"bo"}, b.Asked().Users)
	require.Equal(t, []UserID{"ann", "bo"}, b.EverAsked().Users)
}

func TestAskedIsWhoeverMayApproveOrStopAnOpenCall(t *testing.T) {
	r := Requirement{Quorums: []Quorum{of(1, "bo", "ann", ""), in(1, "sre", "")}, Vetoes: []Quorum{in(1, "legal", "sre")}, Delegation: true}
	b := open(t, r)
	require.Equal(t, Asked{Users: []UserID{"ann", "bo"}, Groups: []GroupID{"legal", "sre"}, Delegation: true}, b.Asked())
	b = must(t, b, Withdraw{By: "req", At: opened.Add(time.Minute)})
	require.Zero(t, b.Asked())
	require.Equal(t, []GroupID{"legal", "sre"}, b.EverAsked().Groups)
}

func TestWhoAskedOrEditedIsBarredWhateverNamesThem(t *testing.T) {
	r := all(of(1, "req", "part", "edi", "ann"))
	r.Separation = true
	b := open(t, r)
	b.Participants = []UserID{"part"}
	require.True(t, b.BarsParticipants(r))
	b = must(t, b, Amend{
		Call: theCall, From: b.Approvals[0].Call.Digest, Args: []byte(`{}`), Ruling: Permit{}, By: Principal{User: "edi"}, At: opened.Add(time.Minute),
	})
	a := b.Approvals[0]
	require.Equal(t, From{Users: []UserID{"ann"}}, b.Unbarred(a, a.Requirement.Quorums[0].From))
	require.True(t, b.Barred(a, "part"))
	require.False(t, b.Barred(a, "outsider"), "nothing bars them; they are not named either")

	r.ParticipantsMaySign = true
	require.False(t, b.BarsParticipants(r))
	b = open(t, r)
	require.False(t, b.BarsParticipants(Requirement{Separation: true}), "nobody else asked")
}

func TestMayDecideAnswersAsApplyWould(t *testing.T) {
	r := all(of(1, "ann"))
	r.Separation, r.ReasonNeeded, r.Deadline = true, true, deadline
	b := open(t, r)
	a, at := b.Approvals[0], opened.Add(time.Minute)
	require.NoError(t, b.MayDecide(a, Principal{User: "ann"}, Approve, at), "the reason is still to be asked for")
	require.ErrorIs(t, b.MayDecide(a, Principal{User: "bo"}, Approve, at), ErrNotEligible)
	require.ErrorIs(t, b.MayDecide(a, Principal{User: "req"}, Deny, at), ErrOwnRequest)
	require.ErrorIs(t, b.MayDecide(a, Principal{User: "ann"}, Approve, deadline), ErrExpired)

	over := must(t, b, say(b, "ann", Deny))
	require.ErrorIs(t, over.MayDecide(over.Approvals[0], Principal{User: "ann"}, Approve, at), ErrSettled)
	anew := over.Reopened(over.Approvals[0])
	require.NoError(t, anew.MayDecide(over.Approvals[0], Principal{User: "ann"}, Approve, deadline.Add(time.Hour)))
	require.Len(t, over.Approvals[0].Decisions, 1, "the batch itself is as it was")
}
