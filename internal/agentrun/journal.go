package agentrun

import (
	"encoding/json"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// An Entry is the journal of one executed call of one run. It goes from
// claimed to started to finished, each a commit of its own, and the effect
// happens only after started is stored. A call that is found started by an
// owner who is gone is in doubt: it is never repeated.
type Entry struct {
	Run     approvals.RunID
	Call    approvals.ToolCallID
	Tool    string
	State   EntryState
	Fence   Fence // of the execution
	At      time.Time
	Finish  Finish // when finished
	Version int64  // of this document; 0 before it is stored
}

// EntryState says how far an execution is.
type EntryState string

// The states of an entry.
const (
	EntryClaimed  EntryState = "claimed"  // nothing has begun; another worker may claim it
	EntryStarted  EntryState = "started"  // the effect may or may not have happened
	EntryFinished EntryState = "finished" // the outcome is known
)

// A Finish is how an execution ended: with a part for the history and perhaps
// a user prompt after it, or by setting the call aside.
type Finish struct {
	Part     RequestPart // nil if the call was set aside
	Prompt   string
	Aside    Aside
	Metadata json.RawMessage // of the aside
}

// Aside says what a tool that set its call aside is waiting for.
type Aside string

// The ways to set a call aside.
const (
	AsideNone     Aside = ""
	AsideApproval Aside = "approval" // [ApprovalRequired]
	AsideExternal Aside = "external" // [CallDeferred]
)
