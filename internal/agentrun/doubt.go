package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// The doubts decide what becomes of calls that were begun and whose end is not
// known, because the worker died or the tool did not say. The effect of the tool
// says how: such a call is run again, looked up, or people are asked about it.
type doubts struct {
	session *session
	rulings *rulings
}

// ended settles the calls of this step whose tool did not say whether they took
// effect, and reports whether some of them are to be executed once more.
func (d *doubts) ended(ctx context.Context, run Run, plans []*plan) (more bool, err error) {
	for _, p := range plans {
		if !p.unsure || p.entry == nil {
			continue
		}
		p.ran, p.unsure, p.part, p.prompt = false, false, nil, ""
		if err := d.settle(ctx, run, p, *p.entry, func() error {
			p.execute, p.retried = !p.retried, true // [doubts.still] judges it
			return nil
		}); err != nil {
			return false, err
		}
		more = more || p.execute
	}
	return more, nil
}

// still is [rulings.still]. About a call that was begun, and may not run again, people are
// asked.
func (d *doubts) still(ctx context.Context, run Run, p *plan) (bool, error) {
	may, err := d.rulings.still(ctx, run, p)
	if err == nil && !may && p.begun {
		err = d.ask(ctx, p)
	}
	return may, err
}

// takeUp plans a call by what the journal says about it. consider plans one that has not
// begun.
func (d *doubts) takeUp(ctx context.Context, run Run, p *plan, consider func() error) error {
	if finish, ok := d.session.journal.finish(p.call.ID); ok {
		p.finished(finish)
		return nil
	}
	if e, ok := d.session.journal.begun(p.call.ID); ok {
		return d.settle(ctx, run, p, e, consider)
	}
	return consider()
}

// settle gives a plan to a call that was begun and whose end is not known. again
// plans it as if it had not begun. If it cannot run again, for whatever reason,
// people are asked: that it may have taken effect must not be forgotten.
func (d *doubts) settle(ctx context.Context, run Run, p *plan, e Entry, again func() error) error {
	p.begun = true
	if p.doubt == nil {
		p.doubt = &approvals.Doubt{Key: p.key(run), Approved: p.askedIn.ID}
	}
	p.doubt.Began = e.Began()
	p.doubt.Unsure, p.doubt.Said = e.State == EntryFinished, e.Finish.Reason
	effect := EffectNone
	if p.tool != nil {
		effect = d.session.agent.effect(p.tool.Spec())
	}
	switch effect {
	case EffectPure, EffectIdempotent:
		return d.rerun(ctx, p, again)
	case EffectLookup:
		looked, err := d.look(ctx, run, p)
		if err != nil {
			return err
		}
		switch looked.Happened {
		case HappenedYes:
			d.log(ctx, p, "looked up: happened")
			p.finished(d.session.succeeded(ctx, p.call, looked.Result))
			return nil
		case HappenedNo:
			return d.rerun(ctx, p, again)
		case HappenedUnknown:
		}
	case EffectNone:
	}
	if err := d.ask(ctx, p); err != nil {
		return err
	}
	if p.doubt.Unsure && len(p.ask.Requirement.Quorums) == 0 { // nobody could answer
		p.doubt = nil
		p.finished(e.Finish)
	}
	return nil
}

// rerun has the call executed once more, if it may run.
func (d *doubts) rerun(ctx context.Context, p *plan, again func() error) error {
	if err := again(); err != nil {
		return err
	}
	if !p.execute {
		return d.ask(ctx, p)
	}
	d.log(ctx, p, "run again")
	return nil
}

// ask sets the call aside for people. If they had approved it, another execution
// needs what that approval was bound to: the same requirement, of the same people,
// and the same precondition.
func (d *doubts) ask(ctx context.Context, p *plan) error {
	d.log(ctx, p, "people are asked")
	p.part, p.execute, p.refused, p.aside = nil, false, false, AsideDoubt
	if !p.approved {
		p.ask = d.rulings.doubtful(d.session.agent)
		return nil
	}
	return d.restart(ctx, p)
}

// askAgain sets a call aside that people approved and that cannot run in this step.
func (d *doubts) askAgain(ctx context.Context, p *plan) error {
	if p.doubt != nil {
		return d.ask(ctx, p)
	}
	p.execute, p.aside = false, AsideApproval
	return d.restart(ctx, p)
}

// restart has people asked about a call as they were before.
func (d *doubts) restart(ctx context.Context, p *plan) error {
	b, a := p.askedIn, p.asked
	p.metadata, p.gate, p.preview = a.Metadata, a.Gate, a.Preview
	p.ask = approvals.Ask{
		Requirement: a.Requirement.Restarted(b.OpenedAt, d.session.now()),
		Why:         a.Why, Rule: a.Rule, Unjudged: a.Unjudged, Checked: a.Checked, Summary: a.Summary, Severity: a.Severity,
	}
	content := a.Preview.Content.Digest
	if content.IsZero() {
		return nil
	}
	raw, err := d.session.claim.store.Args(ctx, b.ID, content)
	switch {
	case errors.Is(err, approvals.ErrNotFound):
		p.preview.Content = approvals.Content{}
	case err != nil:
		return fmt.Errorf("preview of call %q: %w", string(p.call.ID), err)
	}
	p.content = string(raw)
	return nil
}

// look asks the tool. One that fails does not know; an error means that the
// worker is to stop.
func (d *doubts) look(ctx context.Context, run Run, p *plan) (Looked, error) {
	tool, call := p.tool, p.toolCall(run) // a lookup that hangs must not read the plan later
	looked, err, late := guard(ctx, timeout(tool), func(ctx context.Context) (Looked, error) { return tool.Spec().Lookup(ctx, call) })
	if cause := context.Cause(ctx); cause != nil {
		return Looked{}, cause
	}
	if err == nil && late {
		err = context.DeadlineExceeded
	}
	if err != nil {
		d.session.log(ctx, slog.LevelWarn, "lookup failed", slog.String("call", string(p.call.ID)), slog.String("err", class(err)))
		return Looked{}, nil
	}
	return looked, nil
}

func (d *doubts) log(ctx context.Context, p *plan, what string) {
	d.session.logCall(ctx, slog.LevelWarn, "call in doubt", p, slog.String("what", what))
}

// whyDoubt is why people are asked about a call in doubt that the policy had
// permitted.
const whyDoubt = "The policy let this call run without approval. It may or may not have taken effect, so people decide what to do."

// doubtful is whom to ask about a call that the policy had permitted: everyone
// whom the policy can ask, or else the owners of the agent. Nobody may decide if
// there are neither.
func (r *rulings) doubtful(agent Agent) approvals.Ask {
	ask := approvals.Ask{Requirement: r.policy.Strictest(r.session.now()), Why: whyDoubt}
	if len(ask.Requirement.Quorums) == 0 && len(agent.Owners.Users)+len(agent.Owners.Groups) > 0 {
		ask.Requirement = approvals.Requirement{Quorums: []approvals.Quorum{{Name: "owners", Need: 1, From: agent.Owners}}}
	}
	return ask
}

// key names the execution of the call for its tool.
func (p *plan) key(run Run) string {
	if p.doubt != nil {
		return p.doubt.Key
	}
	return string(run.ID) + "/" + string(p.call.ID)
}

// decided gives the plan of a call what people were asked about it.
func (p *plan) decided(b approvals.Batch, asked approvals.Approval) {
	p.askedIn, p.asked = b, asked
	if asked.InDoubt() {
		p.doubt = &approvals.Doubt{Began: asked.Doubt.Began, Key: asked.Doubt.Key, Approved: asked.Doubt.Approved}
	}
}

// admitDoubt keeps a call in doubt that people let run again, and that does not,
// from being answered as if it had never begun.
func (p *plan) admitDoubt(at time.Time) {
	if p.doubt != nil && p.part != nil && !p.ran {
		p.part = returned(p.call, OutcomeInterrupted, notAgainMessage+" "+wordsOf(p.part), at)
	}
}

// leaveInDoubt answers the calls in doubt of a run that ends before anyone is asked
// about them.
func leaveInDoubt(plans []*plan, at time.Time) {
	for _, p := range plans {
		if p.doubt != nil && p.part == nil && !p.ran {
			p.answer(returned(p.call, OutcomeInterrupted, doubtMessage, at))
		}
	}
}

// notAgainMessage is what the model reads about a call in doubt that people let run
// again and that did not.
const notAgainMessage = "It is not known whether this call took effect the first time. It was not run again:"
