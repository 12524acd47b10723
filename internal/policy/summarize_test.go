package policy_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

const summarized = `
groups: {sre: S0SRE00001}
default: {why: x, quorums: [{name: d, from: {groups: [sre]}}]}
rules:
  - name: large
    tools: [refund]
    when: args.cents > 1000
    summary: Refund {money args.cents "EUR"} to {args.to}
    ask: {why: It is much.}
  - name: refunds
    tools: [refund]
    ask: {why: Money leaves.}
`

func refundTool(schema string, writeOnly ...string) policy.Options {
	return policy.Options{Tools: []policy.Tool{{
		Agent: "billing", Name: "refund", Schema: json.RawMessage(schema), WriteOnly: writeOnly, Asks: policy.AsksAlways,
	}}}
}

const refundSchema = `{"type":"object","required":["cents","to"],"properties":{"cents":{"type":"integer"},"to":{"type":"string"}}}`

func TestTheRuleThatAsksGivesTheSummary(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte(summarized), refundTool(refundSchema))
	require.NoError(t, err)
	for args, want := range map[string]string{
		`{"cents":5000,"to":"a"}`: `Refund {money args.cents "EUR"} to {args.to}`,
		`{"cents":5,"to":"a"}`:    "",
		`{"to":"a"}`:              "", // it could not be judged, so no rule asks
	} {
		ruling, err := p.Rule(t.Context(), approvals.Proposal{
			Agent: "billing", Call: approvals.ToolCall{ID: "1", Name: "refund", Args: json.RawMessage(args)}, At: time.Unix(0, 0),
		})
		require.NoError(t, err)
		ask, ok := ruling.(approvals.Ask)
		require.True(t, ok)
		require.Equal(t, want, ask.Summary, args)
	}
}

func TestASummaryIsCheckedAgainstWhatIsKnownOfTheTool(t *testing.T) {
	_, err := policy.Parse("p.yaml", []byte(summarized), policy.Options{})
	require.NoError(t, err, "without tools only its form is known")
	_, err = policy.Parse("p.yaml", []byte(summarized), refundTool(refundSchema, "/to"))
	require.ErrorContains(t, err, "p.yaml:8:14: rules[0].summary: does not fit the tool refund: column 37: args.to: it is write-only")
	_, err = policy.Parse("p.yaml", []byte(summarized), refundTool(""))
	require.ErrorContains(t, err, "p.yaml:8:14: rules[0].summary: does not fit the tool refund: column 15: args.cents: the tool has no schema")
}
