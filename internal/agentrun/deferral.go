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

// consider decides what becomes of a call that nobody has signed.
func (w *worker) consider(ctx context.Context, run Run, p *plan, retry int) {
	if p.tool == nil {
		p.answer(again(p.call, w.session.tools.unknown(p.call.Name), w.session.now()))
		return
	}
	if words := malformed(p.call.Args); words != "" {
		p.answer(again(p.call, words, w.session.now()))
		return
	}
	spec := p.tool.Spec()
	if spec.Kind == KindExternal {
		p.aside = AsideExternal
		w.ruleOn(ctx, run, p, approvals.GateNone)
		return
	}
	c := p.toolCall(run, retry)
	raise, done := w.validate(ctx, p, c)
	if done {
		return
	}
	gate, metadata := w.gate(ctx, p, c, raise)
	var deferred *CallDeferred
	switch {
	case gate == approvals.GateNone && errors.As(raise, &deferred):
		p.aside, p.raised, p.metadata = AsideExternal, true, w.session.metadata(ctx, p.call, deferred.Metadata)
	case gate != approvals.GateNone:
		p.aside, p.metadata = AsideApproval, metadata
		p.raised = gate == approvals.GateRaised || gate == approvals.GatePredicate
	default:
		p.execute = true
	}
	w.ruleOn(ctx, run, p, gate)
}

// malformed says, for the model, why nobody can be asked about such arguments.
func malformed(args json.RawMessage) (words string) {
	if err := approvals.CheckArgs(args); err != nil {
		return "The call was not run: " + err.Error()
	}
	return ""
}

// validate asks the tool about the arguments. It returns what the tool raised
// to set the call aside; done says that the call has its part.
func (w *worker) validate(ctx context.Context, p *plan, c Call) (raise error, done bool) {
	_, err, _ := guard(ctx, timeout(p.tool), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.tool.Validate(ctx, c)
	})
	var asked *ApprovalRequired
	var deferred *CallDeferred
	var retry *RetryError
	var failed *FailedError
	switch {
	case err == nil:
		return nil, false
	case errors.As(err, &asked), errors.As(err, &deferred):
		return err, false
	case errors.As(err, &retry):
		p.answer(again(p.call, retry.Message, w.session.now()))
	case errors.As(err, &failed):
		p.answer(again(p.call, failed.Message, w.session.now()))
	case errors.Is(err, errPanicked), errors.Is(err, errHung):
		w.session.log(ctx, slog.LevelError, "validation broke", slog.String("call", string(p.call.ID)), slog.String("err", class(err)))
		p.answer(returned(p.call, OutcomeFailed, "The arguments could not be checked, so the call was not run.", w.session.now()))
	default:
		p.answer(again(p.call, err.Error(), w.session.now()))
	}
	return nil, true
}

// gate says why the tool wants a signature. A declaration comes before what the
// tool raises, and a predicate that cannot say is a yes.
func (w *worker) gate(ctx context.Context, p *plan, c Call, raise error) (approvals.Gate, json.RawMessage) {
	spec := p.tool.Spec()
	if spec.Kind != KindFunction && spec.Kind != "" {
		return approvals.GateDeclared, nil
	}
	if asked, ok := errors.AsType[*ApprovalRequired](raise); ok {
		return approvals.GateRaised, w.session.metadata(ctx, p.call, asked.Metadata)
	}
	if spec.NeedsApproval == nil {
		return approvals.GateNone, nil
	}
	needs, err, _ := guard(ctx, timeout(p.tool), func(ctx context.Context) (bool, error) {
		return spec.NeedsApproval(ctx, c)
	})
	if err != nil {
		w.session.log(ctx, slog.LevelError, "predicate broke", slog.String("call", string(p.call.ID)), slog.String("err", class(err)))
	}
	if needs || err != nil {
		return approvals.GatePredicate, nil
	}
	return approvals.GateNone, nil
}

// ruleOn lets the policy have its word on a plan: it may refuse it, or ask for
// a signature, even for a call that runs elsewhere. It never lifts a gate.
func (w *worker) ruleOn(ctx context.Context, run Run, p *plan, gate approvals.Gate) {
	p.gate = gate
	switch ruling := w.rule(ctx, run, p).(type) {
	case approvals.Permit:
	case approvals.Refuse:
		p.answer(refused(p.call, ruling, w.session.now()))
		w.notRun(ctx, p, "policy")
	case approvals.Ask:
		p.execute, p.aside, p.ask = false, AsideApproval, ruling
	}
}

// notRun logs that a call which the model made, and perhaps people signed, is
// not executed, and whether the policy or its tool stopped it.
func (w *worker) notRun(ctx context.Context, p *plan, by string) {
	attrs := []slog.Attr{slog.String("call", string(p.call.ID)), slog.String("by", by)}
	if p.tool != nil { // the name of a tool that is not there is the model's own words
		attrs = append(attrs, slog.String("tool", p.call.Name))
	}
	w.session.log(ctx, slog.LevelInfo, "call not run", attrs...)
}

// Why people are asked when no rule says so.
const (
	whyNoRuling = "The policy could not judge this call, so it asks for the strictest signature."
	whyPermit   = "The tool asks for a signature and the policy names nobody for it, so it asks for the strictest one."
)

// rule asks the policy and fails closed: only a Permit for a call whose tool
// asks for no signature stays one.
func (w *worker) rule(ctx context.Context, run Run, p *plan) approvals.Ruling {
	at := w.session.now()
	ruling, err := w.askPolicy(ctx, p.proposal(run, at))
	why, unjudged := whyNoRuling, true
	switch ruling := ruling.(type) {
	case approvals.Refuse, approvals.Ask:
		if err == nil {
			return ruling
		}
	case approvals.Permit:
		if err == nil && p.gate == approvals.GateNone {
			return ruling
		}
		if err == nil {
			why, unjudged = whyPermit, false
		}
	}
	if err != nil {
		w.session.log(ctx, slog.LevelError, "policy failed", slog.String("call", string(p.call.ID)), slog.String("err", class(err)))
	}
	return approvals.Ask{Requirement: w.r.c.Policy.Strictest(at), Why: why, Unjudged: unjudged}
}

func (w *worker) askPolicy(ctx context.Context, p approvals.Proposal) (_ approvals.Ruling, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("policy: %w", panicked(v))
		}
	}()
	return w.r.c.Policy.Rule(ctx, p)
}

// deferRun ends the run with what it waits for: the run, its last messages and
// the batch are there at once, or none of them is.
func (s *session) deferRun(ctx context.Context, run Run, plans []*plan, parts []RequestPart, change func(*Run)) error {
	open := OpenBatch{Args: map[approvals.Digest]json.RawMessage{}}
	id, err := batchID(run.ID)
	if err != nil {
		return err
	}
	var ask, elsewhere []approvals.Deferral
	for _, raised := range []bool{true, false} {
		for _, p := range plans {
			if p.aside == AsideNone || p.raised != raised {
				continue
			}
			d := approvals.Deferral{Call: p.call, Gate: p.gate, Metadata: p.metadata, EditedBy: p.editedBy, Ask: p.ask}
			if p.tool != nil {
				d.WriteOnly = p.tool.Spec().WriteOnly
			}
			open.Args[p.call.Ref(id).Digest] = p.call.Args
			if p.aside == AsideApproval {
				ask = append(ask, d)
			} else {
				elsewhere = append(elsewhere, d)
			}
		}
	}
	participants, err := s.participants(ctx)
	if err != nil {
		return err
	}
	open.Batch, open.Events, err = approvals.Open(approvals.Batch{
		ID: id, Run: run.ID, Thread: string(run.Thread), Agent: run.Agent, Channel: run.Origin.Channel,
		Requester: run.Requester, Participants: participants, SoFar: s.count(parts...), OpenedAt: s.now(),
	}, ask, elsewhere)
	if err != nil {
		s.log(ctx, slog.LevelError, "batch refused", slog.Any("err", err))
		return s.fail(ctx, change, "The calls could not be put before anybody, so they were not run.", parts...)
	}
	var messages []Message
	if len(parts) > 0 {
		messages = append(messages, s.request(parts...))
	}
	return s.commit(ctx, messages, func(r *Run, _ *Thread, out *Commit) error {
		change(r)
		r.Status, r.Deferred, r.EndedAt = RunDeferred, id, s.now()
		r.Owner, r.LeaseEnds, r.Activity = "", time.Time{}, nil
		out.Opens = &open
		return nil
	})
}
