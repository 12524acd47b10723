package agentrun

import (
	"encoding/json"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// An Entry is the journal of one executed call of one run. It goes from started to
// finished, each a commit of its own, and the effect happens only after started is
// stored; where a precondition is compared first, it is claimed before that. The entry
// of a call that changes nothing ([EffectPure]) is stored once, with the results of its
// step: until then the call may run again. A call that is found started by an
// owner who is gone, or whose tool did not say what it did, is in doubt: see
// [Effect] for what becomes of it. If it is executed again, it is started again.
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

// Ended returns when a finished execution ended: At is when that was stored, which is
// later.
func (e Entry) Ended() time.Time { return endOf(e.Finish.Part, e.At) }

// endOf returns when the execution ended that gave this part and is known to be over at
// at.
func endOf(part RequestPart, at time.Time) time.Time {
	var end time.Time
	switch p := part.(type) {
	case ToolReturn:
		end = p.At
	case RetryPrompt:
		end = p.At
	case UserPrompt, nil: // no execution ends in a prompt
	}
	if end.IsZero() || end.After(at) {
		return at
	}
	return end
}

// Began returns when the execution began, as far as the entry knows.
func (e Entry) Began() time.Time {
	if e.State != EntryFinished {
		return e.At
	}
	return e.Ended().Add(-e.Finish.Took)
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
	Took     time.Duration   // how long the tool ran, by the worker's clock
	Unsure   bool            // the tool ended without saying what it did, so whether it took effect is not known
	Reason   approvals.Quote // of the aside: why the tool asks, in its own words; if it is Unsure, what it said
}

// Aside says what a tool that set its call aside is waiting for.
type Aside string

// The ways to set a call aside.
const (
	AsideNone     Aside = ""
	AsideApproval Aside = "approval" // [ApprovalRequired]
	AsideExternal Aside = "external" // [CallDeferred]
	// AsidePrecondition is that nothing was executed: what the call would change
	// was not what people had seen. They are asked again, [MaxReasks] times.
	AsidePrecondition Aside = "precondition"
	// AsideDoubt is that people are asked what became of the call. No execution
	// ends with it, so it is in no journal.
	AsideDoubt Aside = "doubt"
)

// A journal has the entries of one run, as they were when its claim began.
type journal map[approvals.ToolCallID]Entry

func journalOf(entries []Entry) journal {
	j := make(journal, len(entries))
	for _, e := range entries {
		j[e.Call] = e
	}
	return j
}

// begun returns the entry of a call of which it is not known whether it took
// effect: a worker who is gone began it and did not finish it, or its tool did not
// say.
func (j journal) begun(id approvals.ToolCallID) (Entry, bool) {
	e := j[id]
	return e, e.State == EntryStarted || e.State == EntryFinished && e.Finish.Unsure
}

// anyBegun reports whether there is such a call.
func (j journal) anyBegun() bool {
	for id := range j {
		if _, ok := j.begun(id); ok {
			return true
		}
	}
	return false
}

// finish returns how a call ended that was executed before a crash.
func (j journal) finish(id approvals.ToolCallID) (Finish, bool) {
	e := j[id]
	return e.Finish, e.State == EntryFinished && !e.Finish.Unsure
}
