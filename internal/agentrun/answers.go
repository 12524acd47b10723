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

// The answers are what people and other systems said about the calls of a batch.
// They become the plans of the first step of a resume run.
type answers struct {
	session *session
	rulings *rulings
	doubts  *doubts
}

// plans makes a plan for each call that is pending, from what people and other
// systems said. ended says that the run is over instead, because the answers do
// not fit.
func (a *answers) plans(ctx context.Context, run Run) (plans []*plan, ended bool, err error) {
	b, err := a.session.claim.store.Batch(ctx, run.Batch)
	if err != nil {
		return nil, false, err
	}
	a.session.authors = authorsOf(run, b)
	proposed, err := Pending(a.session.history)
	if err != nil {
		return nil, true, a.session.refuse(ctx, err)
	}
	pending, err := a.current(ctx, run, proposed)
	if err != nil {
		return nil, false, err
	}
	results, err := resultsOf(ctx, a.session.claim.store, b)
	if err == nil {
		err = Match(a.asked(pending, b), b, results)
	}
	if err != nil && !refusal(err) {
		return nil, false, err
	}
	if err != nil {
		return nil, true, a.session.refuse(ctx, err)
	}
	plans = make([]*plan, len(pending))
	for i, c := range pending {
		p := a.session.plan(c)
		p.proposed, p.soFar = proposed[i].Args, a.session.count(standIns(plans[:i])...)
		if answer, ok := results.Approvals[c.ID]; ok {
			asked, _ := b.Approval(c.ID)
			p.approved, p.signed, p.writeOnly = true, results.Metadata[c.ID], asked.WriteOnly
			// If the tool asks again, the people who changed the arguments count as
			// editors of this call too.
			p.gate, p.unjudged, p.editedBy = asked.Gate, asked.Unjudged, asked.Editors()
			p.expects(b.ID, asked)
			p.decided(b, asked)
			if err := a.applyApproval(ctx, run, p, answer); err != nil {
				return nil, false, err
			}
		} else if result, ok := results.Calls[c.ID]; ok {
			a.applyResult(p, result)
		} else if err := a.takeUpHeld(ctx, run, p); err != nil {
			return nil, false, err
		}
		plans[i] = p
	}
	return plans, false, nil
}

// asked are the pending calls without those hosted ones that waited for the others,
// and about which nobody was asked.
func (a *answers) asked(pending []approvals.ToolCall, b approvals.Batch) []approvals.ToolCall {
	return slices.DeleteFunc(slices.Clone(pending), func(c approvals.ToolCall) bool {
		_, asked := b.Approval(c.ID)
		return !asked && a.session.plan(c).request != ""
	})
}

// takeUpHeld rules on a hosted call that waited for the others.
func (a *answers) takeUpHeld(ctx context.Context, run Run, p *plan) error {
	return a.doubts.takeUp(ctx, run, p, func() error {
		a.rulings.consider(ctx, run, p)
		return nil
	})
}

// current returns the calls with the arguments that the batch was opened with.
// They are those in the history, unless the call was approved before and its
// tool then asked for something more: such a call continues with the arguments
// that were approved last, which a person may have changed at any earlier
// stage.
func (a *answers) current(ctx context.Context, run Run, proposed []approvals.ToolCall) ([]approvals.ToolCall, error) {
	parent, err := a.session.claim.store.Run(ctx, run.Parent)
	if err != nil {
		return nil, err
	}
	calls := slices.Clone(proposed)
	if parent.Batch == "" || parent.Steps > 0 {
		return calls, nil
	}
	before, err := a.session.claim.store.Batch(ctx, parent.Batch)
	if err != nil {
		return nil, err
	}
	for i, c := range calls {
		if asked, ok := before.Approval(c.ID); ok {
			if calls[i].Args, err = a.session.claim.store.Args(ctx, before.ID, asked.Call.Digest); err != nil {
				return nil, fmt.Errorf("call %q: %w", string(c.ID), err)
			}
		}
	}
	return calls, nil
}

// resultsOf loads what was approved and returns the answers of the batch.
func resultsOf(ctx context.Context, store Store, b approvals.Batch) (approvals.DeferredToolResults, error) {
	args := map[approvals.ToolCallID]json.RawMessage{}
	for _, asked := range b.Approvals {
		if asked.Status != approvals.Approved {
			continue
		}
		raw, err := store.Args(ctx, b.ID, asked.Call.Digest)
		if err != nil {
			return approvals.DeferredToolResults{}, fmt.Errorf("call %q: %w", string(asked.Call.ID), err)
		}
		args[asked.Call.ID] = raw
	}
	return b.Results(args)
}

// approvedArgs are the arguments that [resultsOf] loads.
func approvedArgs(b approvals.Batch) []approvals.ArgsKey {
	var all []approvals.ArgsKey
	for _, a := range b.Approvals {
		if a.Status == approvals.Approved {
			all = append(all, approvals.ArgsKey{Batch: b.ID, Digest: a.Call.Digest})
		}
	}
	return all
}

// refusal reports whether err means that these answers can never be applied,
// and not that the store did not answer.
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

// applyApproval plans a call that people decided about. After an error the plan is not
// known yet.
func (a *answers) applyApproval(ctx context.Context, run Run, p *plan, answer approvals.ApprovalResult) error {
	outcome, message := OutcomeDenied, approvals.DeniedMessage
	if p.doubt != nil {
		outcome = OutcomeInterrupted // whether it was executed is not known
	}
	switch answer := answer.(type) {
	case approvals.ToolApproved:
		if answer.OverrideArgs != nil {
			p.call.Args = answer.OverrideArgs
		}
		return a.carryOn(ctx, run, p)
	case approvals.ToolHappened:
		outcome, message = OutcomeSuccess, answer.Message
	case approvals.ToolDenied:
		message = answer.Message
	}
	p.answer(returned(p.call, outcome, message, a.session.now()))
	return nil
}

// carryOn plans a call that is approved: it has run, it may have run, or it is to
// run now.
func (a *answers) carryOn(ctx context.Context, run Run, p *plan) error {
	if finish, ok := a.session.journal.finish(p.call.ID); ok {
		p.finished(finish)
		return nil
	}
	consider := func() error { return a.rulings.considerSigned(ctx, run, p) }
	if e, ok := a.session.journal.begun(p.call.ID); ok {
		return a.doubts.settle(ctx, run, p, e, consider)
	}
	if err := consider(); err != nil {
		return err
	}
	if p.doubt != nil && p.aside == AsideApproval {
		return a.doubts.ask(ctx, p)
	}
	p.admitDoubt(a.session.now())
	return nil
}

// applyResult plans a call that ran elsewhere.
func (a *answers) applyResult(p *plan, result approvals.CallResult) {
	p.elsewhere = true
	switch r := result.(type) {
	case approvals.ToolReturn:
		part := returned(p.call, OutcomeSuccess, "", a.session.now())
		part.Content, part.Metadata = value(r.ReturnValue), object(r.Metadata)
		p.answer(part)
		if content, err := text(r.Content); err == nil {
			p.prompt = cut(content)
		}
	case approvals.ToolFailed:
		p.answer(returned(p.call, OutcomeFailed, cut(r.Message), a.session.now()))
	case approvals.ModelRetry:
		p.answer(again(p.call, cut(r.Message), a.session.now()))
	case approvals.ToolDenied:
		p.elsewhere = false
		p.answer(returned(p.call, OutcomeDenied, r.Message, a.session.now()))
	default:
		p.answer(returned(p.call, OutcomeFailed, failedMessage, a.session.now())) // unreachable: Match refuses it
	}
}
