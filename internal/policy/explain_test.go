package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

func TestACallOfAToolThatIsNotThereIsExplainedAsWhatHappens(t *testing.T) {
	p := companyPolicy(t)
	e := p.Explain(t.Context(), call("delete_fil", `{}`))
	require.True(t, e.Unknown)
	require.Equal(t, "delete_fil, by ops\n-> runs nothing: ops has no tool of this name, so the model is told, and tries again; no rule is asked\n", e.Text())
	require.False(t, p.Explain(t.Context(), call("delete_file", `{"path":"a"}`)).Unknown)
	require.False(t, parse(t, "", policy.Options{}).Explain(t.Context(), call("x", `{}`)).Unknown, "without tools nobody knows")
}

// An allow above an ask leaves the ask what the tool's own code wants signed.
func TestAnAllowAboveAnAskOfAToolThatMayAskIsNoMistake(t *testing.T) {
	p := parse(t, "rules:\n  - {name: a, tools: [x], allow: true}\n  - {name: b, tools: [x], ask: {why: Mind.}}\n",
		policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x", Asks: policy.AsksWhen}}})
	require.Equal(t, "runs", say(t, p, call("x", `{}`)))
	require.Equal(t, "asks: b", say(t, p, with(call("x", `{}`), func(q *approvals.Proposal) { q.Gate = approvals.GatePredicate })))
}

func TestAToolThatSaysNothingOfItsEffectsMayDestroy(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		hint *bool
		want string
	}{"left out": {nil, "refused: no"}, "false": {&no, "asks: default"}} {
		p := parse(t, "rules: [{name: r, when: annotations.destructiveHint, deny: no}]\n",
			policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x", Annotations: policy.Annotations{DestructiveHint: c.hint}}}})
		require.Equal(t, c.want, say(t, p, call("x", `{}`)), name)
	}
}
