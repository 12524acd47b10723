package approvals

import "time"

// Event is a fact about a batch, in the past tense. Events are committed with
// the batch that they led to, and never change.
//
//sumtype:decl
type Event interface{ event() }

// Opened is that a run deferred, and people are asked.
type Opened struct {
	Batch     BatchID
	Run       RunID
	Agent     string
	Requester UserID
	Approvals []CallRef
	Calls     []CallRef
	At        time.Time

	Participants []UserID // see [Batch]
}

// Decided is that a person approved or denied a call.
type Decided struct {
	Batch BatchID
	Decision
}

// Retracted is that a person took a decision back while the call was open.
type Retracted struct {
	Batch BatchID
	Call  ToolCallID
	By    Principal
	At    time.Time
}

// Amended is that a person changed the arguments; Cleared lists whose decisions
// were on the old ones and no longer count.
type Amended struct {
	Batch    BatchID
	Call     ToolCallID
	By       Principal
	From, To Digest
	Cleared  []UserID
	At       time.Time
}

// Reminded is that those who still can make a difference were to be told that
// a call waits. Rung counts the rungs of its ladder from 1.
type Reminded struct {
	Batch BatchID
	Call  ToolCallID
	Rung  int
	At    time.Time
}

// Escalated is that more people may sign a call, or that it is shown in another
// channel, because nobody had settled it.
type Escalated struct {
	Batch   BatchID
	Call    ToolCallID
	Rung    int
	Quorum  string
	Add     From
	Channel string
	At      time.Time
}

// Fulfilled is that the result of an external call is in.
type Fulfilled struct {
	Batch BatchID
	Call  ToolCallID
	By    UserID
	At    time.Time
}

// Settled is that an approval has its outcome, or that an external call was
// withdrawn. By and Reason are those of a withdrawal; an outcome that people
// decided has its names in the [Decided] before it.
type Settled struct {
	Batch  BatchID
	Call   ToolCallID
	Status Status
	By     UserID
	Reason string
	At     time.Time
}

// Resolved is that the last call of the batch settled. It is emitted once.
type Resolved struct {
	Batch BatchID
	Run   RunID
	At    time.Time
}

func (Opened) event()    {}
func (Decided) event()   {}
func (Retracted) event() {}
func (Amended) event()   {}
func (Reminded) event()  {}
func (Escalated) event() {}
func (Fulfilled) event() {}
func (Settled) event()   {}
func (Resolved) event()  {}
