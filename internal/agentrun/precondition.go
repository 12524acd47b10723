package agentrun

import (
	"context"
	"errors"
	"log/slog"

	"github.com/countersign/countersign/internal/approvals"
)

// What the model and people read about a call whose precondition keeps failing.
const (
	staleMessage = "The call was not run: what it would change is different from what people saw when they approved it."
	staleWords   = "%s was not run. What it would change was different each time people had approved it, %d times in a row. " +
		"This run stops here. Please ask again when nothing else changes it."
)

// expects gives the plan what people saw when they approved it. If the same call
// is asked about once more, its tool still has the same reason.
func (p *plan) expects(b approvals.BatchID, asked approvals.Approval) {
	seen := asked.Preview
	p.again, p.reason = seen.Again, asked.GateReason
	if seen.Status != approvals.PreviewMade {
		return
	}
	p.precondition = seen.Precondition
	p.before = approvals.Before{Batch: b, Facts: seen.Facts, Content: seen.Content, CheckedAt: seen.CheckedAt}
}

// precondition says whether what the call would change is still what people saw
// when they approved it, as far as that is said before the call begins. A tool
// that cannot say it any more says no. An error means that the worker is to stop.
func (x *executor) precondition(ctx context.Context, run Run, p *plan) (holds bool, err error) {
	if p.precondition == nil {
		return true, nil
	}
	by := p.tool.Spec().Preview
	if by == nil {
		return false, nil
	}
	if by.Checks {
		return true, nil // when it executes
	}
	c := p.toolCall(run)
	c.Precondition = nil
	got, err := by.compute(ctx, c)
	if cause := context.Cause(ctx); cause != nil {
		return false, cause
	}
	if err != nil {
		x.session.log(ctx, slog.LevelWarn, "preview failed", slog.String("call", string(p.call.ID)), slog.String("err", class(err)))
		return false, nil
	}
	return string(got.Precondition) == string(p.precondition), nil
}

// failedPrecondition reports whether the tool says that it did nothing, because
// of the precondition that it was given.
func (p *plan) failedPrecondition(err error) bool {
	_, failed := errors.AsType[*PreconditionFailed](err)
	return failed && p.precondition != nil
}

// refuse stores that the call was not executed, though people approved it: it
// goes from claimed to finished and was never started.
func (x *executor) refuse(ctx context.Context, e *Entry, p *plan) error {
	e.Finish = Finish{Aside: AsidePrecondition}
	if p.begun { // what the journal says of its first execution stays
		p.finished(e.Finish)
		return nil
	}
	x.session.log(ctx, slog.LevelInfo, "call not run", slog.String("call", string(e.Call)), slog.String("tool", e.Tool), slog.String("by", "precondition"))
	if err := x.record(ctx, e, EntryFinished); err != nil {
		return err
	}
	p.finished(e.Finish)
	return nil
}
