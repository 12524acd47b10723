package agentrun

import (
	"context"

	"github.com/countersign/countersign/internal/approvals"
)

// doCalls deals with the calls of the last response: what may run runs, what
// may not is answered, and the rest is set aside.
func (w *worker) doCalls(ctx context.Context, run Run) (ended bool, err error) {
	s := w.session
	calls, err := Pending(s.history)
	if err != nil {
		return true, s.refuse(ctx, err)
	}
	if tool, ok := s.journal.inDoubt(calls); ok {
		return true, s.park(ctx, tool)
	}
	first := run.From
	if run.Batch != "" {
		first++ // what people's answers led to is not the model's fault
	}
	retry := retries(s.history, first)
	var plans []*plan
	for _, c := range calls {
		p := &plan{call: c, tool: s.tools[c.Name], proposed: c.Args, soFar: s.count(standIns(plans)...)}
		if finish, ok := s.journal.finish(c.ID); ok {
			p.finished(finish)
		} else {
			w.rulings.consider(ctx, run, p, retry[c.Name])
		}
		plans = append(plans, p)
	}
	return w.carryOut(ctx, run, plans, retry, true, "")
}

// takeUpAnswers is the first step of a resume run: what people and other
// systems said becomes results.
func (w *worker) takeUpAnswers(ctx context.Context, run Run) (ended bool, err error) {
	plans, ended, err := w.answers.plans(ctx, run)
	if ended || err != nil {
		return ended, err
	}
	if err := w.show(ctx, plans); err != nil {
		return false, err
	}
	return w.carryOut(ctx, run, plans, nil, false, run.Prompt)
}

// carryOut executes what the plans say, and ends the step: with a request that
// holds all results, or with what the run now waits for.
func (w *worker) carryOut(ctx context.Context, run Run, plans []*plan, retry map[string]int, charged bool, prompt string) (ended bool, err error) {
	s := w.session
	if err := context.Cause(ctx); err != nil {
		return false, err // what the plans say of a tool may come from that
	}
	executions := 0
	for _, p := range plans {
		if p.execute || p.ran {
			executions++
		}
	}
	words := s.agent.Limits.stop(run.Usage, executions, toSign(plans))
	if words == "" {
		words = exhausted(plans, retry, charged)
	}
	used := func(r *Run) {
		r.Usage.ToolCalls += countRan(plans)
		r.Activity = nil
	}
	if words != "" {
		return true, s.fail(ctx, used, words, said(parts(plans, s.now), prompt, s.now)...)
	}
	if err := w.executor.executeAll(ctx, run, plans, retry); err != nil {
		return false, err
	}
	for _, p := range plans {
		if p.ran && p.aside == AsideApproval {
			p.soFar = s.count(parts(plans, s.now)...)
			w.rulings.ruleOn(ctx, run, p, approvals.GateRaised)
		}
	}
	// While it ran, a call may have been set aside for people.
	words = s.agent.Limits.stop(run.Usage, countRan(plans), toSign(plans))
	if words == "" {
		words = exhausted(plans, retry, charged)
	}
	if words != "" {
		return true, s.fail(ctx, used, words, said(parts(plans, s.now), prompt, s.now)...)
	}
	results := parts(plans, s.now)
	for _, p := range plans {
		if p.aside != AsideNone {
			return true, s.deferRun(ctx, run, plans, results, used)
		}
	}
	return false, s.append(ctx, used, s.request(said(results, prompt, s.now)...))
}

// show lets others see which tools are about to run.
func (w *worker) show(ctx context.Context, plans []*plan) error {
	var calls []approvals.ToolCall
	for _, p := range plans {
		if p.execute {
			calls = append(calls, p.call)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return w.session.append(ctx, func(r *Run) { r.Activity = w.session.tools.names(calls) })
}
