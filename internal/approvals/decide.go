package approvals

import (
	"fmt"
	"slices"
	"time"
)

// decide checks in the order of what may be known by whom: that the call is
// over is on the card, whether the arguments changed is for approvers.
func (b Batch) decide(cmd Decide) (Batch, []Event, error) {
	d := cmd.Decision
	i, a, err := b.openTo(d.By, d.Call, d.At)
	if err != nil {
		return b, nil, err
	}
	d.By = a.voice(d.By, d.At, b.bars(a, d.Verdict))
	if err := b.maySign(a, d.By, d.Verdict); err != nil {
		return b, nil, err
	}
	if d.Digest.IsZero() || d.Digest != a.Call.Digest {
		return b, nil, fmt.Errorf("call %q: %w", string(d.Call), ErrStale)
	}
	if err := a.takes(d.Verdict); err != nil {
		return b, nil, err
	}
	if err := checkReason(d.Reason); err != nil {
		return b, nil, err
	}
	if j := a.decisionOf(d.By.User); j >= 0 {
		if a.Decisions[j].Verdict != d.Verdict {
			return b, nil, fmt.Errorf("call %q: %w", string(d.Call), ErrDecided)
		}
		return b, nil, nil
	}
	if a.Requirement.ReasonNeeded && d.Verdict == a.Yes() && oneLine(d.Reason) == "" {
		return b, nil, fmt.Errorf("call %q: %w", string(d.Call), ErrReasonNeeded)
	}

	d.By, d.At = a.Requirement.record(d.By), plain(d.At)
	a.Decisions = append(slices.Clone(a.Decisions), d)
	events := []Event{Decided{Batch: b.ID, Decision: d.clone()}}
	if status := b.implied(a); status != Pending {
		a.Status, a.Ending = status, Ending{At: d.At}
		events = append(events, Settled{Batch: b.ID, Call: d.Call, Status: status, At: d.At})
	}
	return b.with(i, a).moved(d.At, events...)
}

func (b Batch) retract(cmd Retract) (Batch, []Event, error) {
	i, a, err := b.openTo(cmd.By, cmd.Call, cmd.At)
	if err != nil {
		return b, nil, err
	}
	j := a.decisionOf(cmd.By.User)
	if j < 0 {
		return b, nil, fmt.Errorf("call %q: %w", string(cmd.Call), ErrNoDecision)
	}
	back := a.Decisions[j].By.clone()
	a.Decisions = slices.Delete(slices.Clone(a.Decisions), j, j+1)
	if len(a.Decisions) == 0 {
		a.Decisions = nil
	}
	by, at := a.Requirement.record(cmd.By), plain(cmd.At)
	by.For = back.For // as the decision has them: a person may take it back whoever is away now
	return b.with(i, a).moved(at, Retracted{Batch: b.ID, Call: cmd.Call, By: by, At: at})
}

// openTo returns the approval that someone acts on and where it is, if it can
// still move.
func (b Batch) openTo(by Principal, call ToolCallID, at time.Time) (int, Approval, error) {
	if err := checkActor(by.User, at); err != nil {
		return 0, Approval{}, err
	}
	i, err := b.approval(call)
	if err != nil {
		return 0, Approval{}, err
	}
	return i, b.Approvals[i], b.Approvals[i].open(at)
}

// decisionOf returns the index of this person's decision, or -1.
func (a Approval) decisionOf(u UserID) int {
	return slices.IndexFunc(a.Decisions, func(d Decision) bool { return d.By.User == u })
}

func (d Decision) clone() Decision {
	d.By = d.By.clone()
	return d
}

func (p Principal) clone() Principal {
	p.Groups, p.For = slices.Clone(p.Groups), slices.Clone(p.For)
	for i := range p.For {
		p.For[i].Groups, p.For[i].Via = slices.Clone(p.For[i].Groups), slices.Clone(p.For[i].Via)
	}
	return p
}

// settle ends an open approval without a decision.
func (a Approval) settle(s Status, by UserID, reason string, at time.Time) Approval {
	a.Status, a.Ending = s, Ending{At: at, By: by, Reason: reason}
	return a
}
