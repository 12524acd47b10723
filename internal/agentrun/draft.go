package agentrun

import (
	"github.com/countersign/countersign/internal/approvals"
)

// A Delta is what a model adds to a response while it writes it. Deltas are for
// people who watch: they are never stored, and nothing is decided by them. What
// they say together may differ from the response, which may also never come.
type Delta struct {
	Kind DeltaKind
	Call approvals.ToolCallID // of a DeltaCall
	Tool string               // likewise
	Text string               // is added to the text, the reasoning, or the JSON of the arguments
}

// A DeltaKind says what a delta is a piece of.
type DeltaKind string

// The kinds.
const (
	DeltaText     DeltaKind = "text"
	DeltaThinking DeltaKind = "thinking"
	DeltaCall     DeltaKind = "call"
	// DeltaAgain is no piece: the model is asked again, and what came before
	// counts no more.
	DeltaAgain DeltaKind = "again"
)

// A Draft is the response that a model is writing.
type Draft struct {
	Run   approvals.RunID
	At    int // the place in the thread's messages that the response will have
	Parts []DraftPart
}

// A DraftPart is what there is of one part. They are in the order in which they
// began.
type DraftPart struct {
	Kind DeltaKind
	Call approvals.ToolCallID
	Tool string
	Text string
}

// Watchers are told what models write while they write it.
type Watchers interface {
	// Open returns what takes the deltas of the response that the run asks for
	// next, or nil if nobody can watch that run. None of these blocks for long.
	// closed is called once, when the response is complete or given up.
	Open(run Run) (write func(Delta), closed func())
}

// written returns where the deltas of a response go. Calls have the names of their
// tools. Those whose arguments are not all for people to see are left out, and so
// are those that will have another id in the history.
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
