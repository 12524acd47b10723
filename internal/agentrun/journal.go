package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// execute runs one call, with an entry in the journal before and after. Its
// plan has the outcome afterwards. The effect happens only under the claim,
// with most of the lease ahead, after its beginning is stored, and once.
func (w *worker) execute(ctx context.Context, run Run, p *plan, retry int) error {
	if w.r.isDraining() {
		return errDraining
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	entry := w.journal[p.call.ID]
	entry.Run, entry.Call, entry.Tool, entry.Fence = run.ID, p.call.ID, p.call.Name, w.claim.fence
	if err := w.record(ctx, &entry, EntryClaimed); err != nil {
		return err
	}
	if err := w.claim.fresh(ctx); err != nil {
		return err
	}
	w.begun.Add(1)
	if err := w.record(ctx, &entry, EntryStarted); err != nil {
		return w.stepBack(ctx, &entry, err)
	}
	w.log(ctx, slog.LevelInfo, "call started", slog.String("call", string(entry.Call)), slog.String("tool", entry.Tool))
	began := w.now()
	result, err, late := guard(ctx, timeout(p.tool), func(ctx context.Context) (Result, error) {
		return p.tool.Execute(ctx, w.toolCall(run, p, retry))
	})
	finish, known := w.finishOf(ctx, p, result, err, late)
	// It is said before the outcome is stored: if the store does not answer, this
	// line is what tells that the call ran.
	w.log(ctx, slog.LevelInfo, "call finished", slog.String("call", string(entry.Call)), slog.String("tool", entry.Tool),
		slog.String("outcome", outcome(finish, err, late)), slog.Duration("took", w.now().Sub(began)))
	if !known {
		return context.Cause(ctx)
	}
	entry.Finish = finish
	// What is known is stored even when the worker is told to stop.
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.claim.lease)
	defer cancel()
	if err := w.record(saving, &entry, EntryFinished); err != nil {
		return err
	}
	w.begun.Add(-1)
	p.finished(entry.Finish)
	return nil
}

// stepBack is for a call whose beginning is stored and may be lost with the
// store's machine: it must not begin. That is known here and nowhere else, so
// the entry says it, or the call would be in doubt for ever.
func (w *worker) stepBack(ctx context.Context, e *Entry, cause error) error {
	if !errors.Is(cause, approvals.ErrNotDurable) {
		return cause
	}
	e.Version++
	err := w.record(ctx, e, EntryClaimed)
	if err == nil || errors.Is(err, approvals.ErrNotDurable) {
		w.begun.Add(-1) // a lost one leaves the beginning, which is doubt again
	}
	return cause
}

// finished gives the plan the outcome of its execution.
func (p *plan) finished(f Finish) {
	p.ran, p.prompt = true, f.Prompt
	if f.Aside == AsideNone {
		p.answer(f.Part)
		return
	}
	p.execute, p.aside, p.raised, p.metadata = false, f.Aside, true, f.Metadata
}

// record stores the entry's next state. The same attempt is made again when the
// store does not answer; it has one name, so it counts once.
func (w *worker) record(ctx context.Context, e *Entry, s EntryState) error {
	e.State, e.At = s, w.now()
	c := Commit{
		Request: approvals.RequestID(fmt.Sprintf("%s:%s:%s:%d:%s", e.Run, e.Fence, s, e.Version, e.Call)),
		Owner:   &Ownership{Run: e.Run, Fence: w.claim.fence},
		Entries: []Entry{*e},
	}
	var err error
	for wait := 10 * time.Millisecond; ; wait *= 4 {
		err = w.claim.store.Commit(ctx, c)
		if err == nil {
			e.Version++
			return nil
		}
		if errors.Is(err, approvals.ErrConflict) {
			return errClaimLost
		}
		if wait > time.Second || !pause(ctx, wait) {
			return fmt.Errorf("journal %s of %s: %w", e.Call, e.Run, err)
		}
	}
}

// pause waits, and reports whether it waited to the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
