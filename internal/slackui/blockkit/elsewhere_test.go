package blockkit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

func TestOnlyAgentsThatMayRunAllCallsAreNamed(t *testing.T) {
	may := Fulfillers(func(agent, tool string) []string {
		require.Equal(t, "ops", agent)
		return map[string][]string{"lookup": {"crm", "erp"}, "update": {"crm"}, "render": {"p\u202edf"}}[tool]
	})
	of := func(tools ...string) approvals.Batch {
		b := approvals.Batch{Agent: "ops"}
		for _, tool := range tools {
			b.Calls = append(b.Calls, approvals.External{Call: approvals.CallRef{Name: tool}})
		}
		return b
	}
	require.Equal(t, "crm or erp", may.Named(of("lookup", "lookup")))
	require.Equal(t, "crm", may.Named(of("lookup", "update")))
	require.Empty(t, may.Named(of("lookup", "render")), "neither runs both")
	require.Empty(t, may.Named(of("unknown")))
	require.Equal(t, "p⟦U+202E⟧df", may.Named(of("render")))
	require.Empty(t, Fulfillers(nil).Named(of("lookup")))
}
