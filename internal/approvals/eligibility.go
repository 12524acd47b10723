package approvals

import (
	"fmt"
	"slices"
	"time"
)

// implied is the status that follows from the decisions and the ending. The
// stored one always equals it, see invariant 8. Where an escalation makes both
// true, a denial wins.
func (b Batch) implied(a Approval) Status {
	switch {
	case b.denied(a):
		return Denied
	case a.InDoubt() && len(b.counted(a, Happened)) > 0:
		return Confirmed
	case a.Requirement.met(b.counted(a, a.Yes())):
		return Approved
	case a.Ending.At.IsZero():
		return Pending
	case a.Ending.By != "":
		return Withdrawn
	}
	return Expired
}

// denied reports whether enough of the approvers have denied the call, or enough
// people of a veto. A person who is named by a veto alone counts for that only.
// Of a call in doubt it reports whether one person gave it up.
func (b Batch) denied(a Approval) bool {
	if a.InDoubt() {
		return len(b.counted(a, GiveUp)) > 0
	}
	r, people := a.Requirement, b.counted(a, Deny)
	signers := 0
	for _, p := range people {
		if admits(r.Quorums, p) {
			signers++
		}
	}
	if signers >= max(1, r.Deny) {
		return true
	}
	return slices.ContainsFunc(r.Vetoes, func(veto Quorum) bool {
		return Requirement{Quorums: []Quorum{veto}}.met(people)
	})
}

// counted returns the different people whose verdict on the current arguments
// counts, in the order in which they decided.
func (b Batch) counted(a Approval, v Verdict) []Principal {
	return slices.DeleteFunc(a.voices(v, b.bars(a, v)), func(p Principal) bool { return b.maySign(a, p, v) != nil })
}

// voices returns the different people who gave this verdict on the current
// arguments, in the order in which they decided.
func (a Approval) voices(v Verdict, barred func(UserID) bool) []Principal {
	var people []Principal
	seen := make(map[UserID]bool, len(a.Decisions))
	for _, d := range a.Decisions {
		if d.Verdict != v || d.Digest != a.Call.Digest || seen[d.By.User] {
			continue
		}
		seen[d.By.User] = true
		people = append(people, a.voice(d.By, d.At, barred))
	}
	return people
}

// voice returns p as their verdict on the call counts at this time: p.For keeps
// the people who are away then and for whom p may decide. A delegation of a
// person who is barred does not count, nor one that such a person passed on:
// otherwise they would choose who approves.
func (a Approval) voice(p Principal, at time.Time, barred func(UserID) bool) Principal {
	if len(p.For) == 0 || !a.Requirement.Delegation {
		p.For = nil
		return p
	}
	p.For = slices.DeleteFunc(slices.Clone(p.For), func(away Absent) bool {
		return away.User == p.User || !away.Until.After(at) || barred(away.User) || slices.ContainsFunc(away.Via, barred)
	})
	return p
}

// maySign is nil if p's verdict on the call counts. An approval needs a place in
// a quorum, of their own or of a person they stand in for; for a denial a place
// in a veto is enough.
func (b Batch) maySign(a Approval, p Principal, v Verdict) error {
	if err := b.barred(a, p.User, v); err != nil {
		return fmt.Errorf("call %q: %w", string(a.Call.ID), err)
	}
	if admits(a.Requirement.Quorums, p) || v == Deny && !a.InDoubt() && admits(a.Requirement.Vetoes, p) {
		return nil
	}
	return fmt.Errorf("call %q: %w", string(a.Call.ID), ErrNotEligible)
}

// barred returns why this person's verdict does not count even if they are in a
// quorum. A participant may deny the call, but not approve it.
func (b Batch) barred(a Approval, u UserID, v Verdict) error {
	r := a.Requirement
	switch {
	case r.Separation && (u == b.Requester || b.Requester == ""):
		return ErrOwnRequest
	case !r.EditorMaySign && slices.Contains(a.Editors(), u):
		return ErrOwnEdit
	case r.Separation && v != Deny && b.asked(r, u):
		return ErrOwnWords
	}
	return nil
}

func (b Batch) bars(a Approval, v Verdict) func(UserID) bool {
	return func(u UserID) bool { return b.barred(a, u, v) != nil }
}

// asked reports whether this person counts as having asked for a call with this
// requirement: the requester does, and a participant unless the rule says
// otherwise. If the requester is a service, no rule can: see [ServiceUser].
func (b Batch) asked(r Requirement, u UserID) bool {
	return u == b.Requester || (!r.ParticipantsMaySign || b.shared()) && slices.Contains(b.Participants, u)
}

// shared reports whether an agent asked whose credential several people share:
// any of the participants may have been the one.
func (b Batch) shared() bool {
	_, ok := b.Requester.Service()
	return ok
}

// Editors returns the people who changed the arguments at any time, each once, in
// their order: a later edit by another person may have kept part of theirs.
func (a Approval) Editors() []UserID {
	all := union(nil, a.EditedBy)
	for _, m := range a.Amendments {
		all = union(all, []UserID{m.By.User})
	}
	return all
}

func (a Absent) principal() Principal { return Principal{User: a.User, Groups: a.Groups} }
