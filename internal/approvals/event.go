package approvals

import "time"

// Event is a fact about a batch, in the past tense. Events are committed with
// the batch that they led to, and never change.
//
//sumtype:decl
type Event interface{ event() }

// Opened: a run deferred, and people are asked.
type Opened struct {
	Batch     BatchID
	Run       RunID
	Agent     string
	Requester UserID
	Approvals []CallRef
	Calls     []CallRef
	At        time.Time
}

// Decided: a person approved or denied a call.
type Decided struct {
	Batch BatchID
	Decision
}

// Retracted: a person took a decision back while the call was open.
type Retracted struct {
	Batch BatchID
	Call  ToolCallID
	By    Principal
	At    time.Time
}

// Amended: a person changed the arguments; Cleared lists whose decisions were
// on the old ones and no longer count.
type Amended struct {
	Batch    BatchID
	Call     ToolCallID
	By       Principal
	From, To Digest
	Cleared  []UserID
	At       time.Time
}

// Fulfilled: the result of an external call is in.
type Fulfilled struct {
	Batch BatchID
	Call  ToolCallID
	By    UserID
	At    time.Time
}

// Settled: an approval has its outcome.
type Settled struct {
	Batch  BatchID
	Call   ToolCallID
	Status Status
	At     time.Time
}

// Resolved: the last call of the batch settled. It is emitted once.
type Resolved struct {
	Batch BatchID
	Run   RunID
	At    time.Time
}

func (Opened) event()    {}
func (Decided) event()   {}
func (Retracted) event() {}
func (Amended) event()   {}
func (Fulfilled) event() {}
func (Settled) event()   {}
func (Resolved) event()  {}
