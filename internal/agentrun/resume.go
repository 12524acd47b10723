package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// Match checks that the answers are exactly for the calls that are pending in a
// history: none is missing, none is for anything else, each is of the kind that
// the batch asked for, and the calls are those that people saw. Anything else
// is refused as a whole, so that nothing is executed.
func Match(pending []approvals.ToolCall, b approvals.Batch, r approvals.DeferredToolResults) error {
	proposed := map[approvals.ToolCallID]approvals.Digest{}
	people := map[approvals.ToolCallID]bool{}
	for _, a := range b.Approvals {
		proposed[a.Call.ID], people[a.Call.ID] = a.Proposed, true
	}
	for _, c := range b.Calls {
		if people[c.Call.ID] {
			return fmt.Errorf("%w: call %q is in the batch twice", ErrWrongCategory, string(c.Call.ID))
		}
		proposed[c.Call.ID] = c.Call.Digest
	}
	for id := range r.Approvals {
		if _, both := r.Calls[id]; both {
			return fmt.Errorf("%w: call %q is answered twice", ErrWrongCategory, string(id))
		}
	}
	if len(r.Approvals)+len(r.Calls) != len(pending) || len(proposed) != len(pending) {
		return fmt.Errorf("%w: %d answers, %d calls in the batch, %d pending",
			ErrResultsMismatch, len(r.Approvals)+len(r.Calls), len(proposed), len(pending))
	}
	for _, c := range pending {
		approval, decided := r.Approvals[c.ID]
		result, ran := r.Calls[c.ID]
		digest, asked := proposed[c.ID]
		switch {
		case !asked || !decided && !ran:
			return fmt.Errorf("%w: no answer for call %q", ErrResultsMismatch, string(c.ID))
		case decided != people[c.ID]:
			return fmt.Errorf("%w: call %q", ErrWrongCategory, string(c.ID))
		case decided && approval == nil || ran && result == nil:
			return fmt.Errorf("%w: the answer for call %q is empty", ErrResultsMismatch, string(c.ID))
		case digest != approvals.DigestOf(b.ID, c):
			return fmt.Errorf("%w: call %q", ErrCallChanged, string(c.ID))
		}
	}
	return nil
}

// takeUpAnswers is the first step of a resume run: what people and other
// systems said becomes results.
func (w *worker) takeUpAnswers(ctx context.Context, run Run) (ended bool, err error) {
	b, err := w.session.claim.store.Batch(ctx, run.Batch)
	if err != nil {
		return false, fmt.Errorf("load batch %s: %w", run.Batch, err)
	}
	w.session.authors = authorsOf(run, b)
	proposed, err := Pending(w.session.history)
	if err != nil {
		return true, w.session.refuse(ctx, err)
	}
	pending, err := w.current(ctx, run, proposed)
	if err != nil {
		return false, err
	}
	results, err := w.results(ctx, b)
	if err == nil {
		err = Match(pending, b, results)
	}
	if err != nil && !refusal(err) {
		return false, err
	}
	if err != nil {
		return true, w.session.refuse(ctx, err)
	}
	if tool, ok := w.session.journal.inDoubt(pending); ok {
		return true, w.session.park(ctx, tool)
	}
	plans := make([]*plan, len(pending))
	for i, c := range pending {
		p := &plan{
			call: c, tool: w.session.tools[c.Name], proposed: proposed[i].Args, writeOnly: writeOnly(b, c.ID),
			soFar: w.session.count(standIns(plans[:i])...),
		}
		if answer, ok := results.Approvals[c.ID]; ok {
			p.approved, p.signed = true, results.Metadata[c.ID]
			p.gate, p.unjudged = askedWhy(b, c.ID)
			p.editedBy = editorsOf(b, c.ID)
			if err := w.applyApproval(ctx, run, p, answer); err != nil {
				return false, err
			}
		} else {
			w.applyResult(p, results.Calls[c.ID])
		}
		plans[i] = p
	}
	if err := w.show(ctx, plans); err != nil {
		return false, err
	}
	return w.carryOut(ctx, run, plans, nil, false, run.Prompt)
}

// askedWhy is why the tool of a signed call asked, and whether a rule that could
// not judge it is why people were asked.
func askedWhy(b approvals.Batch, id approvals.ToolCallID) (gate approvals.Gate, unjudged bool) {
	for _, a := range b.Approvals {
		if a.Call.ID == id {
			return a.Gate, a.Unjudged
		}
	}
	return approvals.GateNone, false
}

// current returns the calls with the arguments that the batch was opened with.
// They are those in the history, unless the call was signed before and its tool
// then asked for something more: such a call goes on with the arguments that
// were signed last, which a person may have changed at any earlier stage.
func (w *worker) current(ctx context.Context, run Run, proposed []approvals.ToolCall) ([]approvals.ToolCall, error) {
	parent, err := w.session.claim.store.Run(ctx, run.Parent)
	if err != nil {
		return nil, fmt.Errorf("load run %s: %w", run.Parent, err)
	}
	calls := slices.Clone(proposed)
	if parent.Batch == "" || parent.Steps > 0 {
		return calls, nil
	}
	before, err := w.session.claim.store.Batch(ctx, parent.Batch)
	if err != nil {
		return nil, fmt.Errorf("load batch %s: %w", parent.Batch, err)
	}
	for i, c := range calls {
		for _, a := range before.Approvals {
			if a.Call.ID != c.ID {
				continue
			}
			if calls[i].Args, err = w.session.claim.store.Args(ctx, before.ID, a.Call.Digest); err != nil {
				return nil, fmt.Errorf("load arguments of %q: %w", string(c.ID), err)
			}
		}
	}
	return calls, nil
}

// results loads what was signed and returns the answers of the batch.
func (w *worker) results(ctx context.Context, b approvals.Batch) (approvals.DeferredToolResults, error) {
	args := map[approvals.ToolCallID]json.RawMessage{}
	for _, a := range b.Approvals {
		if a.Status != approvals.Approved {
			continue
		}
		raw, err := w.session.claim.store.Args(ctx, b.ID, a.Call.Digest)
		if err != nil {
			return approvals.DeferredToolResults{}, fmt.Errorf("load arguments of %q: %w", string(a.Call.ID), err)
		}
		args[a.Call.ID] = raw
	}
	return b.Results(args)
}

// refusal reports whether err says that these answers can never be applied, as
// opposed to a store that did not answer.
func refusal(err error) bool {
	for _, target := range []error{
		ErrNoModelResponse, ErrNoPendingCalls, ErrDuplicateIDs, ErrResultsMismatch, ErrWrongCategory, ErrCallChanged,
		approvals.ErrStale, approvals.ErrInvalid, approvals.ErrOpen, approvals.ErrNotFound,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// applyApproval plans a call that people decided about. An error means that it
// cannot be said now what becomes of the call.
func (w *worker) applyApproval(ctx context.Context, run Run, p *plan, answer approvals.ApprovalResult) error {
	approved, ok := answer.(approvals.ToolApproved)
	if !ok {
		message := approvals.DeniedMessage
		if denied, ok := answer.(approvals.ToolDenied); ok {
			message = denied.Message
		}
		p.answer(returned(p.call, OutcomeDenied, message, w.session.now()))
		return nil
	}
	if approved.OverrideArgs != nil {
		p.call.Args = approved.OverrideArgs
	}
	if finish, ok := w.session.journal.finish(p.call.ID); ok {
		p.finished(finish)
		return nil
	}
	return w.rulings.considerSigned(ctx, run, p)
}

// applyResult plans a call that ran elsewhere.
func (w *worker) applyResult(p *plan, result approvals.CallResult) {
	p.elsewhere = true
	switch r := result.(type) {
	case approvals.ToolReturn:
		part := returned(p.call, OutcomeSuccess, "", w.session.now())
		part.Content, part.Metadata = value(r.ReturnValue), object(r.Metadata)
		p.answer(part)
		if content, err := text(r.Content); err == nil {
			p.prompt = cut(content)
		}
	case approvals.ToolFailed:
		p.answer(returned(p.call, OutcomeFailed, cut(r.Message), w.session.now()))
	case approvals.ModelRetry:
		p.answer(again(p.call, cut(r.Message), w.session.now()))
	case approvals.ToolDenied:
		p.elsewhere = false
		p.answer(returned(p.call, OutcomeDenied, r.Message, w.session.now()))
	default:
		p.answer(returned(p.call, OutcomeFailed, failedMessage, w.session.now())) // unreachable: Match refuses it
	}
}
