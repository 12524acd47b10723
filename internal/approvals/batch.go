package approvals

import (
	"encoding/json"
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
)

// A Batch is what one deferred run waits for: calls that need people, and
// calls that run elsewhere. It holds no arguments, only their digests: the
// arguments live beside it and never change.
//
// A Batch is a value. [Batch.Apply] is the only way it moves.
type Batch struct {
	ID        BatchID
	Run       RunID
	Thread    string // where the run lives; opaque to this package
	Agent     string
	Requester UserID
	OpenedAt  time.Time
	Version   int64 // 1 when opened, and one more with every applied command
	Approvals []Approval
	Calls     []External
}

// An Approval is one call that needs people, and what they said.
type Approval struct {
	Call        CallRef
	Proposed    Digest          // of the arguments as the model made them; differs from Call.Digest after an [Amend]
	Why         string          // why people are asked, in words
	Metadata    json.RawMessage // what the tool said when it asked, a JSON object or nil
	WriteOnly   []string        // JSON pointers of arguments that people see as a length only
	Requirement Requirement
	Status      Status
	Decisions   []Decision // at most one a person, in the order they were made
	Amendments  []Amendment
	Ending      Ending // how it was settled, zero while pending
}

// An External is one call that runs elsewhere, and its result once it is in.
type External struct {
	Call     CallRef
	Metadata json.RawMessage
	Result   CallResult // nil while pending; ToolDenied when withdrawn
	Ending   Ending
}

// An Amendment is one change of the arguments by a person.
type Amendment struct {
	By   Principal
	From Digest
	To   Digest
	At   time.Time
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
	Metadata  json.RawMessage
	WriteOnly []string // see [Approval]
	Ask       Ask      // for calls that need people; ignored for external calls
}
