package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

func TestACallOfAToolThatIsNotThereIsExplainedAsWhatHappens(t *testing.T) {
	p := companyPolicy(t)
	e := p.Explain(t.Context(), call("delete_fil", `{}`))
	require.True(t, e.Unknown)
	require.Equal(t, "delete_fil, by ops\n-> does not run: ops has no tool of this name, so the call goes back to the model and never reaches the policy\n", e.Text())
	require.False(t, p.Explain(t.Context(), call("delete_file", `{"path":"a"}`)).Unknown)
	require.False(t, parse(t, "", policy.Options{}).Explain(t.Context(), call("x", `{}`)).Unknown, "without tools nobody knows")
}

// Arguments that do not fit the tool are the model's to correct: nobody is asked
// to sign them, so an explanation does not say so.
func TestACallThatDoesNotFitItsToolIsExplainedAsWhatHappens(t *testing.T) {
	p := companyPolicy(t)
	const never = "-> does not run: the arguments don't fit the tool's schema, so the call goes back to the model and never reaches the policy\n"
	for args, want := range map[string][]string{
		`{}`:                                {"args.path is missing"},
		``:                                  {"args.path is missing"},
		`{"path": 7, "p\u2060": "hunter2"}`: {"args.path: got number, want string", `there is no args["p\u2060"]`},
		`{"path": "a", "path": "b"}`:        {`arguments: invalid JSON at byte 14: the key "path" occurs twice in one object`},
	} {
		e := p.Explain(t.Context(), call("delete_file", args))
		require.Equal(t, want, e.Misfits, args)
		require.Nil(t, e.Ruling)
		require.Empty(t, e.By)
		require.Equal(t, "delete_file, by ops\n"+never+"   "+strings.Join(want, "\n   ")+"\n", e.Text())
	}
	require.Empty(t, p.Explain(t.Context(), call("delete_file", `{"path":"a"}`)).Misfits)
	require.NotNil(t, parse(t, "", policy.Options{}).Explain(t.Context(), call("x", `{}`)).Ruling, "without tools nobody knows")
	odd := []policy.Tool{{Agent: "ops", Name: "x", Schema: []byte(`{"$ref":"https://example.com/x"}`)}}
	require.NotNil(t, parse(t, "", policy.Options{Tools: odd}).Explain(t.Context(), call("x", `{}`)).Ruling)
	_, err := policy.Parse("p.yaml", []byte(head+"examples: [{name: e, call: {tool: x}, expect: {ask: default}}]\n"), policy.Options{Tools: odd})
	require.ErrorContains(t, err, "the arguments cannot be checked for the tool x of ops: its schema cannot be read")
}

// What the schema says of a value is said without the value.
func TestAMisfitQuotesNoValue(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"a":{"type":"string","pattern":"^x"},"b":{"type":"integer","maximum":3},
		"c":{"enum":["u","v"]},"d":{"anyOf":[{"type":"string","minLength":30},{"const":1}]},"e":{"type":"array","items":{"type":"string"}}}}`)
	p := parse(t, "", policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x", Schema: schema}}})
	e := p.Explain(t.Context(), call("x", `{"a":"hunter2","b":31337,"c":"hunter2","d":"hunter2","e":["x",31337]}`))
	require.Equal(t, []string{
		"args.a: not what the schema says under pattern", "args.b: not what the schema says under maximum", "args.c: value must be one of 'u', 'v'",
		"args.d: not what the schema says under minLength", "args.d: value must be 1", `args.e[1]: got number, want string`,
	}, e.Misfits)
}

// An allow above an ask leaves the ask what the tool's own code wants signed.
func TestAnAllowAboveAnAskOfAToolThatMayAskIsNoMistake(t *testing.T) {
	p := parse(t, "rules:\n  - {name: a, tools: [x], allow: true}\n  - {name: b, tools: [x], ask: {why: Mind.}}\n",
		policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x", Asks: policy.AsksWhen}}})
	require.Equal(t, "runs", say(t, p, call("x", `{}`)))
	require.Equal(t, "asks: b", say(t, p, with(call("x", `{}`), func(q *approvals.Proposal) { q.Gate = approvals.GatePredicate })))
}

// The bot never lets such a call run, whatever allows it.
func TestACallOfAToolThatAlwaysAsksIsExplainedAsOneThatNeedsApproval(t *testing.T) {
	p := parse(t, "rules: [{name: a, when: 'has(args.x)', allow: true}]\n",
		policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x", Asks: policy.AsksAlways}, {Agent: "ops", Name: "y"}}})
	e := p.Explain(t.Context(), call("x", `{"x":1}`))
	require.Equal(t, "default@"+p.Version(), e.By)
	require.Contains(t, e.Text(), "a        allow  not matched: the tool itself asks for approval\n")
	require.Contains(t, e.Text(), "-> needs approval (default)")
	require.Equal(t, approvals.Permit{}, unnamed(p.Explain(t.Context(), call("y", `{"x":1}`)).Ruling))
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

// The tool and the agent of a recorded call are what a model or an agent wrote.
func TestAnExplanationShowsWhatATerminalWouldObey(t *testing.T) {
	p := parse(t, "", policy.Options{})
	q := call("rm\x1b[2J\u202e\nx", `{}`)
	q.Agent = "ops\x1b[2J"
	require.Contains(t, p.Explain(t.Context(), q).Text(), `rm\u001b[2J\u202e\nx, by ops\u001b[2J`+"\n")
}

// What a recorded call says of the groups of its requester counts in an explanation as it
// does in a replay.
func TestAnExplanationTakesTheGroupsOfARecordedCall(t *testing.T) {
	p := parse(t, "rules:\n  - {name: own, tools: [edit], requesters: {groups: [sre]}, allow: true}\n", policy.Options{})
	r := policy.Record(callOf("edit", `{}`))
	require.Contains(t, p.ExplainCall(t.Context(), r).Text(), "could not be looked up")
	r.Groups = &policy.RecordedGroups{"S0SRE00001"}
	require.Contains(t, p.ExplainCall(t.Context(), r).Text(), "-> runs without approval (own)")
	r.Groups = &policy.RecordedGroups{}
	require.Contains(t, p.ExplainCall(t.Context(), r).Text(), "-> needs approval (default)")
}
