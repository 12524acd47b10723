package agentrun_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/summary"
)

// The rule goes before the agent's setting, that before the tool, and that before
// what is made from the schema. External calls have a summary too.
func TestEveryCallThatIsSetAsideHasASummary(t *testing.T) {
	const schema = `{"type":"object","properties":{"x":{"type":"integer"},"token":{"type":"string","writeOnly":true}}}`
	w := newWorld(t)
	tool := func(name string, kind agentrun.Kind, summary string) agentrun.Tool {
		f := w.does(name, kind)
		f.spec.Schema, f.spec.WriteOnly, f.spec.Summary = json.RawMessage(schema), []string{"/token"}, summary
		return f
	}
	w.agent.Tools = []agentrun.Tool{
		tool("ruled", agentrun.KindUnapproved, "tool"), tool("set", agentrun.KindUnapproved, "tool"),
		tool("declared", agentrun.KindUnapproved, "tool"), tool("plain", agentrun.KindUnapproved, ""),
		tool("far", agentrun.KindExternal, ""), tool("far_set", agentrun.KindExternal, "tool"),
		w.does("unknown", agentrun.KindUnapproved),
	}
	w.agent.Summaries = map[string]string{"ruled": "agent", "set": "agent", "far_set": "agent"}
	w.policy.by = map[string]approvals.Ruling{"ruled": approvals.Ask{Requirement: signedBy("bob"), Summary: "rule"}}
	run := w.say(calls(
		[3]string{"1", "ruled", `{"x":1}`}, [3]string{"2", "set", `{"x":1}`}, [3]string{"3", "declared", `{"x":1}`}, [3]string{"4", "plain", `{"x":1}`},
		[3]string{"5", "far", `{"x":1}`}, [3]string{"6", "far_set", `{"x":1}`}, [3]string{"7", "unknown", `{"x":1}`},
	))
	got := map[string]string{}
	b := w.batch(run.Deferred)
	for _, a := range b.Approvals {
		got[a.Call.Name] = a.Summary
	}
	for _, c := range b.Calls {
		got[c.Call.Name] = c.Summary
		require.Equal(t, []string{"/token"}, c.WriteOnly)
	}
	require.Equal(t, map[string]string{
		"ruled": "rule", "set": "agent", "declared": "tool", "plain": "Plain{fields args.x}",
		"far": "Far{fields args.x}", "far_set": "agent", "unknown": "",
	}, got)
}

// A call from elsewhere has the summary of the rule, else the configured one. It
// has none that its executor could have put into what it hands in.
func TestACallFromElsewhereHasTheSummaryOfTheRuleOrTheConfiguration(t *testing.T) {
	d := newRemoteAdapter(t)
	d.policy.by["ruled"] = approvals.Ask{Requirement: signedBy("bob"), Summary: "Count {args.n} by the rule"}
	q := request("k1", "ruled", "gated", "gated")
	q.Calls[0].Summary, q.Calls[1].Summary = "Count {args.n} as configured", "Count {args.n} as configured"
	got, err := d.runner.Submit(t.Context(), q)
	require.NoError(t, err)
	var lines []string
	for i, a := range got.Batch.Approvals {
		lines = append(lines, summary.Of(a.Summary, a.Call.Name, q.Calls[i].Args, a.WriteOnly))
	}
	require.Equal(t, []string{
		"Count 9007199254740993 by the rule", "Count 9007199254740993 as configured", "Gated (n: 9007199254740993)",
	}, lines)

	q.Key, q.Calls[0].Summary = "k2", "Count {args.n"
	_, err = d.runner.Submit(t.Context(), q)
	require.ErrorIs(t, err, approvals.ErrInvalid, "a template that cannot be read is refused before anyone is asked")
}
