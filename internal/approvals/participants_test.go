package approvals_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// openTo opens a batch of theCall to which these people took part.
func openTo(t *testing.T, r Requirement, participants ...UserID) Batch {
	t.Helper()
	b, _, err := Open(
		Batch{ID: "batch-17-b", Run: "run-17-r", Requester: "req", Participants: participants, OpenedAt: opened},
		[]Deferral{{Call: ToolCall{ID: theCall, Name: "delete", Args: theArgs}, Ask: Ask{Requirement: r}}}, nil,
	)
	require.NoError(t, err)
	return b
}

func TestParticipantsDoNotApprove(t *testing.T) {
	all := func(change func(*Requirement)) Requirement {
		r := Requirement{Quorums: []Quorum{of(1, "req", "ann", "bo")}, Separation: true, Delegation: true}
		if change != nil {
			change(&r)
		}
		return r
	}
	narrow := all(func(r *Requirement) { r.ParticipantsMaySign = true })
	absent := func(who UserID, via ...UserID) []Absent {
		return []Absent{{User: who, Until: deadline, Via: via}}
	}
	for name, tt := range map[string]struct {
		needs Requirement
		by    Principal
		say   Verdict
		want  Status
		err   error
	}{
		"the requester":                      {all(nil), Principal{User: "req"}, Approve, Pending, ErrOwnRequest},
		"a participant":                      {all(nil), Principal{User: "bo"}, Approve, Pending, ErrOwnWords},
		"somebody else":                      {all(nil), Principal{User: "ann"}, Approve, Approved, nil},
		"a delegate of a participant":        {all(nil), Principal{User: "out", For: absent("bo")}, Approve, Pending, ErrNotEligible},
		"passed on by a participant":         {all(nil), Principal{User: "out", For: absent("ann", "bo")}, Approve, Pending, ErrNotEligible},
		"a delegate of someone else":         {all(nil), Principal{User: "out", For: absent("ann")}, Approve, Approved, nil},
		"a participant for someone else":     {all(nil), Principal{User: "bo", For: absent("ann")}, Approve, Pending, ErrOwnWords},
		"a participant denies":               {all(nil), Principal{User: "bo"}, Deny, Denied, nil},
		"a delegate of a participant denies": {all(nil), Principal{User: "out", For: absent("bo")}, Deny, Denied, nil},
		"the requester denies":               {all(nil), Principal{User: "req"}, Deny, Pending, ErrOwnRequest},
		"a participant, narrowed":            {narrow, Principal{User: "bo"}, Approve, Approved, nil},
		"the requester, narrowed":            {narrow, Principal{User: "req"}, Approve, Pending, ErrOwnRequest},
		"a participant without separation": {
			all(func(r *Requirement) { r.Separation = false }), Principal{User: "bo"}, Approve, Approved, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := openTo(t, tt.needs, "bo")
			require.False(t, tt.say == Approve && b.Helps(b.Approvals[0], tt.by) != (tt.err == nil), "who is asked")
			d := say(b, tt.by.User, tt.say)
			d.By = tt.by
			next, _, err := b.Apply(d)
			require.ErrorIs(t, err, tt.err)
			if errors.Is(tt.err, ErrOwnWords) {
				require.ErrorIs(t, err, ErrOwnRequest)
			}
			require.Equal(t, tt.want, next.Approvals[0].Status)
		})
	}
	forged := openTo(t, all(nil), "cy")
	forged = must(t, forged, say(forged, "bo", Approve))
	forged.Participants = []UserID{"bo"}
	_, err := forged.Results(map[ToolCallID]json.RawMessage{theCall: theArgs})
	require.ErrorIs(t, err, ErrInvalid, "the stored status is not trusted")
}

func TestParticipantsAreTheOthersEachOnce(t *testing.T) {
	given := []UserID{"bo", "", "req", "ann", "bo"}
	b := openTo(t, all(of(1, "ann")), given...)
	require.Equal(t, []UserID{"bo", "ann"}, b.Participants)
	given[0] = "x"
	require.Equal(t, []UserID{"bo", "ann"}, b.Participants, "its own copy")
}

// Whoever asked cannot edit away that someone else said no, and a participant
// is one of those who asked.
func TestParticipantsDoNotWipeADenialAway(t *testing.T) {
	for _, narrow := range []bool{false, true} {
		r := Requirement{Quorums: []Quorum{of(2, "ann", "bo")}, Deny: 2, Separation: true, ParticipantsMaySign: narrow}
		b := openTo(t, r, "bo")
		edit := func(b Batch) Amend {
			return Amend{
				Call: theCall, From: b.Approvals[0].Call.Digest, Args: json.RawMessage(`{}`), Ruling: Permit{},
				By: Principal{User: "bo"}, At: opened.Add(time.Minute),
			}
		}
		_, _, err := must(t, b, say(b, "bo", Deny)).Apply(edit(b))
		require.NoError(t, err, "their own denial is theirs to take back")
		_, _, err = must(t, b, say(b, "ann", Deny)).Apply(edit(b))
		if narrow {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrDenied)
	}
}

func TestAuthorsAreThoseWhoseWordsTheModelReads(t *testing.T) {
	r := Requirement{Quorums: []Quorum{of(1, "ann", "bo", "cy")}, Vetoes: []Quorum{of(1, "vic")}, Deny: 2}
	with := func(d Decide, reason string) Decide { d.Reason = reason; return d }
	edit := func(b Batch, who UserID, n string) Amend {
		return Amend{
			Call: theCall, From: b.Approvals[0].Call.Digest, Args: json.RawMessage(`{"n":` + n + `}`), Ruling: Permit{},
			By: Principal{User: who}, At: opened,
		}
	}
	b := openTo(t, r)
	require.Empty(t, b.Authors())
	require.Empty(t, must(t, b, with(say(b, "ann", Approve), "fine")).Authors(), "an approver's reason is not sent")
	require.Empty(t, must(t, b, say(b, "ann", Deny), with(say(b, "bo", Deny), " \u200b\n")).Authors(), "nothing that is read")
	require.Equal(t, []UserID{"ann", "bo"},
		must(t, b, with(say(b, "ann", Deny), "not a"), with(say(b, "bo", Deny), "delete b instead")).Authors())
	require.Equal(t, []UserID{"ann", "vic"}, must(t, b, with(say(b, "ann", Deny), "no"), with(say(b, "vic", Deny), "no")).Authors())
	require.Equal(t, []UserID{"admin"}, must(t, b, Withdraw{By: "admin", Reason: "do b", At: opened}).Authors())
	require.Empty(t, must(t, b, Withdraw{By: "admin", At: opened}).Authors())

	edited := must(t, b, edit(b, "ann", "1"))
	edited = must(t, edited, edit(edited, "bo", "2"))
	edited = must(t, edited, edit(edited, "ann", "3"))
	require.Equal(t, []UserID{"ann", "bo"}, must(t, edited, say(edited, "cy", Approve)).Authors())
	require.Empty(t, must(t, edited, Withdraw{By: "req", At: opened}).Authors(), "the model is not told of arguments that did not run")

	ext := must(t, mixed(t), Withdraw{By: "req", Reason: Superseded, At: opened})
	require.Equal(t, []UserID{"req"}, ext.Authors(), "of several calls, once")
}
