// Package draft shows people what a model writes while it writes it. A [Writer] in
// the process that asks the model sends frames, and a [Reader] in each process in
// which people watch receives them.
//
// Drafts are not stored, and nothing depends on them: a frame may be lost, and a
// response may be refused, or requested again by another process. Only the stored
// response counts, and a client that missed a draft reads that.
//
// A frame holds what was added since the previous frame. From time to time a frame
// holds the whole draft instead, for people who began to watch later. Frames are
// sent at most every 50 ms, and at most once a second while nobody listens.
package draft

import (
	"context"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A Relay passes frames between processes; [state.Relay] does. It may lose some.
type Relay interface {
	// Publish sends a message. It returns false only if nobody listens.
	Publish(ctx context.Context, id agentrun.ThreadID, message string) (heard bool, err error)
	// Listen calls to with each message about the thread until leave is called.
	Listen(id agentrun.ThreadID, to func(message string)) (leave func(), err error)
}

// A frame is a message of a [Writer].
type frame struct {
	ID    string          `json:"id"` // of one attempt at a response
	Seq   int             `json:"n"`
	Whole bool            `json:"all,omitempty"` // the pieces are the whole draft
	Run   approvals.RunID `json:"run"`
	At    int             `json:"at"`
	Parts []piece         `json:"parts,omitempty"`
}

// A piece is an addition to a part. The first piece of a part names its kind.
type piece struct {
	Index int                  `json:"i"`
	Kind  agentrun.DeltaKind   `json:"k,omitempty"`
	Call  approvals.ToolCallID `json:"call,omitempty"`
	Tool  string               `json:"tool,omitempty"`
	Text  string               `json:"t,omitempty"`
}
