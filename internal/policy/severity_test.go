package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

const severities = `
rules:
  - {name: wipes, tools: [wipe], ask: {severity: irreversible, quorums: [{name: ops, from: {groups: [sre]}}]}}
  - {name: mails, tools: [mail], ask: {severity: low, quorums: [{name: ops, from: {groups: [sre]}}]}}
  - {name: words, tools: [words], ask: {why: other words}}
  - {name: own, tools: [own], ask: {quorums: [{name: ops, from: {groups: [sre]}}]}}
  - {name: broken, tools: [broken], when: args.path == "a", deny: no}
  - {name: bad, tools: [stated], when: severity == "irreversible", deny: irreversible}
`

// TestAnAskStatesItsSeverity: an ask without quorums is that of default, other
// rules state their own, and a call that no rule could judge gets the worst.
func TestAnAskStatesItsSeverity(t *testing.T) {
	p, err := policy.Parse("policy.yaml", []byte(`
groups: {sre: S0SRE00001}
default: {severity: high, quorums: [{name: ops, from: {groups: [sre]}}]}`+severities), policy.Options{})
	require.NoError(t, err)
	for tool, want := range map[string]approvals.Severity{
		"wipe": "irreversible", "mail": "low", "words": "high", "own": "", "other": "high", "broken": "irreversible",
	} {
		r, err := p.Rule(t.Context(), call(tool, `{}`))
		require.NoError(t, err)
		require.Equal(t, want, r.(approvals.Ask).Severity, tool)
	}
}

// That some calls are low says nothing of a call that no rule could judge, unless all
// rules say so.
func TestACallThatNoRuleJudgesIsNotLow(t *testing.T) {
	for _, c := range []struct {
		ofDefault      string
		tool, unjudged approvals.Severity
	}{{"", "", ""}, {"", "low", "low"}, {"severity: low, ", "", "low"}, {"severity: high, ", "", "high"}} {
		p, err := policy.Parse("policy.yaml", []byte("groups: {sre: S0SRE00001}\ndefault: {"+c.ofDefault+"quorums: [{name: ops, from: {groups: [sre]}}]}\n"+`
rules:
  - {name: mails, tools: [mail], when: args.to == "ann", ask: {severity: low, quorums: [{name: ops, from: {groups: [sre]}}]}}
`), policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "mail", Severity: c.tool}}})
		require.NoError(t, err)
		require.Equal(t, c.tool, p.Stated("ops", "mail"))
		r, err := p.Rule(t.Context(), call("mail", `{}`))
		require.NoError(t, err)
		require.Equal(t, c.unjudged, r.(approvals.Ask).Severity, "%+v", c)
	}
}

// TestWhatAToolStatesIsSeenAndNeverLowered: a condition sees what the tool
// states, and an explanation shows the worse of the tool and the rule.
func TestWhatAToolStatesIsSeenAndNeverLowered(t *testing.T) {
	tools := func(s approvals.Severity) policy.Options {
		var all []policy.Tool
		for _, name := range []string{"wipe", "mail", "words", "own", "broken", "stated"} {
			all = append(all, policy.Tool{Agent: "ops", Name: name, Severity: s})
		}
		return policy.Options{Tools: all}
	}
	p := parse(t, severities, tools("irreversible"))
	require.Equal(t, "refused: irreversible", say(t, p, call("stated", `{}`)))
	e := p.Explain(t.Context(), call("mail", `{}`))
	require.Equal(t, approvals.SeverityIrreversible, e.Severity)
	require.Contains(t, e.Text(), "severity: irreversible")
	require.Equal(t, "asks: default", say(t, parse(t, severities, tools("high")), call("stated", `{}`)))

	for written, says := range map[string]string{
		`{name: r, tools: [a], when: severity == "bad", deny: no}`: `there is no severity "bad"`,
		`{name: r, tools: [a], ask: {severity: medium}}`:           `is "medium", must be low, high or irreversible`,
	} {
		_, err := policy.Parse("policy.yaml", []byte(head+"rules:\n  - "+written+"\n"), policy.Options{})
		require.ErrorContains(t, err, says)
	}
}
