// Package draft carries what a model writes to people who watch, while it writes
// it: from the process that asks the model, by a [Writer], to the processes in
// which they watch, by a [Reader].
//
// Nothing of it is stored, and nothing depends on it: a frame may be lost, and a
// response may be refused, or be asked for again by another process. What is
// stored in the end is the truth, and whoever missed a draft reads it there.
//
// A frame has what was added since the one before it, or all there is: from time
// to time, so that those who begin to watch later see it too. Frames are sent at
// most every 50 ms, and while nobody listens soon only one a second.
package draft

import (
	"context"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A Relay passes frames between processes; [state.Relay] does. It may lose some.
type Relay interface {
	// Publish reports whether anybody may have heard the message.
	Publish(ctx context.Context, id agentrun.ThreadID, message string) (heard bool, err error)
	Listen(id agentrun.ThreadID, to func(message string)) (leave func(), err error)
}

// A frame is a message of a [Writer].
type frame struct {
	ID    string          `json:"id"` // of one attempt at one response
	Seq   int             `json:"n"`
	Whole bool            `json:"all,omitempty"` // the pieces are all there is
	Run   approvals.RunID `json:"run"`
	At    int             `json:"at"`
	Parts []piece         `json:"parts,omitempty"`
}

// A piece is what is added to a part. The first piece of a part has its kind.
type piece struct {
	Index int                  `json:"i"`
	Kind  agentrun.DeltaKind   `json:"k,omitempty"`
	Call  approvals.ToolCallID `json:"call,omitempty"`
	Tool  string               `json:"tool,omitempty"`
	Text  string               `json:"t,omitempty"`
}
