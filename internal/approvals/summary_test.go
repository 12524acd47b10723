package approvals_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// The batch keeps the template that was in force when people were asked: that of
// the rule, else that of the tool.
func TestTheSummaryIsPinnedWhenPeopleAreAsked(t *testing.T) {
	deferral := func(id ToolCallID, tool, rule string) Deferral {
		return Deferral{
			Call: ToolCall{ID: id, Name: "refund", Args: json.RawMessage(`{}`)}, Summary: tool,
			Ask: Ask{Requirement: all(of(1, "ann")), Summary: rule},
		}
	}
	b, _, err := Open(Batch{ID: "b", Run: "r", Requester: "req", OpenedAt: opened},
		[]Deferral{deferral(theCall, "of the tool", "of the rule"), deferral("other", "of the tool", "")},
		[]Deferral{deferral("elsewhere", "of the tool", "of no rule: nobody is asked")})
	require.NoError(t, err)
	require.Equal(t, "of the rule", b.Approvals[0].Summary)
	require.Equal(t, "of the tool", b.Approvals[1].Summary)
	require.Equal(t, "of the tool", b.Calls[0].Summary)

	// A change of the arguments is ruled on anew, and that rule may have its own.
	ask := Ask{Requirement: all(of(1, "ann"))}
	same := must(t, b, amends(b, "req", 1, ask))
	require.Equal(t, "of the rule", same.Approvals[0].Summary)
	same = must(t, b, amends(b, "req", 1, Permit{}))
	require.Equal(t, "of the rule", same.Approvals[0].Summary)
	ask.Summary = "of the new rule"
	other := must(t, b, amends(b, "req", 1, ask))
	require.Equal(t, "of the new rule", other.Approvals[0].Summary)
	require.Equal(t, "of the rule", b.Approvals[0].Summary, "the batch before is as it was")
}
