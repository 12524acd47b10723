package approvals

import (
	"fmt"
	"strings"
	"time"
)

// A Doubt says that people are asked about a call of which it is not known
// whether it took effect: a worker began it and never said how it ended. Its
// [Approval] is answered with verdicts of its own:
//
//   - [RunAgain] approves one more execution of the same arguments. It needs the
//     whole requirement, like the approval that the first execution had.
//   - [Happened] says that the call took effect; the reason is what the person
//     knows of its result. [GiveUp] says that it is not to run again. Either is
//     the word of one person who may approve the call, and the first one settles it.
//
// [Approve] and [Deny] do not answer a doubt, and [Amend] does not change it. The
// zero Doubt is none.
type Doubt struct {
	Began time.Time // when the execution began
	// Key is what an idempotent tool was given for the execution, and is given for
	// the next one.
	Key string
	// Approved is the batch in which people approved the execution. It is empty if
	// the policy had permitted it.
	Approved BatchID
	// Unsure says that the tool ended without saying whether the call took effect.
	// If it is false, the worker that began the call died.
	Unsure bool
	// Said is what the tool said of that, in its own words.
	Said Quote
	// Late is what the worker that began the call said afterwards, when its run had
	// been given to another. It is for people, and decides nothing.
	Late Execution
}

// InDoubt reports whether people are asked what became of the call, and not
// whether it may run for the first time.
func (a Approval) InDoubt() bool { return !a.Doubt.Began.IsZero() }

// Yes returns the verdict by which people let the call run: [Approve], or
// [RunAgain] for a call in doubt.
func (a Approval) Yes() Verdict {
	if a.InDoubt() {
		return RunAgain
	}
	return Approve
}

// No returns the verdict by which people stop the call: [Deny], or [GiveUp] for a
// call in doubt.
func (a Approval) No() Verdict {
	if a.InDoubt() {
		return GiveUp
	}
	return Deny
}

// plain returns the doubt as it begins, with its time as it is stored.
func (d Doubt) plain() Doubt {
	if d.Began.IsZero() {
		return Doubt{}
	}
	d.Began, d.Late = plain(d.Began), Execution{}
	return d
}

// takes is nil if v is a verdict on such a call.
func (a Approval) takes(v Verdict) error {
	switch v {
	case Approve, Deny:
		if a.InDoubt() {
			return fmt.Errorf("call %q: %w", string(a.Call.ID), ErrInDoubt)
		}
		return nil
	case RunAgain, Happened, GiveUp:
		if !a.InDoubt() {
			return fmt.Errorf("call %q: %w", string(a.Call.ID), ErrNotInDoubt)
		}
		return nil
	}
	return fmt.Errorf("%w: %q is no verdict", ErrInvalid, string(v))
}

// Restarted returns the requirement for asking about the same call again at to,
// if people were asked the first time at from: it leaves them as much time, and
// climbs the same ladder.
func (r Requirement) Restarted(from, to time.Time) Requirement {
	r = r.clone()
	by := to.Sub(from)
	if !r.Deadline.IsZero() {
		r.Deadline = plain(r.Deadline.Add(by))
	}
	for i := range r.Ladder {
		r.Ladder[i].At = plain(r.Ladder[i].At.Add(by))
	}
	return r
}

// Report records what a worker says of a call in doubt that it had begun, after
// its run was given to another worker. It is recorded once, whether the call is
// settled or not, and moves nothing else.
type Report struct {
	Call      ToolCallID
	Execution Execution
	At        time.Time
}

func (Report) command() {}

// Reported says that a worker has told late what it did.
type Reported struct {
	Batch BatchID        `json:"batch"`
	Call  ToolCallID     `json:"call"`
	State ExecutionState `json:"state"`
	Took  time.Duration  `json:"took_ns,omitempty"`
	At    time.Time      `json:"at,omitzero"`
}

func (Reported) event() {}

func (b Batch) report(cmd Report) (Batch, []Event, error) {
	if cmd.At.IsZero() {
		return b, nil, fmt.Errorf("%w: a command needs a time", ErrInvalid)
	}
	i, err := b.approval(cmd.Call)
	if err != nil {
		return b, nil, err
	}
	a := b.Approvals[i]
	if !a.InDoubt() {
		return b, nil, fmt.Errorf("call %q: %w", string(cmd.Call), ErrNotInDoubt)
	}
	e, err := cmd.Execution.check(cmd.At)
	if err != nil {
		return b, nil, fmt.Errorf("call %q: %w", string(cmd.Call), err)
	}
	if a.Doubt.Late.State != "" {
		return b, nil, nil
	}
	a.Doubt.Late = e
	next := b.with(i, a)
	next.Version++
	return next, []Event{Reported{Batch: b.ID, Call: cmd.Call, State: e.State, Took: e.Took, At: e.At}}, nil
}

// What the model reads about a call in doubt that does not run again. Each says
// first what is not known, so that it is not taken for a denial.
const (
	// DoubtGivenUpMessage is about a call that a person gave up.
	DoubtGivenUpMessage = "It is not known whether this tool call took effect. A person decided that it is not run again."
	// DoubtExpiredMessage is about a call on which nobody decided in time.
	DoubtExpiredMessage = "It is not known whether this tool call took effect. Nobody decided in time what to do about it, so it is not run again."
	// DoubtWithdrawnMessage is about a call that was ended from outside.
	DoubtWithdrawnMessage = "It is not known whether this tool call took effect. It was withdrawn before anyone decided what to do about it, so it is not run again."
	// HappenedMessage is about a call of which a person said that it took effect.
	HappenedMessage = "The tool did not report how this call ended. A person says that it took effect."
)

// doubted is [Approval.Denial] of a call in doubt.
func (a Approval) doubted() ToolDenied {
	switch a.Status {
	case Expired:
		return ToolDenied{Message: DoubtExpiredMessage}
	case Withdrawn:
		return ToolDenied{Message: because(DoubtWithdrawnMessage, a.Ending.Reason)}
	case Denied, Pending, Approved, Confirmed: // of these, only Denied has a denial
	}
	return ToolDenied{Message: because(DoubtGivenUpMessage, a.saidInDoubt())}
}

// happened says that a person confirmed the call. What people wrote is quoted: it is
// their words and not the tool's result.
func (a Approval) happened() ToolHappened {
	return ToolHappened{Message: quoting(HappenedMessage, "What they wrote", a.saidInDoubt())}
}

// saidInDoubt is what people wrote about a call in doubt that is not to run again.
func (a Approval) saidInDoubt() string {
	var reasons []string
	for _, d := range a.Decisions {
		if r := oneLine(d.Reason); d.Verdict != RunAgain && r != "" {
			reasons = append(reasons, r)
		}
	}
	return strings.Join(reasons, " / ")
}
