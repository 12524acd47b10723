package approvals

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// MaxAmendments is how often the arguments of a call may be changed: each
// change clears the approvals, and people have to read the call again.
const MaxAmendments = 10

// amend gives the call new arguments. Approvals of the old arguments no longer
// count.
func (b Batch) amend(cmd Amend) (Batch, []Event, error) {
	i, a, who, err := b.mayAmend(cmd)
	if err != nil {
		return b, nil, err
	}
	// Empty bytes would mean "not overridden" in the results.
	if len(cmd.Args) == 0 {
		return b, nil, fmt.Errorf("%w: write {} for no arguments", ErrInvalid)
	}
	if err := CheckArgs(cmd.Args); err != nil {
		return b, nil, fmt.Errorf("call %q: %w", string(cmd.Call), err)
	}
	ref := ToolCall{ID: a.Call.ID, Name: a.Call.Name, Args: cmd.Args}.Ref(b.ID)
	if ref.Digest == a.Call.Digest {
		return b, nil, nil
	}
	by, at := a.Requirement.record(who), plain(cmd.At)
	if a, err = b.ruledAgain(a, cmd.Ruling); err != nil {
		return b, nil, err
	}

	event := Amended{Batch: b.ID, Call: cmd.Call, By: by, From: a.Call.Digest, To: ref.Digest, Rule: a.Rule, At: at}
	for _, d := range a.Decisions {
		event.Cleared = append(event.Cleared, d.By.User)
	}
	a.Amendments = append(slices.Clone(a.Amendments), Amendment{
		By: by.clone(), From: event.From, To: event.To, Cleared: slices.Clone(event.Cleared), At: at,
	})
	a.Call, a.Decisions = ref, nil
	a.GateReason, a.Preview = Quote{}, a.Preview.edited() // the reason is about the old arguments
	return b.with(i, a).moved(at, event)
}

// mayAmend returns the call, and the person with those in whose place they may change its
// arguments, or why they may not.
func (b Batch) mayAmend(cmd Amend) (i int, a Approval, by Principal, err error) {
	if b.Limits.NoEdits {
		return 0, Approval{}, Principal{}, fmt.Errorf("call %q: %w", string(cmd.Call), ErrNoEdits)
	}
	if i, a, err = b.openTo(cmd.By, cmd.Call, cmd.At); err != nil {
		return 0, Approval{}, Principal{}, err
	}
	by = a.voice(cmd.By, cmd.At, b.bars(a, Approve))
	switch {
	case a.Hosted:
		err = ErrNoEdits
	case a.InDoubt():
		err = ErrInDoubt
	case by.User != b.Requester && !admits(a.Requirement.Quorums, by):
		err = ErrNotEligible
	case cmd.From.IsZero() || cmd.From != a.Call.Digest:
		err = ErrStale
	case b.asked(a.Requirement, by.User) && a.deniedBesides(by.User):
		err = ErrDenied
	case len(a.Amendments) >= MaxAmendments:
		err = ErrAmendments
	}
	if err != nil {
		return 0, Approval{}, Principal{}, fmt.Errorf("call %q: %w", string(cmd.Call), err)
	}
	return i, a, by, nil
}

// ruledAgain returns the call as the policy rules on its new arguments.
func (b Batch) ruledAgain(a Approval, ruling Ruling) (Approval, error) {
	a.Checked = Checked{} // it is about the old arguments
	switch ruling := ruling.(type) {
	case Permit: // an edit must not remove the requirement that is already there
	case Ask:
		if err := b.checkRequirement(ruling.Requirement); err != nil {
			return a, err
		}
		if err := b.checkNamed(ruling.Requirement); err != nil {
			return a, err
		}
		until := a.Requirement.Deadline
		a.Requirement, a.Why, a.Rule, a.Climbed = ruling.Requirement.clone().EndingBy(until), ruling.Why, ruling.Rule, 0
		a.Unjudged, a.Checked, a.Summary = ruling.Unjudged, ruling.Checked, cmp.Or(ruling.Summary, a.Summary)
		a.Severity = a.Severity.Worse(ruling.Severity)
		if a.Severity == SeverityLow && ruling.Severity == SeverityUnset {
			a.Severity = SeverityUnset // a rule said so of the old arguments
		}
	case Refuse:
		return a, fmt.Errorf("call %q: %w", string(a.Call.ID), &RefusedError{Reason: ruling.Reason, Rule: ruling.Rule})
	default:
		return a, fmt.Errorf("%w: amended without a ruling", ErrInvalid)
	}
	return a, nil
}

// EndingBy returns the requirement with no later a deadline than this one, and
// without the rungs that would come after it: an edit gives no more time. The
// zero time ends nothing.
func (r Requirement) EndingBy(until time.Time) Requirement {
	if until.IsZero() || !r.Deadline.IsZero() && !r.Deadline.After(until) {
		return r
	}
	r.Deadline = until
	r.Ladder = slices.DeleteFunc(r.Ladder, func(rung Rung) bool { return !rung.At.Before(until) })
	if len(r.Ladder) == 0 {
		r.Ladder = nil
	}
	return r
}

// deniedBesides reports whether someone else than this person denies the call.
func (a Approval) deniedBesides(u UserID) bool {
	return slices.ContainsFunc(a.Decisions, func(d Decision) bool { return d.Verdict == Deny && d.By.User != u })
}
