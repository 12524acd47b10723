package approvals

import (
	"slices"
	"time"
)

// Asked lists the people and groups that calls name in their quorums and
// vetoes, each once. An adapter looks up these groups and no others when it
// resolves a person.
type Asked struct {
	Users      []UserID
	Groups     []GroupID
	Delegation bool // delegates may approve for people who are away
}

// Asked returns whom the open calls of the batch name.
func (b Batch) Asked() Asked {
	return b.asks(func(a Approval) bool { return a.Status == Pending })
}

// EverAsked returns whom the calls of the batch name, open or settled.
func (b Batch) EverAsked() Asked {
	return b.asks(func(Approval) bool { return true })
}

// asks returns whom these calls name. Empty names and groups are left out.
func (b Batch) asks(of func(Approval) bool) Asked {
	var all Asked
	for _, a := range b.Approvals {
		if !of(a) {
			continue
		}
		all.Delegation = all.Delegation || a.Requirement.Delegation
		for _, q := range slices.Concat(a.Requirement.Quorums, a.Requirement.Vetoes) {
			all.Users, all.Groups = append(all.Users, q.From.Users...), append(all.Groups, q.From.Groups...)
		}
	}
	all.Users = sorted(slices.DeleteFunc(all.Users, func(u UserID) bool { return u == "" }))
	all.Groups = sorted(slices.DeleteFunc(all.Groups, func(g GroupID) bool { return g == "" }))
	return all
}

// Barred reports whether this person may not approve the call even if a quorum
// names them, because they asked for it or changed its arguments.
func (b Batch) Barred(a Approval, u UserID) bool { return b.barred(a, u, Approve) != nil }

// Unbarred returns f without the people who are barred from approving the call.
func (b Batch) Unbarred(a Approval, f From) From {
	f.Users = slices.DeleteFunc(slices.Clone(f.Users), func(u UserID) bool { return b.Barred(a, u) })
	return f
}

// BarsParticipants reports whether the participants of the batch may not approve
// a call that needs this: see [Requirement].
func (b Batch) BarsParticipants(r Requirement) bool {
	return r.Separation && (!r.ParticipantsMaySign || b.shared()) && len(b.Participants) > 0
}

// MayDecide is nil if this verdict of the person on the call would be taken at
// this time, with a reason where one is needed. It is for display only;
// [Batch.Apply] decides whether a decision counts.
func (b Batch) MayDecide(a Approval, p Principal, v Verdict, at time.Time) error {
	_, _, err := b.Apply(Decide{Decision{
		Call: a.Call.ID, By: p, Verdict: v, Digest: a.Call.Digest, Reason: "a reason", At: at,
	}})
	return err
}

// Reopened returns the batch with this call alone, as if nobody had decided it
// and it had no deadline. The people who may decide it in that batch are those
// who could have decided it before it ended.
func (b Batch) Reopened(a Approval) Batch {
	a.Status, a.Ending, a.Decisions, a.Requirement.Deadline = Pending, Ending{}, nil, time.Time{}
	b.Approvals, b.Calls = []Approval{a}, nil
	return b
}
