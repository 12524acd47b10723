package agentrun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// Clear asks the policy once more about a call of a remote run that its executor
// is about to execute, with the arguments that it is to have, and enters it in the
// ledger. It is what [Runner.Work] does before it executes an approved call: a
// rule that refuses stops the call with an [approvals.RefusedError], and one that
// asks changes nothing about what people approved. A call that needed nobody must
// still need nobody; otherwise it is [ErrNowAsks]. What cannot be judged is
// [ErrUnjudged], and [ErrRuleUnjudged] if a rule has no answer. It decides nothing:
// that the call was approved the caller has seen to. A call that it stops keeps its
// place in the ledger until [Runner.Unclear].
func (r *Runner) Clear(ctx context.Context, remote RemoteRun, call approvals.ToolCall) error {
	p := approvals.Proposal{
		Call: call, Agent: remote.Run.Agent, Requester: remote.Run.Requester, Channel: remote.Run.Origin.Channel,
		SoFar: remote.soFar(call.ID), At: r.c.Now(),
	}
	if i := slices.IndexFunc(remote.Calls, func(c RuledCall) bool { return c.ID == call.ID }); i >= 0 {
		p.Place = remote.Calls[i].Place
	}
	a, asked := remote.Batch.Approval(call.ID)
	if asked {
		p.Gate, p.Place, p.SoFar = a.Gate, a.Place, remote.Batch.SoFar
	}
	t := r.tally()
	p = t.propose(remote.Run, p)
	if err := r.stands(ctx, p, a, asked); err != nil {
		return err
	}
	// A call that was permitted yesterday goes ahead today, so it counts today.
	entered, err := t.enter(ctx, remote.Run, call, p.At, t.today(p.At))
	if err != nil {
		return fmt.Errorf("%w: %s", ErrUnjudged, class(err))
	}
	if !entered {
		return nil
	}
	return r.stands(ctx, p, a, asked)
}

// Unclear gives the place of a call in the ledger back. Call it once it is stored that
// the call is not executed: while another of its executor's claims may still count, the
// place may be that of a call that runs.
func (r *Runner) Unclear(ctx context.Context, run Run, call approvals.ToolCall) {
	if t := r.tally(); t.counts() && t.ledger != nil {
		t.leave(ctx, run, call, r.c.Log)
	}
}

// stands is nil if the policy still lets the call go ahead.
func (r *Runner) stands(ctx context.Context, p approvals.Proposal, a approvals.Approval, asked bool) error {
	ruling, err := askPolicy(ctx, r.c.Policy, p)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrUnjudged, class(err))
	}
	switch ruling := ruling.(type) {
	case approvals.Permit:
		return nil
	case approvals.Refuse:
		return &approvals.RefusedError{Reason: ruling.Reason, Rule: ruling.Rule}
	case approvals.Ask:
		switch {
		case ruling.Unjudged && !a.Unjudged:
			return ErrRuleUnjudged
		case !asked:
			return ErrNowAsks
		}
		return nil
	}
	return fmt.Errorf("%w: its ruling is a %T", ErrUnjudged, ruling)
}

// soFar is what the policy is told of the calls before this one: those that were
// permitted count as executed, those that were refused as denied.
func (r RemoteRun) soFar(id approvals.ToolCallID) approvals.SoFar {
	response := Response{}
	var counted []RequestPart
	for _, c := range r.Calls {
		response.Parts = append(response.Parts, CallPart{ToolCall: c.ToolCall})
		if c.ID == id {
			break
		}
		counted = append(counted, c.counted(r.Run)...)
	}
	return SoFar([]Message{response, Request{Parts: counted}}, nil)
}

func (c RuledCall) counted(run Run) []RequestPart {
	switch ruling := c.Ruling.(type) {
	case approvals.Permit:
		return []RequestPart{returned(c.ToolCall, OutcomeSuccess, "", run.CreatedAt)}
	case approvals.Refuse:
		return []RequestPart{refused(c.ToolCall, ruling, run.CreatedAt)}
	case approvals.Ask:
	}
	return nil
}

// said is what the agent wrote beside the calls.
func (q RemoteRequest) said() approvals.Quote {
	var all []string
	for _, c := range q.Calls {
		if reason := strings.TrimSpace(c.Reason); reason != "" && (len(all) == 0 || all[len(all)-1] != reason) {
			all = append(all, reason)
		}
	}
	return approvals.QuoteOf(strings.Join(all, "\n"))
}
