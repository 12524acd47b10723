package approvals

import (
	"fmt"
	"slices"
	"time"
)

// climb takes the rungs that are due, each once, of what is open and not
// overdue. More people who may approve can be enough to settle a call with what
// was already said; then its ladder ends there. A zero time is before every
// rung.
func (b Batch) climb(cmd Climb) (Batch, []Event, error) {
	next, at := b, plain(cmd.At)
	var events []Event
	for i, a := range b.Approvals {
		climbs := a.due(at)
		for a.due(at) {
			var taken Event
			a, taken = a.take(b.ID, at)
			events = append(events, taken)
			if status := b.implied(a); status != Pending {
				a.Status, a.Ending = status, Ending{At: at}
				events = append(events, Settled{Batch: b.ID, Call: a.Call.ID, Status: status, At: at})
			}
		}
		if climbs {
			next = next.with(i, a)
		}
	}
	if len(events) == 0 {
		return b, nil, fmt.Errorf("batch %s: %w", b.ID, ErrNotYet)
	}
	return next.moved(at, events...)
}

// rung returns the next rung of the ladder, if there is one.
func (a Approval) rung() (Rung, bool) {
	if a.Climbed < 0 || a.Climbed >= len(a.Requirement.Ladder) {
		return Rung{}, false
	}
	return a.Requirement.Ladder[a.Climbed], true
}

// due reports whether the next rung is to be taken at this time.
func (a Approval) due(at time.Time) bool {
	rung, ok := a.rung()
	return ok && !rung.At.After(at) && a.open(at) == nil
}

// take returns the approval after its next rung, and the fact. The people that
// an escalation adds may approve from then on; none are removed.
func (a Approval) take(batch BatchID, at time.Time) (Approval, Event) {
	rung, _ := a.rung()
	a.Climbed++
	if rung.Kind != Escalate {
		return a, Reminded{Batch: batch, Call: a.Call.ID, Rung: a.Climbed, At: at}
	}
	if i := a.Requirement.named(rung.Quorum); i >= 0 && rung.Quorum != "" {
		a.Requirement = a.Requirement.clone()
		from := &a.Requirement.Quorums[i].From
		from.Users = union(from.Users, rung.Add.Users)
		from.Groups = union(from.Groups, rung.Add.Groups)
	}
	return a, Escalated{
		Batch: batch, Call: a.Call.ID, Rung: a.Climbed, Quorum: rung.Quorum,
		Add: rung.Add.clone(), Channel: rung.Channel, At: at,
	}
}

// AfterRung returns the approval as its next rung would leave it, and that rung,
// if there is one. It is for looking ahead; time moves a batch by [Climb].
func (a Approval) AfterRung() (next Approval, rung Rung, ok bool) {
	if rung, ok = a.rung(); !ok {
		return a, Rung{}, false
	}
	next, _ = a.take("", rung.At)
	return next, rung, true
}

// union returns all with those of more behind it that it lacks.
func union[T comparable](all, more []T) []T {
	for _, m := range more {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}
