package approvals

import "time"

// Event is a fact about a batch, in the past tense. Events are committed with
// the batch that they led to, and never change.
//
//sumtype:decl
type Event interface{ event() }

// Opened is that a run deferred, and people are asked.
type Opened struct {
	Batch     BatchID   `json:"batch"`
	Run       RunID     `json:"run"`
	Agent     string    `json:"agent,omitempty"`
	Requester UserID    `json:"requester,omitempty"`
	Approvals []CallRef `json:"approvals,omitempty"`
	Calls     []CallRef `json:"calls,omitempty"`
	At        time.Time `json:"at,omitzero"`

	Participants []UserID `json:"participants,omitempty"` // see [Batch]
}

// Decided is that a person approved or denied a call.
type Decided struct {
	Batch BatchID `json:"batch"`
	Decision
}

// Retracted is that a person took a decision back while the call was open.
type Retracted struct {
	Batch BatchID    `json:"batch"`
	Call  ToolCallID `json:"call"`
	By    Principal  `json:"by"`
	At    time.Time  `json:"at,omitzero"`
}

// Amended is that a person changed the arguments; Cleared lists whose decisions
// were on the old ones and no longer count.
type Amended struct {
	Batch   BatchID    `json:"batch"`
	Call    ToolCallID `json:"call"`
	By      Principal  `json:"by"`
	From    Digest     `json:"from"`
	To      Digest     `json:"to"`
	Cleared []UserID   `json:"cleared,omitempty"`
	At      time.Time  `json:"at,omitzero"`
}

// Reminded is that those who still can make a difference were to be told that
// a call waits. Rung counts the rungs of its ladder from 1.
type Reminded struct {
	Batch BatchID    `json:"batch"`
	Call  ToolCallID `json:"call"`
	Rung  int        `json:"rung"`
	At    time.Time  `json:"at,omitzero"`
}

// Escalated is that more people may approve a call, or that it is shown in another
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
	Batch BatchID    `json:"batch"`
	Call  ToolCallID `json:"call"`
	By    UserID     `json:"by"`
	At    time.Time  `json:"at,omitzero"`
}

// Settled is that an approval has its outcome, or that an external call was
// withdrawn. By and Reason are those of a withdrawal; an outcome that people
// decided has its names in the [Decided] before it.
type Settled struct {
	Batch  BatchID    `json:"batch"`
	Call   ToolCallID `json:"call"`
	Status Status     `json:"status"`
	By     UserID     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
	At     time.Time  `json:"at,omitzero"`
}

// Resolved is that the last call of the batch settled. It is emitted once.
type Resolved struct {
	Batch BatchID   `json:"batch"`
	Run   RunID     `json:"run"`
	At    time.Time `json:"at,omitzero"`
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
