package policy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/policy"
)

const deployRules = `
rules:
  - {name: hands, tools: [deploy], when: 'args.env == "prod"', deny: People do that.}
  - {name: rest, tools: [deploy], when: 'args.env != "prod"', allow: true}
`

var deployTool = policy.Tool{
	Agent: "ops", Name: "deploy", Asks: policy.AsksExternal,
	Schema: []byte(`{"type":"object","properties":{"env":{"type":"string"},"at":{"type":"string"}},"required":["env"]}`),
}

// Nothing checks what a model writes for an external tool before the policy is asked. The
// system that runs the call may take ["prod"] for "prod", and a condition does not.
func TestNoConditionJudgesArgumentsThatDoNotFitAnExternalTool(t *testing.T) {
	p := parse(t, deployRules, policy.Options{Tools: []policy.Tool{deployTool}})
	require.Equal(t, "runs", say(t, p, callOf("deploy", `{"env":"test"}`)))
	require.Equal(t, "refused: People do that.", say(t, p, callOf("deploy", `{"env":"prod","more":1}`)))
	for _, args := range []string{`{"env":["prod"]}`, `{"env":{"name":"prod"}}`, `{"env":null}`, `{"env":"test","at":1}`, `{}`, ``} {
		require.Contains(t, say(t, p, callOf("deploy", args)), "strictest: The rule hands could not be judged for this call: the arguments don't fit the schema of the tool.", args)
	}
}

// An explanation says of such a call what becomes of it.
func TestAnExplanationJudgesACallThatDoesNotFitAnExternalTool(t *testing.T) {
	p := parse(t, deployRules, policy.Options{Tools: []policy.Tool{deployTool}})
	e := p.Explain(t.Context(), callOf("deploy", `{"env":["prod"]}`))
	require.Empty(t, e.Misfits)
	require.Equal(t, policy.Broken, e.Steps[0].Outcome)
	require.Contains(t, e.Text(), "not judged: the arguments don't fit the schema of the tool\n")
	require.Contains(t, e.Text(), "-> needs approval (hands)")
}

func TestAnExampleMayHoldArgumentsThatDoNotFitAnExternalTool(t *testing.T) {
	const example = "examples:\n  - {name: a list, call: {tool: deploy, args: {env: [prod]}}, expect: {%s}}\n"
	o := policy.Options{Tools: []policy.Tool{deployTool}}
	parse(t, "rules:\n  - {name: never, tools: [deploy], deny: No.}\n"+fmt.Sprintf(example, "deny: never"), o)
	_, err := policy.Parse("policy.yaml", []byte(head+deployRules+fmt.Sprintf(example, "allow: rest")), o)
	require.ErrorContains(t, err, "expected allow: rest, but it is asked of everyone, because hands could not be judged: the arguments don't fit the schema of the tool")
}
