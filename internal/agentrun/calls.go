package agentrun

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
)

// doCalls deals with the calls of the last response: what may run runs, what
// may not is answered, and the rest is set aside.
func (w *worker) doCalls(ctx context.Context, run Run) (ended bool, err error) {
	calls, err := Pending(w.history)
	if err != nil {
		return true, w.refuse(ctx, err)
	}
	if tool, ok := w.inDoubt(calls); ok {
		return true, w.park(ctx, tool)
	}
	first := run.From
	if run.Batch != "" {
		first++ // what people's answers led to is not the model's fault
	}
	retry := retries(w.history, first)
	var plans []*plan
	for _, c := range calls {
		p := w.journaled(c)
		if p == nil {
			p = w.consider(ctx, run, c, retry[c.Name])
		}
		plans = append(plans, p)
		w.soFar = w.count(standIns(plans)...)
	}
	return w.carryOut(ctx, run, plans, retry, true, "")
}

// carryOut executes what the plans say, and ends the step: with a request that
// holds all results, or with what the run now waits for.
func (w *worker) carryOut(ctx context.Context, run Run, plans []*plan, retry map[string]int, charged bool, prompt string) (ended bool, err error) {
	if err := context.Cause(ctx); err != nil {
		return false, err // what the plans say of a tool may come from that
	}
	executions := 0
	for _, p := range plans {
		if p.execute || p.ran {
			executions++
		}
	}
	words := w.agent.Limits.stop(run.Usage, executions, toSign(plans))
	if words == "" {
		words = w.exhausted(plans, retry, charged)
	}
	used := func(r *Run) {
		r.Usage.ToolCalls += countRan(plans)
		r.Activity = nil
	}
	if words != "" {
		return true, w.fail(ctx, used, words, w.said(w.parts(plans), prompt)...)
	}
	if err := w.executeAll(ctx, run, plans, retry); err != nil {
		return false, err
	}
	for _, p := range plans {
		if p.ran && p.aside == AsideApproval {
			w.soFar = w.count(w.parts(plans)...)
			w.ruleOn(ctx, run, p, approvals.GateRaised)
		}
	}
	// While it ran, a call may have been set aside for people.
	words = w.agent.Limits.stop(run.Usage, countRan(plans), toSign(plans))
	if words == "" {
		words = w.exhausted(plans, retry, charged)
	}
	if words != "" {
		return true, w.fail(ctx, used, words, w.said(w.parts(plans), prompt)...)
	}
	results := w.parts(plans)
	for _, p := range plans {
		if p.aside != AsideNone {
			return true, w.deferRun(ctx, run, plans, results, used)
		}
	}
	return false, w.append(ctx, used, w.request(w.said(results, prompt)...))
}

// said is the results and, after them, what the person wrote.
func (w *worker) said(results []RequestPart, prompt string) []RequestPart {
	if prompt == "" {
		return results
	}
	return append(results, UserPrompt{Content: prompt, At: w.now()})
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
	return w.append(ctx, func(r *Run) { r.Activity = w.toolNames(calls) })
}

// parts returns the results in emission order, and after them what is to be
// read with them, in the same order.
func (w *worker) parts(plans []*plan) []RequestPart {
	var results, prompts []RequestPart
	for _, p := range plans {
		if p.part == nil {
			continue
		}
		results = append(results, p.part)
		for _, words := range []string{p.changed(), p.prompt} {
			if words != "" {
				prompts = append(prompts, UserPrompt{Content: words, At: w.now()})
			}
		}
	}
	return append(results, prompts...)
}

func countRan(plans []*plan) int {
	n := 0
	for _, p := range plans {
		if p.ran {
			n++
		}
	}
	return n
}

// toSign counts the calls that are set aside for people and run here once they
// are approved.
func toSign(plans []*plan) int {
	n := 0
	for _, p := range plans {
		if p.aside == AsideApproval && (p.tool == nil || p.tool.Spec().Kind != KindExternal) {
			n++
		}
	}
	return n
}

// exhausted returns words for people if the model has been asked to correct its
// calls of a tool as often as the tool allows, and did not.
func (w *worker) exhausted(plans []*plan, retry map[string]int, charged bool) string {
	if !charged {
		return ""
	}
	for _, p := range plans {
		if _, again := p.part.(RetryPrompt); !again {
			continue
		}
		allowed := 1
		if p.tool != nil {
			allowed = max(0, orDefault(p.tool.Spec().MaxRetries, 1))
		}
		if retry[p.call.Name] < allowed {
			continue
		}
		if p.tool == nil {
			return "The model kept calling a tool that does not exist."
		}
		return fmt.Sprintf("The model did not call %s correctly, even after it was corrected.", p.call.Name)
	}
	return ""
}

// inDoubt returns the tool of a call that a worker who is gone began and did
// not finish.
func (w *worker) inDoubt(calls []approvals.ToolCall) (tool string, ok bool) {
	for _, c := range calls {
		if e := w.journal[c.ID]; e.State == EntryStarted {
			return e.Tool, true
		}
	}
	return "", false
}

// journaled returns the plan of a call that was executed before a crash.
func (w *worker) journaled(c approvals.ToolCall) *plan {
	e := w.journal[c.ID]
	if e.State != EntryFinished {
		return nil
	}
	p := &plan{call: c, tool: w.tools[c.Name], proposed: c.Args}
	p.finished(e.Finish)
	return p
}
