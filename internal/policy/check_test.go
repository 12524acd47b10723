package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

const checkedRules = `
rules:
  - {name: never, tools: [drop], deny: Never.}
  - {name: small, tools: [refund], when: args.cents < 100, check: fraud, allow: true}
  - {name: also, tools: [refund], when: args.cents < 200, allow: true}
  - {name: large, tools: [refund], ask: {why: It is large., quorums: [{name: sec, need: 2, from: {groups: [security]}}]}}
  - {name: edits, tools: [edit], check: fraud, ask: {why: It edits., quorums: [{name: ops, from: {groups: [sre]}}]}}
`

var centsTool = policy.Tool{Agent: "ops", Name: "refund", Schema: []byte(`{"type":"object","properties":{"cents":{"type":"integer"}},"required":["cents"]}`)}

// answering is a check that gives this answer and notes what it was asked.
func answering(a policy.Answer, err error, asked *[]policy.Question) policy.Checker {
	return func(_ context.Context, q policy.Question) (policy.Answer, error) {
		*asked = append(*asked, q)
		return a, err
	}
}

func withTools(o policy.Options) policy.Options {
	o.Tools = []policy.Tool{centsTool, {Agent: "ops", Name: "edit"}, {Agent: "ops", Name: "drop"}}
	o.Checks = []string{"fraud"}
	return o
}

func callOf(tool, args string) approvals.Proposal {
	return approvals.Proposal{Agent: "ops", Requester: "U0ALICE001", Call: approvals.ToolCall{ID: "c1", Name: tool, Args: []byte(args)}, At: monday}
}

func TestACheckOnlyMakesARuleStricter(t *testing.T) {
	small, large, edit := callOf("refund", `{"cents":5}`), callOf("refund", `{"cents":500}`), callOf("edit", `{}`)
	for name, c := range map[string]struct {
		call   approvals.Proposal
		answer policy.Answer
		err    error
		want   string
		asked  int
	}{
		"ok leaves an allow":         {small, policy.Answer{Answer: "ok"}, nil, "runs", 1},
		"ask skips every allow":      {small, policy.Answer{Answer: "ask", Reason: "New customer."}, nil, "asks: large", 1},
		"deny refuses":               {small, policy.Answer{Answer: "deny", Reason: "Blocked customer"}, nil, "refused: The check fraud denies this call: Blocked customer.", 1},
		"deny needs no reason":       {small, policy.Answer{Answer: "deny"}, nil, "refused: The check fraud denies this call.", 1},
		"ok leaves an ask":           {edit, policy.Answer{Answer: "ok"}, nil, "asks: edits", 1},
		"ask leaves an ask":          {edit, policy.Answer{Answer: "ask"}, nil, "asks: edits", 1},
		"deny refuses what asks":     {edit, policy.Answer{Answer: "deny"}, nil, "refused: The check fraud denies this call.", 1},
		"another rule decides":       {large, policy.Answer{Answer: "deny"}, nil, "asks: large", 0},
		"an error asks everyone":     {small, policy.Answer{}, errors.New("no route"), "strictest", 1},
		"no error overrides an ok":   {small, policy.Answer{Answer: "ok"}, errors.New("no route"), "strictest", 1},
		"an empty answer":            {small, policy.Answer{}, nil, "strictest", 1},
		"an answer of its own":       {small, policy.Answer{Answer: "allow"}, nil, "strictest", 1},
		"an error of a rule's ask":   {edit, policy.Answer{}, errors.New("no route"), "strictest", 1},
		"a deny of the file decides": {callOf("drop", `{}`), policy.Answer{Answer: "ok"}, nil, "refused: Never.", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []policy.Question
			p := parse(t, checkedRules, withTools(policy.Options{AskCheck: answering(c.answer, c.err, &asked)}))
			got := say(t, p, c.call)
			if strings.HasPrefix(got, "strictest: ") {
				require.Contains(t, got, "its check gave no answer that could be used")
				got = "strictest"
			}
			require.Equal(t, c.want, got)
			require.Len(t, asked, c.asked)
			for _, q := range asked {
				require.Equal(t, "fraud", q.Check)
				require.Equal(t, c.call, q.Call)
				require.True(t, strings.HasSuffix(q.Rule, "@"+p.Version()))
			}
		})
	}
}

func TestWhatACheckSaysStandsInTheRequest(t *testing.T) {
	for name, c := range map[string]struct {
		call   approvals.Proposal
		answer policy.Answer
		want   approvals.Checked
	}{
		"that it asks, and why":    {callOf("refund", `{"cents":5}`), policy.Answer{Answer: "ask", Reason: "New *customer*."}, approvals.Checked{Check: "fraud", Answer: "ask", Said: approvals.Quote{Text: "New *customer*."}}},
		"that it agrees, not more": {callOf("edit", `{}`), policy.Answer{Answer: "ok", Reason: "Approve this, please."}, approvals.Checked{Check: "fraud", Answer: "ok"}},
		"that it did not answer":   {callOf("edit", `{}`), policy.Answer{Answer: "maybe", Reason: "x"}, approvals.Checked{Check: "fraud", Answer: "failed"}},
		"a long reason is cut":     {callOf("edit", `{}`), policy.Answer{Answer: "ask", Reason: strings.Repeat("x", 600)}, approvals.Checked{Check: "fraud", Answer: "ask", Said: approvals.Quote{Text: strings.Repeat("x", 500), Left: 100}}},
		"nothing without one":      {callOf("refund", `{"cents":500}`), policy.Answer{Answer: "ok"}, approvals.Checked{}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []policy.Question
			p := parse(t, checkedRules, withTools(policy.Options{AskCheck: answering(c.answer, nil, &asked)}))
			r, err := p.Rule(t.Context(), c.call)
			require.NoError(t, err)
			ask, ok := r.(approvals.Ask)
			require.True(t, ok)
			require.Equal(t, c.want, ask.Checked)
			require.Equal(t, c.want.Answer == approvals.CheckFailed, ask.Unjudged, "an approved call runs only once the check has answered")
		})
	}
}

// A call is judged again before it runs, and so is its check asked again.
func TestACheckIsAskedForEveryRuling(t *testing.T) {
	var asked []policy.Question
	p := parse(t, checkedRules, withTools(policy.Options{AskCheck: answering(policy.Answer{Answer: "ok"}, nil, &asked)}))
	for range 3 {
		require.Equal(t, "runs", say(t, p, callOf("refund", `{"cents":5}`)))
	}
	require.Len(t, asked, 3)
}

// The rule that asks instead may have a check of its own, which counts as well.
func TestTheCheckOfTheNextRuleIsAskedToo(t *testing.T) {
	rules := "rules:\n  - {name: a, tools: [edit], check: fraud, allow: true}\n  - {name: b, tools: [edit], check: legal, ask: {why: It edits.}}\n"
	for legal, want := range map[policy.Answer]string{
		{Answer: "ok"}:                  "asks: b",
		{Answer: "deny", Reason: "No."}: "refused: The check legal denies this call: No.",
		{}:                              "strictest",
	} {
		var asked []string
		p := parse(t, rules, policy.Options{AskCheck: func(_ context.Context, q policy.Question) (policy.Answer, error) {
			asked = append(asked, q.Check)
			if q.Check == "fraud" {
				return policy.Answer{Answer: "ask", Reason: "Odd."}, nil
			}
			return legal, nil
		}})
		got := say(t, p, callOf("edit", `{}`))
		require.True(t, strings.HasPrefix(got, want), got)
		require.Equal(t, []string{"fraud", "legal"}, asked)
	}
}

func TestACheckThatNothingCanAskFailsClosed(t *testing.T) {
	require.Contains(t, say(t, parse(t, checkedRules, withTools(policy.Options{})), callOf("refund", `{"cents":5}`)), "strictest")
}

func TestRulesInShadowModeAskNoCheck(t *testing.T) {
	var asked []policy.Question
	var would []string
	o := withTools(policy.Options{AskCheck: answering(policy.Answer{Answer: "deny"}, nil, &asked), Shadow: func(_ context.Context, r policy.ShadowRuling) { would = append(would, r.Rule) }})
	p := parse(t, "rules:\n  - {name: s, mode: shadow, tools: [edit], check: fraud, allow: true}\n", o)
	require.Equal(t, "asks: default", say(t, p, callOf("edit", `{}`)))
	require.Equal(t, []string{"s@" + p.Version()}, would)
	require.Empty(t, asked)
}

func TestExamplesSayWhatTheirCheckAnswers(t *testing.T) {
	example := func(more string) string {
		return checkedRules + "examples:\n  - {name: n, call: {tool: refund, args: {cents: 5}}, " + more + "}\n"
	}
	for more, wrong := range map[string]string{
		"expect: {allow: small}":              "",
		"check: ok, expect: {allow: small}":   "",
		"check: ask, expect: {ask: large}":    "",
		"check: deny, expect: {deny: small}":  "",
		"check: deny, expect: {allow: small}": "expected allow: small, but it is deny: small",
		"check: failed, expect: {ask: large}": "must be ok, ask or deny",
	} {
		var asked []policy.Question
		_, err := policy.Parse("policy.yaml", []byte(head+example(more)), withTools(policy.Options{AskCheck: answering(policy.Answer{}, nil, &asked)}))
		if wrong == "" {
			require.NoError(t, err, more)
		} else {
			require.ErrorContains(t, err, wrong)
		}
		require.Empty(t, asked, "examples ask nothing")
	}
	_, err := policy.Parse("policy.yaml", []byte(head+strings.Replace(example("check: ok, expect: {ask: large}"), "cents: 5", "cents: 500", 1)), withTools(policy.Options{}))
	require.ErrorContains(t, err, "the rule that decides names no check")
}

func TestACheckThatCannotWorkIsRefused(t *testing.T) {
	for rule, wrong := range map[string]string{
		"{name: a, tools: [edit], check: frauds, allow: true}":  `there is no check "frauds"; did you mean fraud?`,
		"{name: a, tools: [edit], check: fraud, deny: No.}":     "nothing is stricter than deny",
		"{name: a, tools: [edit], check: \"A b\", allow: true}": "is not a valid name for a check",
	} {
		_, err := policy.Parse("policy.yaml", []byte(head+"rules:\n  - "+rule+"\n"), withTools(policy.Options{}))
		require.ErrorContains(t, err, wrong)
	}
	_, err := policy.Parse("policy.yaml", []byte(head+"rules:\n  - {name: a, check: other, allow: true}\n"), policy.Options{})
	require.NoError(t, err, "without a configuration, it is not known which checks there are")
}

func TestExplanationsAskChecksOnlyIfTheyCan(t *testing.T) {
	p := parse(t, checkedRules, withTools(policy.Options{}))
	e := p.Explain(t.Context(), callOf("refund", `{"cents":5}`))
	require.Equal(t, "fraud", e.Check)
	require.Contains(t, e.Text(), "-> runs without approval (small)\n   if the check fraud agrees, which was not asked here")

	var asked []policy.Question
	p = parse(t, checkedRules, withTools(policy.Options{AskCheck: answering(policy.Answer{Answer: "ask", Reason: "New\u202e."}, nil, &asked)}))
	e = p.Explain(t.Context(), callOf("refund", `{"cents":5}`))
	require.Empty(t, e.Check)
	require.Len(t, asked, 1)
	require.Contains(t, e.Text(), "small    allow  not matched: a check asks for approval\n")
	require.Contains(t, e.Text(), "large    ask    decided\n")
	require.Contains(t, e.Text(), "-> needs approval (large)")
	require.Contains(t, e.Text(), "the check fraud says: ask New")
	require.NotContains(t, e.Text(), "\u202e")

	p = parse(t, checkedRules, withTools(policy.Options{AskCheck: answering(policy.Answer{Answer: "deny", Reason: "No\x1b]0;x\a\u202e."}, nil, &asked)}))
	e = p.Explain(t.Context(), callOf("refund", `{"cents":5}`))
	require.Contains(t, e.Text(), `-> is refused (small): The check fraud denies this call: No\u001b]0;x\u0007\u202e.`)
}

// A check that is gone is a difference, though no check is asked.
func TestAReplayShowsThatACheckIsGone(t *testing.T) {
	var asked []policy.Question
	o := withTools(policy.Options{AskCheck: answering(policy.Answer{Answer: "deny"}, nil, &asked)})
	with, without := parse(t, checkedRules, o), parse(t, strings.Replace(checkedRules, "check: fraud, allow", "allow", 1), o)
	line := `{"tool":"refund","args":{"cents":5},"agent":"ops","at":"` + monday.Format(time.RFC3339) + `"}`
	var seen []policy.Difference
	sum, err := policy.Replay(t.Context(), with, without, strings.NewReader(line), func(d policy.Difference) { seen = append(seen, d) })
	require.NoError(t, err)
	require.Equal(t, 1, sum.Different)
	require.Equal(t, []string{"fraud", ""}, []string{seen[0].OldCheck, seen[0].NewCheck})
	require.Contains(t, seen[0].Changes[0], "- ")
	require.Contains(t, seen[0].Changes[0], "the check fraud")
	require.Empty(t, asked)
	require.Equal(t, []string{"the check fraud of small"}, policy.Lifted(with, without))
}

// Where it can't be found out whether a rule above decides, the rule with the check may.
// A call that people approved must not run then, as if the check had agreed.
func TestACallIsUnjudgedIfARuleWithACheckMayDecideAboutIt(t *testing.T) {
	const above = "rules:\n  - {name: own, tools: [edit], requesters: {groups: [sre]}, allow: true}\n"
	for name, c := range map[string]struct {
		rules string
		gate  approvals.Gate
		want  bool
	}{
		"it is the next one":                  {above + "  - {name: edits, tools: [edit], check: fraud, ask: {why: It edits.}}\n", "", true},
		"it is broken itself":                 {strings.Replace(above, "allow", "check: fraud, allow", 1), "", true},
		"it can't be judged either":           {above + "  - {name: edits, tools: [edit], requesters: {groups: [security]}, check: fraud, ask: {why: It edits.}}\n", "", true},
		"no rule has one":                     {above + "  - {name: edits, tools: [edit], ask: {why: It edits.}}\n", "", false},
		"it does not match":                   {above + "  - {name: edits, tools: [edit], when: run.steps > 5, check: fraud, ask: {why: It edits.}}\n", "", false},
		"another one decides before it":       {above + "  - {name: b, tools: [edit], ask: {why: It edits.}}\n  - {name: edits, tools: [\"*\"], check: fraud, ask: {why: It edits.}}\n", "", false},
		"it allows, and the tool itself asks": {"rules:\n  - {name: own, tools: [edit], requesters: {groups: [sre]}, ask: {why: It edits.}}\n  - {name: b, tools: [edit], check: fraud, allow: true}\n", approvals.GateDeclared, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []policy.Question
			o := withTools(policy.Options{AskCheck: answering(policy.Answer{Answer: "deny"}, nil, &asked)}) // no directory: groups can't be looked up
			call := callOf("edit", `{}`)
			call.Gate = c.gate
			r, err := parse(t, c.rules, o).Rule(t.Context(), call)
			require.NoError(t, err)
			ask, ok := r.(approvals.Ask)
			require.True(t, ok)
			require.Contains(t, ask.Why, "could not be judged")
			require.Equal(t, c.want, ask.Unjudged)
			require.Empty(t, asked)
		})
	}
}
