package approvals

import (
	"context"
	"time"
)

// A Policy rules on a call before it runs.
//
// The caller fails closed: an error from Rule, and a Permit for a call whose
// tool says that it needs approval, both become an [Ask] with Strictest.
type Policy interface {
	Rule(ctx context.Context, p Proposal) (Ruling, error)
	// Strictest is the requirement for a call that no rule could judge,
	// proposed at the given time.
	Strictest(at time.Time) Requirement
}

// A Proposal is a call in its context, as a policy judges it. The arguments
// have been validated against the tool's schema.
type Proposal struct {
	Call      ToolCall
	Gate      Gate
	Agent     string
	Requester UserID
	Channel   string
	Place     Place // where it would run, if its executor says so
	SoFar     SoFar
	At        time.Time
	// Entry is the key of this call in the ledger of the requester, if it may
	// have one: what stands before it is counted, and if it has no entry
	// yet, everything.
	Entry string
}

// SoFar is what a run has done before a call is proposed, counted over the run
// and those that it resumes: by tool, how many calls were executed, ended in a
// failure, and were denied by people or by the policy. Nobody changes the maps.
type SoFar struct {
	Steps    int // answers of the model
	Executed map[string]int
	Failed   map[string]int
	Denied   map[string]int
}

// Gate says why the tool itself asks for approval, if it does.
type Gate string

// The ways in which a tool can ask for approval.
const (
	GateNone      Gate = ""          // it does not ask
	GateDeclared  Gate = "declared"  // its definition says always
	GatePredicate Gate = "predicate" // its predicate says so for these arguments
	// GateRaised: the tool returned [agentrun.ApprovalRequired] while validating
	// or running, or what the call would change was not what people had approved.
	GateRaised Gate = "raised"
)

// Ruling is a policy's answer about a call: [Permit], [Refuse] or [Ask].
//
//sumtype:decl
type Ruling interface{ ruling() }

// Permit lets the call run at once. Rule names the rule that permits it, and the
// version of the policy that it is from.
type Permit struct{ Rule string }

// Refuse denies the call at once; no approval helps. The model reads Reason. Rule
// names the rule that refuses it, as in [Permit].
type Refuse struct{ Reason, Rule string }

// Ask sets the call aside until Requirement is met. Why is the rule's own
// wording of why such calls need approval; approvers read it as the rule's. Rule
// names the rule that asks, as in [Permit].
// Summary is the rule's template for the summary of the call, if it has one.
// Unjudged says that a rule that might have refused could not be judged, so that
// this asks instead of it. Severity is what the policy states, if it states one.
// Checked is what the check of the rule said, if it has one.
type Ask struct {
	Requirement Requirement
	Why         string
	Rule        string
	Summary     string // see [Approval]
	Unjudged    bool
	Severity    Severity
	Checked     Checked
}

func (Permit) ruling() {}
func (Refuse) ruling() {}
func (Ask) ruling()    {}
