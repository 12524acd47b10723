package agentrun_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// TestACallThatWaitsCarriesTheWorstSeverity: of what its tool and the policy
// state, and nothing if neither states any.
func TestACallThatWaitsCarriesTheWorstSeverity(t *testing.T) {
	for _, tt := range []struct{ tool, ruled, want approvals.Severity }{
		{"", "", ""},
		{"high", "", "high"},
		{"high", "low", "high"},
		{"low", "irreversible", "irreversible"},
	} {
		w := newWorld(t)
		gated := w.does("gated", agentrun.KindUnapproved)
		gated.spec.Severity = tt.tool
		w.agent.Tools = []agentrun.Tool{gated}
		w.policy.by = map[string]approvals.Ruling{"gated": approvals.Ask{Requirement: signedBy("bob"), Severity: tt.ruled}}
		run := w.say(calls([3]string{"a", "gated", `{"x":1}`}))
		require.Equal(t, tt.want, w.batch(run.Deferred).Approvals[0].Severity)
	}
}
