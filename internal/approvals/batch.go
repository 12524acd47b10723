package approvals

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Status says where an approval stands. It is implied by the decisions and the
// ending, and stored only for readers.
type Status string

// The statuses. Only Pending ever changes.
const (
	Pending   Status = "pending"
	Approved  Status = "approved"
	Denied    Status = "denied"
	Expired   Status = "expired"   // the deadline passed; nobody refused
	Withdrawn Status = "withdrawn" // the batch was ended from outside
	Confirmed Status = "confirmed" // a person said that a call in doubt took effect
)

// Settled reports whether s is one of the outcomes. The empty status is not.
func (s Status) Settled() bool {
	switch s {
	case Approved, Denied, Expired, Withdrawn, Confirmed:
		return true
	case Pending:
		return false
	}
	return false
}

// A Batch is what one deferred run waits for: calls that need people, and
// calls that run elsewhere. It holds no arguments, only their digests: the
// arguments live beside it and never change.
//
// A Batch is a value. [Batch.Apply] is the only way it moves; behind it there is
// one unexported method for each command. All other methods are questions: their
// answers follow from what the batch holds, and from the person and the time
// that the caller brings. Those that take an [Approval] are about that call in
// this batch: who may decide it depends on who asked, which only the batch knows.
// That is why they are all methods of one type.
type Batch struct {
	ID        BatchID
	Run       RunID
	Thread    string // where the run lives; opaque to this package
	Agent     string
	Channel   string // where the run was asked for, or is to be shown; a policy may look at it
	Requester UserID // who triggered the run
	Executor  Executor
	Limits    Limits
	Untold    bool // its asker named nobody to be told what happens to it

	// Participants are the others who asked for the calls, each once: when the
	// model made them, it had been sent prompts of these people, reasons that they
	// gave for a denial, or arguments that they wrote. See [Requirement].
	Participants []UserID

	// Why the agent makes the calls: what the model wrote beside them, and the
	// newest message of the requester that it had read. Both are shown only to
	// people who may read the arguments.
	Said   Quote
	Prompt Quote

	SoFar     SoFar // what the run had done when it opened; a policy may look at it
	OpenedAt  time.Time
	Version   int64 // 1 when opened, and one more with every applied command
	Approvals []Approval
	Calls     []External
}

// An Executor names who executes the calls of a run and continues it once its
// batch is settled. The empty one is this program, which resumes the run; the
// answers are delivered to any other. A run of an unknown executor is never
// resumed.
type Executor string

// An Approval is one call that needs people, and what they said.
type Approval struct {
	Call        CallRef
	Proposed    Digest          // of the arguments as the model made them; differs from Call.Digest after an [Amend]
	Why         string          // the rule's wording of why people are asked
	Rule        string          // the rule that asks and the version of its policy
	Unjudged    bool            // a rule that might have refused the call could not be judged
	Checked     Checked         // what the check of the rule said
	Severity    Severity        // the worst that its tool and the policy state; an edit never lowers it
	Gate        Gate            // how the tool itself asks for approval, if it does
	GateReason  Quote           // why the tool asks, in its own words; for those who may read the arguments
	Metadata    json.RawMessage // what the tool said when it asked, a JSON object or nil; shown to nobody
	Preview     Preview         // what the call would change
	Place       Place           // where it would run, if whoever executes it says so
	Hosted      bool            // the provider of the model runs it, as the model made it: an [Amend] is [ErrNoEdits]
	Definition  string          // the definition of its tool by which people are asked, if that can change; shown to nobody
	WriteOnly   []string        // JSON pointers of arguments that people see as a length only
	Summary     string          // the template that says what the call does, as it was in force; surfaces render it, see package summary
	Requirement Requirement
	Status      Status
	Decisions   []Decision // at most one a person, in the order they were made
	Amendments  []Amendment
	Doubt       Doubt     // if it is not known whether the call took effect, zero otherwise
	EditedBy    []UserID  // who changed the arguments when the call was asked about before, in an earlier batch
	Climbed     int       // how many rungs of the ladder have been taken
	Ending      Ending    // how it was settled, zero while pending
	Execution   Execution // the execution of an approved call, zero while nothing is known
}

// An External is one call that runs elsewhere, and its result once it is in.
type External struct {
	Call      CallRef
	Metadata  json.RawMessage
	WriteOnly []string   // see [Approval]
	Summary   string     // see [Approval]
	Place     Place      // see [Approval]
	Result    CallResult // nil while pending; ToolDenied when withdrawn
	Ending    Ending
}

// An Amendment is one change of the arguments by a person. Cleared lists whose
// decisions were on the old ones.
type Amendment struct {
	By      Principal
	From    Digest
	To      Digest
	Cleared []UserID
	At      time.Time
}

// An Ending says when a call was settled and, for a withdrawal or an external
// result, by whom and why.
type Ending struct {
	At     time.Time
	By     UserID
	Reason string
}

// A Deferral is one call to be set aside when a batch is opened.
type Deferral struct {
	Call      ToolCall
	Gate      Gate
	Metadata  json.RawMessage
	WriteOnly []string // see [Approval]
	Summary   string   // of the tool or its configuration; that of Ask goes before it
	EditedBy  []UserID // see [Approval]
	Severity  Severity // what the tool states
	Ask       Ask      // for calls that need people; ignored for external calls

	GateReason Quote   // see [Approval]
	Preview    Preview // see [Approval]
	Place      Place   // see [Approval]
	Hosted     bool    // see [Approval]; ignored for external calls
	Definition string  // see [Approval]; ignored for external calls
	Doubt      Doubt   // see [Approval]; ignored for external calls
}

// Settled reports whether every call has its outcome. A batch without calls is
// no batch, and not settled.
func (b Batch) Settled() bool {
	for _, a := range b.Approvals {
		if !a.Status.Settled() {
			return false
		}
	}
	for _, c := range b.Calls {
		if c.Result == nil {
			return false
		}
	}
	return len(b.Approvals)+len(b.Calls) > 0
}

// Deadline returns the earliest deadline of an open approval, or the zero time.
func (b Batch) Deadline() time.Time {
	var first time.Time
	for _, a := range b.Approvals {
		d := a.Requirement.Deadline
		if a.Status != Pending || d.IsZero() {
			continue
		}
		if first.IsZero() || d.Before(first) {
			first = d
		}
	}
	return first
}

// Next returns when time moves the batch next: the earliest deadline or rung of
// an open approval, or the zero time. See [Expire] and [Climb].
func (b Batch) Next() time.Time {
	first := b.Deadline()
	for _, a := range b.Approvals {
		rung, ok := a.rung()
		if a.Status == Pending && ok && (first.IsZero() || rung.At.Before(first)) {
			first = rung.At
		}
	}
	return first
}

// Channels returns the channels in which an escalation has shown a call of the
// batch, sorted, each once.
func (b Batch) Channels() []string {
	var all []string
	for _, a := range b.Approvals {
		for _, rung := range a.TakenRungs() {
			if rung.Kind == Escalate && rung.Channel != "" {
				all = append(all, rung.Channel)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// approval returns the index of the approval of this call.
func (b Batch) approval(id ToolCallID) (int, error) {
	if i := slices.IndexFunc(b.Approvals, func(a Approval) bool { return a.Call.ID == id }); i >= 0 {
		return i, nil
	}
	if slices.ContainsFunc(b.Calls, func(c External) bool { return c.Call.ID == id }) {
		return 0, fmt.Errorf("%w: call %q runs elsewhere, nobody approves it", ErrInvalid, string(id))
	}
	return 0, fmt.Errorf("call %q: %w", string(id), ErrNotFound)
}

// ref returns what the batch keeps of the call.
func (b Batch) ref(id ToolCallID) (CallRef, bool) {
	for _, a := range b.Approvals {
		if a.Call.ID == id {
			return a.Call, true
		}
	}
	for _, c := range b.Calls {
		if c.Call.ID == id {
			return c.Call, true
		}
	}
	return CallRef{}, false
}

// with returns b with approval i replaced; b keeps its own.
func (b Batch) with(i int, a Approval) Batch {
	b.Approvals = slices.Clone(b.Approvals)
	b.Approvals[i] = a
	return b
}

// open returns nil if the approval can still change at this time.
func (a Approval) open(at time.Time) error {
	switch {
	case a.Status == Expired:
		return fmt.Errorf("call %q: %w", string(a.Call.ID), ErrExpired)
	case a.Status != Pending:
		return fmt.Errorf("call %q: %w", string(a.Call.ID), ErrSettled)
	case a.overdue(at):
		return fmt.Errorf("call %q: %w", string(a.Call.ID), ErrExpired)
	}
	return nil
}

// overdue reports whether the deadline has come, swept or not.
func (a Approval) overdue(at time.Time) bool {
	d := a.Requirement.Deadline
	return !d.IsZero() && !at.Before(d)
}
