package approvals

import (
	"encoding/json"
	"time"
)

// Command is what can be asked of a batch; there is no other way to move it.
//
//sumtype:decl
type Command interface{ command() }

// Decide records one person's verdict on one call.
type Decide struct{ Decision }

// Retract takes back the person's own decision while the call is open.
type Retract struct {
	Call ToolCallID
	By   Principal
	At   time.Time
}

// Fulfil delivers the result of an external call. By is the person or service
// that delivered it.
type Fulfil struct {
	Call   ToolCallID
	Result CallResult
	By     UserID
	At     time.Time
}

// Amend replaces the arguments of an open call. From names the digest that it
// replaces; Ruling is the policy's word on the new arguments: a new
// requirement replaces the old one, [Permit] keeps it, [Refuse] refuses.
type Amend struct {
	Call   ToolCallID
	From   Digest
	Args   json.RawMessage
	Ruling Ruling
	By     Principal
	At     time.Time
}

// Expire ends every approval whose deadline has passed at At.
type Expire struct{ At time.Time }

// Withdraw ends everything that is still open.
type Withdraw struct {
	By     UserID
	Reason string
	At     time.Time
}

func (Decide) command()   {}
func (Retract) command()  {}
func (Fulfil) command()   {}
func (Amend) command()    {}
func (Expire) command()   {}
func (Withdraw) command() {}

// Open returns the batch of a run that deferred these calls, version 1, and
// the facts that follow. It is an error to open a batch without calls, with
// two calls of the same id, or with an id that is empty.
func Open(b Batch, approvals, calls []Deferral) (Batch, []Event, error) {
	panic("unimplemented")
}

// Apply returns the batch after cmd and the facts that follow. It never
// modifies b; repeating a command is a no-op without facts. The version moves
// by one exactly when there are facts.
func (b Batch) Apply(cmd Command) (Batch, []Event, error) {
	panic("unimplemented")
}

// Settled reports whether every call has its outcome.
func (b Batch) Settled() bool { panic("unimplemented") }

// Results returns the answers for the model. They exist exactly when the batch
// is settled (otherwise [ErrOpen]) and answer exactly its calls. args are the
// current arguments of the approved calls, checked against the digests that
// were signed: a mismatch is [ErrStale] and nothing is answered.
func (b Batch) Results(args map[ToolCallID]json.RawMessage) (DeferredToolResults, error) {
	panic("unimplemented")
}

// Deadline returns the earliest deadline of an open approval, or the zero time.
func (b Batch) Deadline() time.Time { panic("unimplemented") }

// Groups returns the groups that can matter for a call of the batch that is
// still open, sorted, each once: who receives a click must look these up.
func (b Batch) Groups() []GroupID { panic("unimplemented") }

// Progress says how far each quorum of the approval is, counting each person
// once over all of them.
func (a Approval) Progress() []Progress { panic("unimplemented") }

// Progress is how far a quorum is: who fills its places.
type Progress struct {
	Quorum Quorum
	By     []UserID
}
