package approvals

import (
	"slices"
	"time"
)

// Progress is how far a quorum is: who fills its places, and whether it is
// being asked: those of a later stage are not yet.
type Progress struct {
	Quorum Quorum
	By     []Seat
	Asked  bool
}

// A Seat is a filled place of a quorum. For is the person who is away in whose
// place User approved, or empty.
type Seat struct {
	User UserID
	For  UserID
}

func (s Seat) String() string {
	if s.For == "" {
		return string(s.User)
	}
	return string(s.User) + " for " + string(s.For)
}

// Progress says how far each quorum of the approval is, counting each person
// once over all that are needed together. Who has approved is listed in the
// order of signing. A quorum is counted in the way that has the fewest places
// missing, an alternative in the best of the ways that contain it: so a person
// may be counted for two alternatives, of which only one is taken.
func (a Approval) Progress() []Progress {
	s := a.standing()
	quorums := a.Requirement.clone().Quorums
	progress := make([]Progress, len(quorums))
	for i, q := range quorums {
		progress[i] = Progress{Quorum: q}
		if m := s.best(i); m != nil {
			progress[i].By = m.seated(i)
			progress[i].Asked = q.Stage <= s.open
		}
	}
	return progress
}

// standing is how far the approvals are.
func (a Approval) standing() standing {
	// A barred person has no recorded decision.
	return a.Requirement.standing(a.voices(a.Yes(), func(UserID) bool { return false }))
}

// Missing returns whom the quorums ask that are not complete, each person and group
// once. An alternative to one that is complete is not missing.
func (a Approval) Missing() From {
	var all From
	for _, i := range a.standing().short() {
		from := a.Requirement.Quorums[i].From
		all.Users, all.Groups = append(all.Users, from.Users...), append(all.Groups, from.Groups...)
	}
	slices.Sort(all.Users)
	slices.Sort(all.Groups)
	all.Users, all.Groups = slices.Compact(all.Users), slices.Compact(all.Groups)
	return all
}

// Helps reports whether an approval by p would bring an open call further: p
// may approve it, has not decided, and fills a place of a quorum that is asked,
// in a way that can be met. The caller leaves out of p.For the people who are
// back: Helps knows no time. It is for choosing whom to ask and remind;
// [Batch.Apply] decides whose approval counts.
func (b Batch) Helps(a Approval, p Principal) bool {
	if a.Status != Pending || a.decisionOf(p.User) >= 0 {
		return false
	}
	p = a.Requirement.record(a.voice(p, time.Time{}, b.bars(a, a.Yes())))
	if b.maySign(a, p, a.Yes()) != nil {
		return false
	}
	r, people := a.Requirement, b.counted(a, a.Yes())
	now, then := r.standing(people), r.standing(append(people, p))
	for i, way := range then.ways {
		if _, fillable := way.missing(); fillable && way.filled(now.open) > now.ways[i].filled(now.open) {
			return true
		}
	}
	return false
}

// Suffices reports whether an open call would be approved if all these people,
// who are not away for others, approved it besides those who did. People who
// have decided are not counted again. It is for saying that nobody is left who
// can approve.
func (b Batch) Suffices(a Approval, all []Principal) bool {
	yes := b.counted(a, a.Yes())
	for _, p := range all {
		p.For = nil
		if a.decisionOf(p.User) < 0 && b.maySign(a, p, a.Yes()) == nil {
			yes = append(yes, a.Requirement.record(p))
		}
	}
	return a.Status == Pending && a.Requirement.met(yes)
}
