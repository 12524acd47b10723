package agentrun

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
)

// Pure reports whether a call of the tool changes nothing, so that it needs no journal
// and may be made again at any time.
func (r *Runner) Pure(agent, tool string) bool {
	a, _ := r.c.Agents(agent)
	for _, t := range a.Tools {
		if spec := t.Spec(); spec.Name == tool {
			return a.effect(spec) == EffectPure
		}
	}
	return false
}

// Perform executes a call of a remote request that [Runner.Permit] permitted a moment
// ago, for the caller that waits for it: its end is that of ctx. The tool must be
// [Runner.Pure]. Nothing is stored about the execution: a caller that does not get its
// result makes the call again. The tool and the policy are asked as before any other
// execution; if one of them sets the call aside, or the tool is not pure any more, that
// is [ErrNowAsks].
func (r *Runner) Perform(ctx context.Context, remote RemoteRun) (Executed, error) {
	if len(remote.Calls) != 1 {
		return Executed{}, fmt.Errorf("%w: %d calls to perform", approvals.ErrInvalid, len(remote.Calls))
	}
	if r.isDraining() {
		return Executed{}, errDraining
	}
	run, call := remote.Run, remote.Calls[0].ToolCall
	run.Parent, run.CallsOnly = run.ID, true
	agent, _ := r.c.Agents(run.Agent)
	tools, _ := toolsetOf(agent.Tools)
	s := &session{claim: &claim{now: r.c.Now, log: r.c.Log, id: run.ID}, agent: agent, tools: tools}
	p := &plan{call: call, tool: tools[call.Name], soFar: remote.soFar(call.ID)}
	if p.tool == nil || agent.effect(p.tool.Spec()) != EffectPure {
		return Executed{}, ErrNowAsks
	}
	(&rulings{session: s, tally: r.tally()}).consider(ctx, run, p)
	if err := context.Cause(ctx); err != nil {
		return Executed{}, err // what the plan says of the tool may come from that
	}
	if p.execute {
		x := &executor{session: s}
		x.logStart(ctx, p)
		finish, known, outcome := x.call(ctx, run, p)
		x.logEnd(ctx, p, finish, outcome)
		if !known {
			return Executed{}, context.Cause(ctx)
		}
		p.finished(finish)
	}
	if p.aside != AsideNone {
		return Executed{}, ErrNowAsks
	}
	return Executed{Run: run.ID, Status: RunCompleted, Parts: said([]RequestPart{p.part}, p.prompt, s.now), Ended: s.now()}, nil
}
