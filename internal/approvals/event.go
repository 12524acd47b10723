package approvals

import "time"

// Event is a fact about a batch, in the past tense. Events are committed with
// the batch that they led to, and never change.
//
//sumtype:decl
type Event interface{ event() }

// Opened says that a run deferred, and people are asked.
type Opened struct {
	Batch     BatchID   `json:"batch"`
	Run       RunID     `json:"run"`
	Agent     string    `json:"agent,omitempty"`
	Requester UserID    `json:"requester,omitempty"`
	Approvals []CallRef `json:"approvals,omitempty"`
	Calls     []CallRef `json:"calls,omitempty"`
	At        time.Time `json:"at,omitzero"`

	Participants []UserID      `json:"participants,omitempty"` // see [Batch]
	Doubts       []ToolCallID  `json:"doubts,omitempty"`       // those of Approvals that are in doubt, see [Doubt]
	Checked      []CheckedCall `json:"checked,omitempty"`      // those of Approvals whose rule has a check
	Rules        []string      `json:"rules,omitempty"`        // that ask about Approvals, in their order, see [Approval]; empty: older versions did not store them
}

// Decided says that a person gave a verdict on a call.
type Decided struct {
	Batch BatchID `json:"batch"`
	Decision
}

// Retracted says that a person took a decision back while the call was open.
type Retracted struct {
	Batch BatchID    `json:"batch"`
	Call  ToolCallID `json:"call"`
	By    Principal  `json:"by"`
	At    time.Time  `json:"at,omitzero"`
}

// Amended says that a person changed the arguments; Cleared lists whose
// decisions were on the old ones and no longer count, and Rule is the rule that asks
// about the new ones.
type Amended struct {
	Batch   BatchID    `json:"batch"`
	Call    ToolCallID `json:"call"`
	By      Principal  `json:"by"`
	From    Digest     `json:"from"`
	To      Digest     `json:"to"`
	Cleared []UserID   `json:"cleared,omitempty"`
	Rule    string     `json:"rule,omitempty"`
	At      time.Time  `json:"at,omitzero"`
}

// Reminded says that a reminder was due: people who can still help are to be
// notified. Rung counts the rungs of its ladder from 1.
type Reminded struct {
	Batch BatchID    `json:"batch"`
	Call  ToolCallID `json:"call"`
	Rung  int        `json:"rung"`
	At    time.Time  `json:"at,omitzero"`
}

// Escalated says that more people may approve a call, or that it is shown in
// another channel, because it was still open.
type Escalated struct {
	Batch   BatchID
	Call    ToolCallID
	Rung    int
	Quorum  string
	Add     From
	Channel string
	At      time.Time
}

// Fulfilled says that the result of an external call is in.
type Fulfilled struct {
	Batch BatchID    `json:"batch"`
	Call  ToolCallID `json:"call"`
	By    UserID     `json:"by"`
	At    time.Time  `json:"at,omitzero"`
}

// Settled says that an approval has its outcome, or that an external call was
// withdrawn. By and Reason are those of a withdrawal; the people who decided an
// outcome are in the [Decided] events before it.
type Settled struct {
	Batch  BatchID    `json:"batch"`
	Call   ToolCallID `json:"call"`
	Status Status     `json:"status"`
	By     UserID     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
	At     time.Time  `json:"at,omitzero"`
}

// Resolved says that the last call of the batch was settled. It is emitted
// once.
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

// BatchOf returns the batch that the event is about.
func BatchOf(e Event) BatchID {
	switch e := e.(type) {
	case Opened:
		return e.Batch
	case Decided:
		return e.Batch
	case Retracted:
		return e.Batch
	case Amended:
		return e.Batch
	case Reminded:
		return e.Batch
	case Escalated:
		return e.Batch
	case Fulfilled:
		return e.Batch
	case Settled:
		return e.Batch
	case Concluded:
		return e.Batch
	case Reported:
		return e.Batch
	case Resolved:
		return e.Batch
	}
	return "" // unreachable
}

// A StoredEvent is an event with its place among the facts that are stored with it.
// Places are opaque; the empty one is before the first fact.
type StoredEvent struct {
	ID    string
	Event Event
}
