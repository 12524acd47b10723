package tools_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/tools"
)

// TestAToolStatesTheWorseOfItsSeverityAndItsAnnotations: an annotation that is
// left out states nothing, though its default in MCP is that the tool destroys.
func TestAToolStatesTheWorseOfItsSeverityAndItsAnnotations(t *testing.T) {
	yes, no := true, false
	reads, destroys, keeps := agentrun.Annotations{ReadOnlyHint: true}, agentrun.Annotations{DestructiveHint: &yes}, agentrun.Annotations{DestructiveHint: &no}
	for _, tt := range []struct {
		severity approvals.Severity
		says     agentrun.Annotations
		want     approvals.Severity
	}{
		{"", agentrun.Annotations{}, ""},
		{"", reads, "low"},
		{"", destroys, "high"},
		{"", keeps, ""},
		{"low", keeps, "low"},
		{"low", destroys, "high"},
		{"irreversible", reads, "irreversible"},
	} {
		tool, err := tools.New(tools.Spec[struct{}]{Name: "t", Approval: tools.Never, Severity: tt.severity, Annotations: tt.says},
			func(context.Context, agentrun.Call, struct{}) (string, error) { return "", nil })
		require.NoError(t, err)
		require.Equal(t, tt.want, tool.Spec().Stated(), "%+v", tt)
	}
	_, err := tools.New(tools.Spec[struct{}]{Name: "t", Approval: tools.Never, Severity: "critical"},
		func(context.Context, agentrun.Call, struct{}) (string, error) { return "", nil })
	require.ErrorContains(t, err, "severity")
}
