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

// The rulings decide which calls run, which are refused and which wait for
// people. They ask the tool and the policy, and fail closed. What they decide is
// in the plan of the call, and nowhere else.
type rulings struct {
	tally

	session    *session
	rollingOut func(Run) bool // whether another runner may have a tool that is not here
}

// consider decides what becomes of a call that nobody has approved.
func (r *rulings) consider(ctx context.Context, run Run, p *plan) {
	if p.tool == nil {
		p.answer(again(p.call, r.session.tools.unknown(p.call.Name), r.session.now()))
		return
	}
	if words := malformed(p.call.Args); words != "" {
		p.answer(again(p.call, words, r.session.now()))
		return
	}
	spec := p.tool.Spec()
	if spec.Kind == KindExternal {
		p.aside = AsideExternal
		r.ruleOn(ctx, run, p, approvals.GateNone)
		return
	}
	c := p.toolCall(run)
	raise, done := r.validate(ctx, p, c)
	if done {
		return
	}
	gate, metadata := r.gate(ctx, p, c, raise)
	if asked, ok := errors.AsType[*ApprovalRequired](raise); ok {
		p.reason = approvals.QuoteOf(p.secrets().scrub(asked.Reason))
	}
	var deferred *CallDeferred
	switch {
	case gate == approvals.GateNone && errors.As(raise, &deferred):
		p.aside, p.raised, p.metadata = AsideExternal, true, r.session.metadata(ctx, p.call, deferred.Metadata)
	case gate != approvals.GateNone:
		p.aside, p.metadata = AsideApproval, metadata
		p.raised = gate == approvals.GateRaised || gate == approvals.GatePredicate
	default:
		p.execute = true
	}
	r.ruleOn(ctx, run, p, gate)
}

// redefinedMessage is why people are asked again about a call whose tool is defined in
// another way by now.
const redefinedMessage = "The definition of this tool has changed since the call was approved."

// considerSigned decides what becomes of a call that people approved. The
// arguments are validated again, and the policy may still refuse. Any other
// ruling lets the approval stand. Without one the call is not executed, and
// the step is taken again later; so it is if a rule that might refuse cannot
// judge the call, unless people approved knowing that. People are asked again if
// the tool is defined in another way than when they were asked, or the caller is
// told to make the same call again.
func (r *rulings) considerSigned(ctx context.Context, run Run, p *plan) error {
	if p.tool == nil && r.rollingOut(run) {
		return &notHereError{fmt.Sprintf("the tool of call %q", string(p.call.ID))} // its name may be the model's own words
	}
	if p.tool == nil {
		p.answer(again(p.call, r.session.tools.unknown(p.call.Name), r.session.now()))
		r.notRun(ctx, p, "tool")
		return nil
	}
	if words := malformed(p.call.Args); words != "" {
		p.answer(again(p.call, words, r.session.now()))
		r.notRun(ctx, p, "tool")
		return nil
	}
	if stopped, err := r.stopped(ctx, run, p); stopped || err != nil {
		return err
	}
	if p.tool.Spec().Kind == KindExternal {
		p.aside = AsideExternal // it was approved; now it is to run elsewhere
		return r.enterSigned(ctx, run, p)
	}
	raise, done := r.validate(ctx, p, p.toolCall(run))
	if done {
		r.notRun(ctx, p, "tool")
		return nil
	}
	if was := p.asked.Definition; was != "" && was != p.tool.Spec().Definition {
		if run.CallsOnly {
			p.answer(returned(p.call, OutcomeDenied, redefinedMessage+" "+sameCallMessage, r.session.now()))
			r.notRun(ctx, p, "tool")
			return nil
		}
		raise = &ApprovalRequired{Reason: redefinedMessage}
	}
	var asked *ApprovalRequired
	var deferred *CallDeferred
	switch {
	case errors.As(raise, &asked):
		p.aside, p.raised, p.metadata = AsideApproval, true, r.session.metadata(ctx, p.call, asked.Metadata)
		p.reason = approvals.QuoteOf(p.secrets().scrub(asked.Reason))
		r.ruleOn(ctx, run, p, approvals.GateRaised)
	case errors.As(raise, &deferred):
		p.aside, p.raised, p.metadata = AsideExternal, true, r.session.metadata(ctx, p.call, deferred.Metadata)
		return r.enterSigned(ctx, run, p)
	default:
		p.execute = true
		return r.enterSigned(ctx, run, p)
	}
	return nil
}

// stopped asks the policy about a call that people approved. It reports whether
// a rule refuses the call, which then has its answer.
func (r *rulings) stopped(ctx context.Context, run Run, p *plan) (bool, error) {
	p.ruledAt = r.session.now()
	ruling, err := askPolicy(ctx, r.policy, r.propose(run, p.proposal(run, p.ruledAt)))
	if err != nil {
		return false, fmt.Errorf("%w on call %q: %s", errNoRuling, string(p.call.ID), class(err))
	}
	switch ruling := ruling.(type) {
	case approvals.Permit:
		return false, nil
	case approvals.Ask:
		if ruling.Unjudged && !p.unjudged {
			return false, fmt.Errorf("%w on call %q: a rule could not judge it", errNoRuling, string(p.call.ID))
		}
		return false, nil
	case approvals.Refuse:
		p.refuse(ruling, r.session.now())
		r.notRun(ctx, p, "policy")
		return true, nil
	}
	return false, fmt.Errorf("%w on call %q: its ruling is a %T", errNoRuling, string(p.call.ID), ruling)
}

// enterSigned enters an approved call that is about to go ahead, and asks the
// policy once more.
func (r *rulings) enterSigned(ctx context.Context, run Run, p *plan) error {
	entered, err := r.enter(ctx, run, p.call, r.session.now(), time.Time{})
	if err != nil {
		return fmt.Errorf("%w on call %q: %s", errNoRuling, string(p.call.ID), class(err))
	}
	if !entered {
		return nil
	}
	stopped, err := r.stopped(ctx, run, p)
	if stopped {
		r.leave(ctx, run, p.call, r.session.claim.log)
	}
	return err
}

// rulingHolds is how long a ruling is good for a call that waits for others of its step.
const rulingHolds = time.Second

// still reports whether a call that may run still may when its turn comes. If it waited
// for long, the policy is asked once more, as before: it may stop an approved call, and
// refuse or ask about any other.
func (r *rulings) still(ctx context.Context, run Run, p *plan) (bool, error) {
	if r.session.now().Sub(p.ruledAt) < rulingHolds {
		return true, nil
	}
	if p.approved {
		if _, err := r.stopped(ctx, run, p); err != nil {
			return false, err
		}
		p.admitDoubt(r.session.now())
	} else if r.ruleOn(ctx, run, p, p.gate); run.CallsOnly && p.aside != AsideNone {
		p.answer(returned(p.call, OutcomeDenied, nowAsksMessage, r.session.now()))
	}
	if !p.execute && !p.begun && r.counts() {
		r.leave(ctx, run, p.call, r.session.claim.log)
	}
	return p.execute, nil
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
func (r *rulings) validate(ctx context.Context, p *plan, c Call) (raise error, done bool) {
	tool := p.tool
	_, err, _ := guard(ctx, timeout(tool), func(ctx context.Context) (struct{}, error) { return struct{}{}, tool.Validate(ctx, c) })
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
		p.answer(again(p.call, retry.Message, r.session.now()))
	case errors.As(err, &failed):
		p.answer(again(p.call, failed.Message, r.session.now()))
	case errors.Is(err, errPanicked), errors.Is(err, errHung):
		r.session.log(ctx, slog.LevelError, "validation broke", slog.String("call", string(p.call.ID)), slog.String("err", class(err)))
		p.answer(returned(p.call, OutcomeFailed, "The arguments could not be checked, so the call was not run.", r.session.now()))
	default:
		p.answer(again(p.call, err.Error(), r.session.now()))
	}
	return nil, true
}

// gate says why the tool asks for approval. A declaration comes before what the
// tool raises, and a predicate that cannot say is a yes.
func (r *rulings) gate(ctx context.Context, p *plan, c Call, raise error) (approvals.Gate, json.RawMessage) {
	spec := p.tool.Spec()
	if spec.Kind != KindFunction && spec.Kind != KindHosted && spec.Kind != "" {
		return approvals.GateDeclared, nil
	}
	if asked, ok := errors.AsType[*ApprovalRequired](raise); ok {
		return approvals.GateRaised, r.session.metadata(ctx, p.call, asked.Metadata)
	}
	if spec.NeedsApproval == nil {
		return approvals.GateNone, nil
	}
	needs, err, _ := guard(ctx, timeout(p.tool), func(ctx context.Context) (bool, error) {
		return spec.NeedsApproval(ctx, c)
	})
	if err != nil {
		r.session.log(ctx, slog.LevelError, "predicate broke", slog.String("call", string(p.call.ID)), slog.String("err", class(err)))
	}
	if needs || err != nil {
		return approvals.GatePredicate, nil
	}
	return approvals.GateNone, nil
}

// ruleOn lets the policy have its word on a plan: it may refuse it, or ask for
// approval, even for a call that runs elsewhere. It never lifts a gate.
func (r *rulings) ruleOn(ctx context.Context, run Run, p *plan, gate approvals.Gate) {
	p.gate, p.ruledAt = gate, r.session.now()
	judge := func() approvals.Ruling { return r.judge(ctx, run, p) }
	switch ruling := r.rule(ctx, run, p.call, r.session.now, r.session.claim.log, judge).(type) {
	case approvals.Permit:
	case approvals.Refuse:
		p.refuse(ruling, r.session.now())
		r.notRun(ctx, p, "policy")
	case approvals.Ask:
		p.execute, p.aside, p.ask = false, AsideApproval, ruling
	}
}

// Why people are asked when no rule says so.
const (
	whyNoRuling = "The policy could not judge this call, so it needs every approval that the policy can ask for."
	whyPermit   = "The tool asks for approval and the policy names no approvers for it, so it needs every approval that the policy can ask for."
)

// judge asks the policy and fails closed: only a Permit for a call whose tool
// asks for no approval stays one.
func (r *rulings) judge(ctx context.Context, run Run, p *plan) approvals.Ruling {
	ruling, err := ruled(ctx, r.policy, r.propose(run, p.proposal(run, r.session.now())))
	if err != nil {
		r.session.log(ctx, slog.LevelError, "policy failed", slog.String("call", string(p.call.ID)), slog.String("err", class(err)))
	}
	return ruling
}

// ruled asks the policy and fails closed. The error is for the log: the ruling
// is to be followed in any case.
func ruled(ctx context.Context, policy approvals.Policy, p approvals.Proposal) (approvals.Ruling, error) {
	ruling, err := askPolicy(ctx, policy, p)
	why, unjudged := whyNoRuling, true
	switch ruling := ruling.(type) {
	case approvals.Refuse, approvals.Ask:
		if err == nil {
			return ruling, nil
		}
	case approvals.Permit:
		if err == nil && p.Gate == approvals.GateNone {
			return ruling, nil
		}
		if err == nil {
			why, unjudged = whyPermit, false
		}
	}
	return approvals.Ask{Requirement: policy.Strictest(p.At), Why: why, Unjudged: unjudged}, err
}

// askPolicy asks the policy. A policy that panics has failed.
func askPolicy(ctx context.Context, policy approvals.Policy, p approvals.Proposal) (_ approvals.Ruling, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("policy: %w", panicked(v))
		}
	}()
	return policy.Rule(ctx, p)
}

// notRun logs that a call which the model made, and perhaps people approved, is
// not executed, and whether the policy or its tool stopped it.
func (r *rulings) notRun(ctx context.Context, p *plan, by string) {
	r.session.logCall(ctx, slog.LevelInfo, "call not run", p, slog.String("by", by))
}
