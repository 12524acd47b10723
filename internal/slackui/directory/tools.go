package directory

import (
	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// SpecOf is what the tool of a call declares. t may be nil: then nothing is known.
func SpecOf(t Tools, b approvals.Batch, a approvals.Approval) (agentrun.Spec, bool) {
	if t == nil {
		return agentrun.Spec{}, false
	}
	return t.ToolSpec(b.Agent, a.Call.Name)
}
