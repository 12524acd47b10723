package agentrun

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Store is what the [Runner] needs; the `state` package has the one
// implementation. What is not there is [approvals.ErrNotFound], and what of
// messages and journal cannot be understood is [ErrUnreadable]. Its errors name the
// operation and the document, so callers return them as they are.
type Store interface {
	Thread(ctx context.Context, id ThreadID) (Thread, error)
	Run(ctx context.Context, id approvals.RunID) (Run, error)
	// Messages returns [from, to) of the thread's list.
	Messages(ctx context.Context, id ThreadID, from, to int) ([]Message, error)
	// Journal returns every entry of the run, in no order.
	Journal(ctx context.Context, id approvals.RunID) ([]Entry, error)
	Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error)
	Args(ctx context.Context, id approvals.BatchID, d approvals.Digest) (json.RawMessage, error)
	// Commit is answered when the change is as durable as it has to be. One that
	// is stored and may be lost is [approvals.ErrNotDurable]; it may be made again
	// under the same Request.
	Commit(ctx context.Context, c Commit) error
	// Confirm is that of [approvals.Store].
	Confirm(ctx context.Context, id string) error
	// Prefetch returns a context in which the first read of any of these documents reads
	// all of them, and each is handed out once.
	Prefetch(ctx context.Context, r approvals.Reads) context.Context
}

// A Commit is everything that changes in one step, all of it or nothing. All
// documents in it live in one partition. A document is written only if the
// stored one still has its Version (0: there is none yet), and is stored with
// the next one; otherwise the whole commit is [approvals.ErrConflict].
//
// The store derives the due work from the documents, so that a commit cannot
// leave it out.
type Commit struct {
	// Request names this change; the same request again changes nothing and is
	// answered like the first. It is remembered for Keep, 0 means ten minutes.
	Request approvals.RequestID
	Keep    time.Duration

	// Owner, if set, is a condition: this run still belongs to this fence. It
	// is what ties a journal entry to a claim without moving the run.
	Owner *Ownership

	Thread *Thread
	Runs   []Run
	// Undrawn says that surfaces need not draw the Runs because of this commit: they show
	// the same as before, or a commit without it follows within seconds.
	Undrawn bool
	Append  *Append
	Entries []Entry
	Opens   *OpenBatch
	// Moves is a change of a batch, as [approvals.Store] would commit it.
	Moves *BatchMove
	// Resumes is the settled batch whose answers this commit takes up, for its
	// resume run or because they are delivered.
	Resumes *approvals.Batch
	// Memos are what a surface stores in the same step. A commit without a Request is
	// remembered by the first of them.
	Memos []MemoChange
	// With are further changes in the same step, each without Request and With. If what
	// one of them relies on has changed, the conflict is a [*PartError].
	With []Commit
}

// A PartError is the [approvals.ErrConflict] of a commit that failed because of one
// of those that it was made with.
type PartError struct{ Part int } // in Commit.With

func (e *PartError) Error() string { return fmt.Sprintf("part %d: %s", e.Part, approvals.ErrConflict) }

// Is makes it an [approvals.ErrConflict].
func (*PartError) Is(target error) bool { return target == approvals.ErrConflict }

// Ownership says which claim of a run a commit is made under.
type Ownership struct {
	Run   approvals.RunID
	Fence Fence
}

// Append adds messages to the end of a thread's list, which must have exactly
// At messages before.
type Append struct {
	Thread   ThreadID
	At       int
	Messages []Message
}

// BatchMove is what a command has made of a batch. It is written only if the
// stored one still has the version of Before.
type BatchMove struct {
	Before approvals.Batch
	Batch  approvals.Batch
	Events []approvals.Event
}

// OpenBatch is a batch that begins, with the arguments that it is about.
type OpenBatch struct {
	Batch  approvals.Batch
	Events []approvals.Event
	Args   map[approvals.Digest]json.RawMessage
}
