package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

// dm left out is not dm: false, and where no rule could judge a call, the rule that
// reaches most people decides whom direct messages ask.
func TestWhomDirectMessagesAskIsOneOfThree(t *testing.T) {
	for written, want := range map[string]approvals.DirectMessages{
		"": approvals.DirectOutside, ", dm: true": approvals.DirectEveryone, ", dm: false": approvals.DirectNobody,
	} {
		p := parse(t, "rules:\n  - {name: a, tools: [x], ask: {why: w, quorums: [{name: q, from: {groups: [sre]}}]"+written+"}}\n", policy.Options{})
		ruling, err := p.Rule(t.Context(), approvals.Proposal{Agent: "ops", Requester: "U0ALICE001", Call: approvals.ToolCall{ID: "c1", Name: "x", Args: []byte(`{}`)}, At: monday})
		require.NoError(t, err)
		ask, asked := ruling.(approvals.Ask)
		require.True(t, asked)
		require.Equal(t, want, ask.Requirement.Direct, strings.TrimPrefix(written, ", "))
	}
	for _, c := range []struct{ a, b, want approvals.DirectMessages }{
		{approvals.DirectOutside, approvals.DirectNobody, approvals.DirectOutside},
		{approvals.DirectEveryone, approvals.DirectNobody, approvals.DirectEveryone},
		{approvals.DirectOutside, approvals.DirectEveryone, approvals.DirectEveryone},
		{approvals.DirectNobody, approvals.DirectNobody, approvals.DirectNobody},
	} {
		require.Equal(t, c.want, c.a.Wider(c.b))
		require.Equal(t, c.want, c.b.Wider(c.a))
	}
}
