package directory

import (
	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// SpecOf returns what the tool of a call declares. With a nil t nothing is known.
func SpecOf(t Tools, b approvals.Batch, a approvals.Approval) (agentrun.Spec, bool) {
	if t == nil {
		return agentrun.Spec{}, false
	}
	return t.ToolSpec(b.Agent, a.Call.Name)
}
