package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/policy"
)

// The tools of an agent that runs elsewhere are not known: what is said of tools
// that are cannot be said of a rule that may be for it.
func TestARuleForARemoteAgentNamesAnyTool(t *testing.T) {
	own := []policy.Tool{{Agent: "ops", Name: "delete_file", Asks: policy.AsksAlways}}
	for name, c := range map[string]struct{ rules, want string }{
		"its tool":             {`[{name: a, agents: [claude], tools: [Bash], deny: No.}]`, ""},
		"of any agent":         {`[{name: a, tools: [Bash], deny: No.}]`, ""},
		"of an agent of ours":  {`[{name: a, agents: [ops], tools: [Bash], deny: No.}]`, `no agent has a tool "Bash"`},
		"of both":              {`[{name: a, agents: [ops, claude], tools: [Bash], deny: No.}]`, ""},
		"no such agent":        {`[{name: a, agents: [cloude], deny: No.}]`, `there is no agent "cloude"; did you mean claude?`},
		"in a condition":       {`[{name: a, when: 'tool == "Bash" && run.denied["Edit"] > 0', deny: No.}]`, ""},
		"agent in a condition": {`[{name: a, when: 'agent == "cloude"', deny: No.}]`, `there is no agent "cloude"`},
		"lifts its gate":       {`[{name: a, tools: [delete_file], allow: true}]`, ""},
		"lifts ours":           {`[{name: a, agents: [ops], tools: [delete_file], allow: true}]`, "has no effect"},
		"covered":              {`[{name: a, tools: [Bash], ask: {why: y}}, {name: b, tools: [Bash], agents: [claude], ask: {why: x}}]`, "never decides: a"},
		"covered for ours":     {`[{name: a, agents: [ops], ask: {why: x}}, {name: b, tools: [delete_file], ask: {why: y}}]`, ""},
		"denied for ours":      {`[{name: a, agents: [ops], tools: ["*"], command: {runs: [git push]}, deny: No.}, {name: b, tools: [delete_file], command: {forms: [{run: git push}]}, allow: true}]`, ""},
	} {
		_, err := policy.Parse("policy.yaml", []byte(head+"rules: "+c.rules+"\n"), policy.Options{Tools: own, Remote: []string{"claude"}})
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
		}
	}
	p := parse(t, `
rules: [{name: a, agents: [claude], tools: [Bash], deny: No.}]
examples:
  - {name: it is found, call: {tool: Bash, args: {x: 1}}, expect: {deny: a}}
  - {name: another tool, agent: claude, call: {tool: Edit}, expect: {ask: default}}
`, policy.Options{Tools: own, Remote: []string{"claude"}})
	q := call("Bash", `{}`)
	q.Agent = "claude"
	require.False(t, p.Explain(t.Context(), q).Unknown)
	q.Agent = "ops"
	require.True(t, p.Explain(t.Context(), q).Unknown)
}
