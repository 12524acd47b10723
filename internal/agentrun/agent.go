package agentrun

import (
	"cmp"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/summary"
)

// An Agent is a model with instructions, tools and limits.
type Agent struct {
	Name         string
	Instructions string
	Model        Model
	Tools        []Tool
	Limits       Limits
	Pending      PendingRule
	Summaries    map[string]string // by tool, each goes before what the tool declares; see [Spec]
	Effects      map[string]Effect // likewise
	Owners       approvals.From    // who decide where the policy names nobody
}

// summary returns the template for calls of a tool: that of the agent, else that of the
// tool, else one that is made from its schema. A policy may replace it for one call.
func (a Agent) summary(s Spec) string {
	return cmp.Or(a.Summaries[s.Name], s.Summary, summary.Default(s.Name, s.Schema, s.WriteOnly))
}

// A PendingRule says what is done with a new message while calls of its thread
// wait for people, or for results from elsewhere.
type PendingRule string

// The rules. The empty one is PendingReject.
const (
	// PendingReject: a message of the person who asked ends what is pending as
	// [approvals.Superseded]. The resume run tells the model so, and hands it the
	// message in the same turn. What is already approved stays approved and runs.
	// Messages of other people wait.
	PendingReject PendingRule = "reject"
	// PendingKeep: every message waits until nothing is pending.
	PendingKeep PendingRule = "keep"
	// PendingRefuse: no message is taken: [ErrPending].
	PendingRefuse PendingRule = "refuse"
)
