package approvals_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// Ann names the one who asks, who is "away" and names a friend.
func TestWhoMayNotSignChoosesNobodyWhoDoes(t *testing.T) {
	at := opened.Add(time.Minute)
	absences, err := Absences{}.Set(Absence{User: "ann", Delegate: "req", From: opened, Until: deadline}, opened)
	require.NoError(t, err)
	absences, err = absences.Set(Absence{User: "req", Delegate: "friend", From: opened, Until: deadline}, opened)
	require.NoError(t, err)
	friend := Principal{User: "friend"}
	for _, s := range absences.DelegationsTo("friend", at) {
		friend.For = append(friend.For, Absent{User: s.User, Until: s.Until, Via: s.Via})
	}
	require.Equal(t, []UserID{"req"}, friend.For[1].Via)

	r := Requirement{Quorums: []Quorum{of(1, "ann", "edi")}, Vetoes: []Quorum{of(1, "ann")}, Delegation: true, Separation: true}
	b := open(t, r)
	require.False(t, b.Helps(b.Approvals[0], friend))
	for _, v := range []Verdict{Approve, Deny} {
		d := say(b, "friend", v)
		d.By = friend
		_, _, err := b.Apply(d)
		require.ErrorIs(t, err, ErrNotEligible)
	}
	_, _, err = b.Apply(Amend{
		Call: theCall, From: b.Approvals[0].Call.Digest, Args: []byte(`{}`), Ruling: Permit{}, By: friend, At: at,
	})
	require.ErrorIs(t, err, ErrNotEligible)

	// Without separation they may: then the record says who passed it on.
	r.Separation = false
	b = open(t, r)
	d := say(b, "friend", Approve)
	d.By = friend
	b = must(t, b, d)
	require.Equal(t, Approved, b.Approvals[0].Status)
	require.Equal(t, []Absent{{User: "ann", Until: deadline, Via: []UserID{"req"}}}, b.Approvals[0].Decisions[0].By.For)

	// The same holds for who changed the arguments.
	amended := must(t, open(t, r), Amend{
		Call: theCall, From: b.Approvals[0].Call.Digest, Args: []byte(`{}`), Ruling: Permit{},
		By: Principal{User: "edi"}, At: at,
	})
	d = say(amended, "friend", Approve)
	d.By = Principal{User: "friend", For: []Absent{{User: "ann", Until: deadline, Via: []UserID{"bo", "edi"}}}}
	_, _, err = amended.Apply(d)
	require.ErrorIs(t, err, ErrNotEligible)
	d.By.For[0].Via = []UserID{"bo", "cy"}
	must(t, amended, d)
}
