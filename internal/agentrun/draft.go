package agentrun

import (
	"github.com/countersign/countersign/internal/approvals"
)

// A Delta is what a model adds to a response while it writes it. Deltas are for people
// who watch: they are never stored, and no decision depends on them. Together they may
// differ from the response, and the response may never come.
type Delta struct {
	Kind DeltaKind
	Call approvals.ToolCallID // of a DeltaCall
	Tool string               // likewise
	Text string               // the addition to the text, the reasoning, or the JSON of the arguments
}

// A DeltaKind says what a delta is a piece of.
type DeltaKind string

// The kinds.
const (
	DeltaText     DeltaKind = "text"
	DeltaThinking DeltaKind = "thinking"
	DeltaCall     DeltaKind = "call"
	// DeltaAgain adds nothing: the model is asked again, and the deltas before it no
	// longer count.
	DeltaAgain DeltaKind = "again"
)

// A Draft is the response that a model is writing.
type Draft struct {
	Run   approvals.RunID
	At    int         // the place in the thread's messages that the response will have
	Parts []DraftPart // in the order in which they began
}

// A DraftPart is what the model has written of one part so far.
type DraftPart struct {
	Kind DeltaKind
	Call approvals.ToolCallID
	Tool string
	Text string
}

// Watchers are told what models write while they write it.
type Watchers interface {
	// Open returns a function that takes the deltas of the response that the run asks
	// for next, or nil if nobody can watch that run. The caller calls closed once, when
	// the response is complete or given up. None of these blocks for long.
	Open(run Run) (write func(Delta), closed func())
}

// written returns a function that passes the deltas of a response on to write, with the
// names that tools have here. It drops the calls with arguments that people must not see,
// and those that will get another id in the history.
func (s *session) written(write func(Delta)) func(Delta) {
	used, names := usedIDs(s.history), s.tools.byCallable()
	return func(d Delta) {
		if d.Kind == DeltaCall {
			tool, known := s.tools[names[d.Tool]]
			if !known || used[d.Call] || len(tool.Spec().WriteOnly) > 0 {
				return
			}
			d.Tool = names[d.Tool]
		}
		write(d)
	}
}
