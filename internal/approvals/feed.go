package approvals

import (
	"context"
	"iter"
)

// A StoredEvent is an event with its place among the facts that are stored with it.
// Places are opaque; the empty one is before the first fact.
type StoredEvent struct {
	ID    string
	Event Event
}

// A Feed lets a surface follow a batch live: it reads a [Feed.Snapshot], shows
// it, and follows the facts after it. The `state` package has the one
// implementation.
type Feed interface {
	// Snapshot returns the batch and the place of the last fact that led to it:
	// what follows that place is in the batch not yet, and all of it is still to
	// come.
	Snapshot(ctx context.Context, id BatchID) (b Batch, at string, err error)
	// Follow yields the facts of the batch that come after a place, in the order in
	// which they were committed, each once, and waits for more until ctx ends. It
	// ends after an error, and can be called again with the place of the last fact.
	Follow(ctx context.Context, id BatchID, after string) iter.Seq2[StoredEvent, error]
}

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
