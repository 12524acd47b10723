package agentrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// The provider runs the hosted calls of a step, in one request to the model: it
// tells which calls are approved, and the response has what came of them, and what the
// model says next.
type provider struct {
	session  *session
	executor *executor
	doubts   *doubts
}

// run makes the provider run the hosted calls that may run, and gives each plan its
// outcome. They wait if another call of the step waits, because the model cannot be asked
// before all others have a result. It returns what the model said then, without the calls
// that were approved; nil if nothing was asked, or nothing came back.
func (v *provider) run(ctx context.Context, run Run, plans []*plan, prompt string) (*Response, error) {
	var hosted []*plan
	waits := false
	for _, p := range plans {
		if p.request != "" && p.execute && !p.ran {
			still, err := v.executor.still(ctx, run, p)
			if err != nil {
				return nil, err
			}
			if still {
				hosted = append(hosted, p)
				continue
			}
		}
		waits = waits || p.aside != AsideNone || p.stale
	}
	if len(hosted) == 0 {
		return nil, nil
	}
	if waits {
		return nil, v.hold(ctx, hosted)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	entries, err := v.start(ctx, run, hosted)
	if err != nil {
		return nil, err
	}
	approved := make([]approvals.ToolCallID, len(hosted))
	for i, p := range hosted {
		approved[i] = p.call.ID
	}
	s := v.session
	history := append(slices.Clip(s.history), s.request(said(parts(plans, s.now), prompt, s.now)...))
	// Nobody watches: if a call is in doubt, nothing of the response is used.
	response, failure := s.ask(ctx, history, approved, nil)
	if failure != nil {
		err = v.failed(ctx, hosted, entries, &response, failure)
	} else {
		err = v.finished(ctx, hosted, entries, &response)
	}
	switch {
	case err != nil:
		return nil, s.stillUnapproved(ctx, response, err)
	case failure != nil && len(providerCalls(response)) == 0:
		return nil, nil
	}
	return &response, nil
}

// finished stores what the response says of the calls, and takes it out of it.
func (v *provider) finished(ctx context.Context, hosted []*plan, entries []*Entry, response *Response) error {
	var failed error
	for i, p := range hosted { // what is left of the response nobody approved
		finish, outcome := v.finishOf(response, p)
		if failed == nil {
			failed = v.executor.end(ctx, p, entries[i], finish, true, outcome)
		}
	}
	return failed
}

// start stores that the calls begin: all of them, or none.
func (v *provider) start(ctx context.Context, run Run, hosted []*plan) ([]*Entry, error) {
	var entries []*Entry
	for _, p := range hosted {
		e, err := v.executor.start(ctx, run, p)
		if err == nil && e == nil {
			err = fmt.Errorf("%w: hosted call %q has a precondition", approvals.ErrInvalid, string(p.call.ID)) // unreachable: it has no preview
		}
		if err != nil {
			return nil, errors.Join(err, v.undo(ctx, hosted, entries))
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// undo stores that the calls did not begin after all. One that may have taken effect
// before stays in doubt.
func (v *provider) undo(ctx context.Context, hosted []*plan, entries []*Entry) error {
	for i, e := range entries {
		if hosted[i].begun {
			continue
		}
		if err := v.executor.undo(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// hold keeps the calls from running in this step. Those that the policy permits are
// ruled on again with the answers of the batch. An approval is for this step, so people
// are asked once more where they gave one.
func (v *provider) hold(ctx context.Context, hosted []*plan) error {
	for _, p := range hosted {
		if !p.approved {
			p.execute, p.held = false, true
			continue
		}
		if err := v.doubts.askAgain(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// failed deals with a request that was not answered. Unless it certainly did nothing,
// its calls may have run. It leaves in the response what nobody approved.
func (v *provider) failed(ctx context.Context, hosted []*plan, entries []*Entry, response *Response, err error) error {
	for _, p := range hosted {
		v.take(response, p)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if known, ok := errors.AsType[*ModelError](err); ok && known.NotRun {
		if err := v.undo(ctx, hosted, entries); err != nil {
			return err
		}
		return &unasked{err}
	}
	for i, p := range hosted {
		finish := v.unsure(p, modelWords(err))
		if err := v.executor.end(ctx, p, entries[i], finish, true, "unsure"); err != nil {
			return err
		}
	}
	return nil
}

// unasked is a request that certainly did nothing.
type unasked struct{ err error }

func (e *unasked) Error() string { return "model failed: " + modelClass(e.err) }
func (e *unasked) Unwrap() error { return e.err }

// unsure is the end of a call that may have run.
func (v *provider) unsure(p *plan, why string) Finish {
	now := v.session.now()
	if v.session.agent.effect(p.tool.Spec()) == EffectPure { // nothing is in doubt: it changes nothing
		return Finish{Part: returned(p.call, OutcomeFailed, why, now)}
	}
	return Finish{
		Part:   returned(p.call, OutcomeFailed, strings.TrimSpace(why+" "+unknownMessage), now),
		Unsure: true, Reason: approvals.QuoteOf(why),
	}
}

// Why it is not known what became of a call.
const (
	notFinished = "The model provider did not finish this call, or cannot say how it ended."
	notSaid     = "The model provider did not say what became of this call."
)

// finishOf takes what became of a call out of the response. What ran as something else
// than was approved stays in it.
func (v *provider) finishOf(response *Response, p *plan) (f Finish, outcome string) {
	c, ok := v.take(response, p)
	if !ok {
		return v.unsure(p, notSaid), "unsure"
	}
	if c.Unsure {
		return v.unsure(p, notFinished), "unsure"
	}
	part := returned(p.call, OutcomeSuccess, cut(c.Output), v.session.now())
	if c.Failed {
		part.Outcome = OutcomeFailed
	}
	part.ProviderCall = string(c.ID)
	return Finish{Part: part}, string(part.Outcome)
}

// take takes the call that the provider made for the plan out of the response.
func (v *provider) take(response *Response, p *plan) (ProviderCall, bool) {
	at := slices.IndexFunc(response.Parts, func(part ResponsePart) bool {
		c, ok := part.(ProviderCall)
		return ok && c.ApprovalRequest == p.request && c.Name == p.call.Name && (sameJSON(c.Args, p.call.Args) || unargued(c))
	})
	if at < 0 {
		return ProviderCall{}, false
	}
	c := response.Parts[at].(ProviderCall)
	response.Parts = slices.Delete(slices.Clone(response.Parts), at, at+1)
	return c, true
}

// unargued reports whether the provider began the call, and broke off before it had said
// with which arguments.
func unargued(c ProviderCall) bool {
	return c.Unsure && !json.Valid(c.Args)
}

// sameJSON reports whether two arguments say the same. The provider may format
// them differently.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	for raw, into := range map[*json.RawMessage]*any{&a: &x, &b: &y} {
		if len(*raw) == 0 {
			*raw = json.RawMessage("{}")
		}
		if approvals.CheckArgs(*raw) != nil { // of two members with one name nobody knows which counts
			return false
		}
		dec := json.NewDecoder(bytes.NewReader(*raw))
		dec.UseNumber()
		if dec.Decode(into) != nil {
			return false
		}
	}
	return reflect.DeepEqual(x, y)
}

// asksTwice reports whether the provider asks for approval under an id under which it has
// asked before. An approval names the id only, and could be taken for one of the other call.
func asksTwice(history []Message, r Response) bool {
	before := map[string]bool{}
	for _, m := range history {
		if earlier, ok := m.(Response); ok {
			for _, request := range approvalRequests(earlier) {
				before[request] = true
			}
		}
	}
	return slices.ContainsFunc(approvalRequests(r), func(request string) bool { return before[request] })
}

func approvalRequests(r Response) []string {
	var ids []string
	for _, p := range r.Parts {
		if c, ok := p.(CallPart); ok && c.ApprovalRequest != "" {
			ids = append(ids, c.ApprovalRequest)
		}
	}
	return ids
}

// providerCalls are the calls that the provider made of which nothing is known here.
func providerCalls(r Response) []ProviderCall {
	var calls []ProviderCall
	for _, p := range r.Parts {
		if c, ok := p.(ProviderCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}
