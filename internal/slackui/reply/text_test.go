package reply

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

func TestAReplySaysWhatMustBeDecidedBeforeTheAgentContinues(t *testing.T) {
	for want, b := range map[string]approvals.Batch{
		"The agent waits for this decision.":                {Approvals: make([]approvals.Approval, 1)},
		"The agent continues when both calls are decided.":  {Approvals: make([]approvals.Approval, 2)},
		"The agent continues when all 4 calls are decided.": {Approvals: make([]approvals.Approval, 4)},
		"The agent continues when everything is decided.":   {Approvals: make([]approvals.Approval, 1), Calls: make([]approvals.External, 1)},
	} {
		require.Equal(t, want, continuesWhen(b))
	}
}
