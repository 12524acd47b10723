package approvals

import (
	"slices"
	"time"
)

// An Outcome is how a call stands at some time, in the form in which surfaces
// report it.
type Outcome struct {
	Status Status
	At     time.Time // when the call got this status; zero while it is pending
	// By are the people whose decisions settled the call, in the order in which
	// they decided, or the one who withdrew it. For is set only where a person
	// approved in the place of someone who is away.
	By         []Seat
	Superseded bool // it was withdrawn because the person who asked wrote something new
	InDoubt    bool // people were asked what became of the call, see [Doubt]
}

// StatusAt returns the status of the call at this time: an open call is expired
// from its deadline on, whether or not [Expire] has been applied.
func (a Approval) StatusAt(now time.Time) Status {
	if a.Status == Pending && a.overdue(now) {
		return Expired
	}
	return a.Status
}

// OpenAt reports whether people can still decide the call at this time.
func (a Approval) OpenAt(now time.Time) bool { return a.StatusAt(now) == Pending }

// Outcome returns how the call stands at this time: its status, since when, and
// who brought it about.
func (a Approval) Outcome(now time.Time) Outcome {
	o := Outcome{Status: a.StatusAt(now), At: a.Ending.At, Superseded: a.Superseded(), InDoubt: a.InDoubt()}
	switch o.Status {
	case Approved:
		o.By = a.Approvers()
	case Denied:
		for _, u := range a.Deciders(a.No()) {
			o.By = append(o.By, Seat{User: u})
		}
	case Confirmed:
		for _, u := range a.Deciders(Happened) {
			o.By = append(o.By, Seat{User: u})
		}
	case Withdrawn:
		if a.Ending.By != "" {
			o.By = []Seat{{User: a.Ending.By}}
		}
	case Expired:
		if o.At.IsZero() {
			o.At = a.Requirement.Deadline
		}
	case Pending:
	}
	return o
}

// Approvers returns who approved the current arguments, in their order, and for whom
// each counted: of alternatives, the one that is met says so.
func (a Approval) Approvers() []Seat {
	counted := map[UserID]UserID{}
	for _, q := range a.Progress() {
		for _, s := range q.By {
			counted[s.User] = s.For
		}
	}
	for _, s := range a.standing().taken() {
		counted[s.User] = s.For
	}
	var all []Seat
	for _, u := range a.Deciders(a.Yes()) {
		all = append(all, Seat{User: u, For: counted[u]})
	}
	return all
}

// Deciders returns the people who gave this verdict on the current arguments, in
// the order in which they decided; with the empty verdict, everyone who decided.
func (a Approval) Deciders(v Verdict) []UserID {
	var all []UserID
	for _, d := range a.Decisions {
		if v == "" || d.Verdict == v {
			all = append(all, d.By.User)
		}
	}
	return all
}

// DecisionBy returns this person's decision on the current arguments, if they
// made one.
func (a Approval) DecisionBy(u UserID) (Decision, bool) {
	if i := a.decisionOf(u); i >= 0 {
		return a.Decisions[i], true
	}
	return Decision{}, false
}

// TakenRungs returns the rungs of the ladder that time has taken, in order.
func (a Approval) TakenRungs() []Rung {
	return a.Requirement.Ladder[:max(0, min(a.Climbed, len(a.Requirement.Ladder)))]
}

// Has reports whether the batch holds this person's decision on the call, with
// this verdict and on these arguments.
func (b Batch) Has(d Decision) bool {
	i, err := b.approval(d.Call)
	return err == nil && slices.ContainsFunc(b.Approvals[i].Decisions, func(e Decision) bool {
		return e.By.User == d.By.User && e.Verdict == d.Verdict && e.Digest == d.Digest
	})
}

// Approval returns what people are asked about this call.
func (b Batch) Approval(id ToolCallID) (Approval, bool) {
	for _, a := range b.Approvals {
		if a.Call.ID == id {
			return a, true
		}
	}
	return Approval{}, false
}

// OpenCalls returns the calls that have no outcome yet: those that people are
// asked about, and behind them those whose result is not in.
func (b Batch) OpenCalls() []CallRef {
	var all []CallRef
	for _, a := range b.Approvals {
		if a.Status == Pending {
			all = append(all, a.Call)
		}
	}
	for _, c := range b.Calls {
		if c.Result == nil {
			all = append(all, c.Call)
		}
	}
	return all
}
