package agentrun

import (
	"encoding/json"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A plan is one call of a step and what becomes of it. Exactly one of these is
// so: it has its part, it is to be executed, or it is set aside.
type plan struct {
	call approvals.ToolCall // with the arguments to run with
	tool Tool               // nil if there is none of the name

	request string // of a call that the provider of the model runs: where it asks for approval
	held    bool   // it may run there, and waits for the other calls of its response

	execute  bool
	approved bool
	signed   json.RawMessage // metadata of the approval

	part   RequestPart
	prompt string // a user prompt after the results

	aside    Aside
	raised   bool // set aside by the tool itself, while it validated or ran
	metadata json.RawMessage
	reason   approvals.Quote // why the tool asks, in its own words
	ask      approvals.Ask
	gate     approvals.Gate  // why the tool asks, as the policy was told
	ruledAt  time.Time       // when the policy was asked last
	soFar    approvals.SoFar // what the policy is told about the calls before it
	unjudged bool            // of an approved call: people knew that a rule could not judge it

	took      time.Duration // how long it ran, if it ran
	unsure    bool          // it ran, and whether it took effect is not known
	refused   bool          // the policy refused it
	refusedBy string        // by this rule
	ran       bool          // it has been executed in this step, now or before a crash
	elsewhere bool          // it ran elsewhere

	proposed json.RawMessage   // the arguments as the model made them
	preview  approvals.Preview // for people who are asked about the call
	content  string            // of the preview

	precondition []byte           // of what people approved
	before       approvals.Before // what they saw then
	again        int              // how often they were asked once more before that
	stale        bool             // it was not executed, because its precondition failed

	begun   bool               // it was begun, and how it ended is not known
	entry   *Entry             // of its execution in this step
	retried bool               // in this step, because its tool did not say how the one before ended
	doubt   *approvals.Doubt   // it may have taken effect before, in this run or an earlier one
	askedIn approvals.Batch    // where people were asked about it, if they were
	asked   approvals.Approval // what they were asked

	writeOnly []string
	editedBy  []approvals.UserID // who changed the arguments that people approved before
}

func (p *plan) answer(part RequestPart) { p.part, p.execute, p.aside = part, false, AsideNone }

// refuse answers the call with the policy's refusal.
func (p *plan) refuse(r approvals.Refuse, at time.Time) {
	p.answer(refused(p.call, r, at))
	p.refused, p.refusedBy = true, r.Rule
}

// finished gives the plan the outcome of its execution.
func (p *plan) finished(f Finish) {
	if f.Aside == AsidePrecondition {
		p.execute, p.stale = false, true
		return
	}
	p.begun = false
	p.ran, p.prompt, p.took, p.unsure = true, f.Prompt, f.Took, f.Unsure
	if f.Aside == AsideNone {
		p.answer(f.Part)
		return
	}
	p.execute, p.aside, p.raised = false, f.Aside, true
	p.metadata, p.reason = f.Metadata, f.Reason
}

// toolCall is the call as its tool sees it.
func (p *plan) toolCall(run Run) Call {
	return Call{
		ToolCall: p.call, Run: run.ID, Agent: run.Agent, Requester: run.Requester,
		Approved: p.approved, Metadata: p.signed, Precondition: p.precondition, Key: p.key(run),
	}
}

// proposal is what the policy is asked about the call.
func (p *plan) proposal(run Run, at time.Time) approvals.Proposal {
	return approvals.Proposal{
		Call: p.call, Gate: p.gate, Agent: run.Agent, Requester: run.Requester, Channel: run.Origin.Channel,
		SoFar: p.soFar, At: at,
	}
}
