package policy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

const head = `
groups: {sre: S0SRE00001, security: S0SECUR001, war-room: C0WARROOM1}
people: {alice: U0ALICE001, bob: U0BOB00001, carol: U0CAROL001}
managers: {alice: carol}
default: {why: default, quorums: [{name: ops, from: {groups: [sre]}}]}
`

// A dir is a directory in which one person is in some groups, or a broken one.
type dir struct {
	in  []approvals.GroupID
	err error
}

func (d dir) GroupsOf(context.Context, approvals.UserID, []approvals.GroupID) ([]approvals.GroupID, error) {
	return d.in, d.err
}

func parse(tb testing.TB, rules string, o policy.Options) *policy.Policy {
	tb.Helper()
	p, err := policy.Parse("policy.yaml", []byte(head+rules), o)
	require.NoError(tb, err)
	return p
}

var monday = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// say is a ruling in a few words.
func say(tb testing.TB, p *policy.Policy, q approvals.Proposal) string {
	tb.Helper()
	r, err := p.Rule(tb.Context(), q)
	require.NoError(tb, err)
	switch r := r.(type) {
	case approvals.Permit:
		return "runs"
	case approvals.Refuse:
		return "refused: " + r.Reason
	case approvals.Ask:
		require.NotEmpty(tb, r.Requirement.Quorums)
		require.True(tb, strings.HasSuffix(r.Rule, "@"+p.Version()), r.Rule)
		if strings.Contains(r.Why, "could not be judged") {
			require.True(tb, r.Requirement.Separation && r.Requirement.Deny == 1 && !r.Requirement.Delegation && !r.Requirement.EditorMaySign)
			require.Equal(tb, p.Strictest(q.At).Deadline, r.Requirement.Deadline)
			return "strictest: " + r.Why
		}
		return "asks: " + strings.TrimSuffix(r.Rule, "@"+p.Version())
	}
	return ""
}

// unnamed is the ruling without the rule that permits or refuses.
func unnamed(r approvals.Ruling) approvals.Ruling {
	switch r := r.(type) {
	case approvals.Permit:
		return approvals.Permit{}
	case approvals.Refuse:
		return approvals.Refuse{Reason: r.Reason}
	default:
		return r
	}
}

// What let a call run without anybody can be found again later, like what asked.
func TestEveryRulingNamesItsRuleAndTheVersionOfThePolicy(t *testing.T) {
	p := parse(t, `
rules:
  - {name: yes, tools: [x], allow: true}
  - {name: no, tools: [y], deny: Not here.}
  - {name: perhaps, tools: [z], ask: {why: It writes.}}
`, policy.Options{})
	for tool, rule := range map[string]string{"x": "yes", "y": "no", "z": "perhaps", "other": "default"} {
		r, err := p.Rule(t.Context(), call(tool, "{}"))
		require.NoError(t, err)
		var got string
		switch r := r.(type) {
		case approvals.Permit:
			got = r.Rule
		case approvals.Refuse:
			got = r.Rule
		case approvals.Ask:
			got = r.Rule
		}
		require.Equal(t, rule+"@"+p.Version(), got)
	}
}

func call(tool, args string) approvals.Proposal {
	return approvals.Proposal{Agent: "ops", Call: approvals.ToolCall{ID: "1", Name: tool, Args: []byte(args)}, Requester: "U0ALICE001", Channel: "C0WARROOM1", At: monday}
}

func with(q approvals.Proposal, change func(*approvals.Proposal)) approvals.Proposal {
	change(&q)
	return q
}

func TestARuleDecidesByWhatItSees(t *testing.T) {
	p := parse(t, `
rules:
  - {name: reads, tools: ["read_*"], allow: true}
  - {name: small, tools: [pay], when: args.amount <= 10, allow: true}
  - {name: big, tools: [pay], when: args.amount > 1000, deny: too much}
  - {name: pays, tools: [pay], ask: {why: money}}
  - {name: no-secrets, tools: [read_secret], when: args.name == "root", deny: never}
  - {name: late, tools: [boss], ask: {quorums: [{name: boss, from: {roles: [manager]}}], fragile: true}}
  - {name: room, tools: [room], channels: [war-room], ask: {quorums: [{name: room, from: {channel: here}}]}}
  - {name: exact, tools: [exact], when: args.id == 9007199254740993, allow: true}
  - {name: optional, tools: [optional], when: 'args.?force.orValue(false)', deny: forced}
  - {name: has, tools: [optional], when: '!has(args.force)', allow: true}
  - {name: runaway, tools: [loop], when: 'run.executed[tool] >= 3 || run.denied["other"] > 0', deny: enough}
  - {name: mine, tools: [mine], requesters: {people: [bob], groups: [security]}, allow: true}
  - {name: mixed, tools: [mixed], when: args.a < 1.5 && args.b > 1 && args.c == 3, allow: true}
`, policy.Options{Directory: dir{in: []approvals.GroupID{"S0SECUR001"}}})

	for name, c := range map[string]struct {
		q    approvals.Proposal
		want string
	}{
		"what no rule names asks":                 {call("other", `{}`), "asks: default"},
		"an allow lets it run":                    {call("read_file", `{}`), "runs"},
		"an allow never lifts what a tool asks":   {with(call("read_file", `{}`), func(q *approvals.Proposal) { q.Gate = approvals.GateRaised }), "asks: default"},
		"the first that matches decides":          {call("pay", `{"amount":5}`), "runs"},
		"then the next":                           {call("pay", `{"amount":50}`), "asks: pays"},
		"a deny wins where others matched before": {call("read_secret", `{"name":"root"}`), "refused: never"},
		"a deny wins from behind":                 {call("pay", `{"amount":5000}`), "refused: too much"},
		"a missing argument asks everyone":        {call("pay", `{}`), "strictest: The rule big could not be judged for this call: something that its condition needs is missing. That rule denies: too much. So it needs every approval that the policy can ask for."},
		"so does one of a strange type":           {call("pay", `{"amount":"x"}`), "strictest: The rule big could not be judged for this call: its condition could not be evaluated. That rule denies: too much. So it needs every approval that the policy can ask for."},
		"arguments that are none ask everyone":    {call("pay", `[`), "strictest: The rule big could not be judged for this call: the arguments could not be read. That rule denies: too much. So it needs every approval that the policy can ask for."},
		"a manager is the requester's":            {call("boss", `{}`), "asks: late"},
		"without a manager everyone is needed":    {with(call("boss", `{}`), func(q *approvals.Proposal) { q.Requester = "U0BOB00001" }), "strictest: The rule late could not be judged for this call: the requester has no manager. That rule asks: default. So it needs every approval that the policy can ask for."},
		"here is the channel":                     {call("room", `{}`), "asks: room"},
		"a direct message is no channel":          {with(call("room", `{}`), func(q *approvals.Proposal) { q.Channel = "D0ALICE001" }), "asks: default"},
		"large whole numbers are exact":           {call("exact", `{"id":9007199254740993}`), "runs"},
		"and not the one beside":                  {call("exact", `{"id":9007199254740992}`), "asks: default"},
		"beyond all numbers nobody knows":         {call("exact", `{"id":99999999999999999999999}`), "strictest: The rule exact could not be judged for this call: a number in the arguments is too large or too small. So it needs every approval that the policy can ask for."},
		"an optional argument may be there":       {call("optional", `{"force":true}`), "refused: forced"},
		"or not":                                  {call("optional", `{}`), "runs"},
		"what was never called counts zero":       {call("loop", `{}`), "asks: default"},
		"what the run did counts":                 {with(call("loop", `{}`), func(q *approvals.Proposal) { q.SoFar.Executed = map[string]int{"loop": 3} }), "refused: enough"},
		"groups of the requester":                 {call("mine", `{}`), "runs"},
		"numbers of any type compare":             {call("mixed", `{"a":1,"b":1.5,"c":3.0}`), "runs"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, say(t, p, c.q)) })
	}
}

// A byGroup is a directory that says who is in some groups, and fails for the
// others.
type byGroup struct {
	in    map[approvals.GroupID]bool
	asked *[]approvals.GroupID
}

func (d byGroup) GroupsOf(_ context.Context, _ approvals.UserID, of []approvals.GroupID) ([]approvals.GroupID, error) {
	*d.asked = append(*d.asked, of...)
	var in []approvals.GroupID
	for _, g := range of {
		member, known := d.in[g]
		if !known {
			return nil, errors.New("down")
		}
		if member {
			in = append(in, g)
		}
	}
	return in, nil
}

func TestEachGroupIsLookedUpOnceAndOnlyForTheRulesThatNeedIt(t *testing.T) {
	const rules = `
rules:
  - {name: a, tools: [x], when: '"sre" in requester.groups', deny: a}
  - {name: b, tools: [x], when: 'requester.groups.exists(g, g == "sre") && run.steps > 5', deny: b}
  - {name: c, tools: [x, z], requesters: {groups: [security, war-room]}, allow: true}
  - {name: d, tools: [size], when: 'size(requester.groups) == 1', allow: true}
`
	var asked []approvals.GroupID
	p := parse(t, rules, policy.Options{Directory: byGroup{map[approvals.GroupID]bool{"S0SRE00001": false, "S0SECUR001": true}, &asked}})
	require.Equal(t, "asks: default", say(t, p, call("y", `{}`)))
	require.Empty(t, asked)
	require.Equal(t, "runs", say(t, p, call("x", `{}`)), "a group that cannot be looked up, beside one that holds them")
	require.Equal(t, []approvals.GroupID{"S0SRE00001", "C0WARROOM1", "S0SECUR001"}, asked)
	require.Contains(t, say(t, p, call("size", `{}`)), "The rule d could not be judged", "who counts groups needs them all")

	p = parse(t, rules, policy.Options{Directory: byGroup{map[approvals.GroupID]bool{"S0SRE00001": false, "C0WARROOM1": false}, &asked}})
	require.Contains(t, say(t, p, call("z", `{}`)), "The rule c could not be judged")
	p = parse(t, rules, policy.Options{Directory: byGroup{map[approvals.GroupID]bool{"S0SRE00001": true, "C0WARROOM1": false, "S0SECUR001": false}, &asked}})
	require.Equal(t, "refused: a", say(t, p, call("x", `{}`)))
	require.Equal(t, "runs", say(t, p, call("size", `{}`)))
}

func TestADirectoryThatIsDownAsksEveryone(t *testing.T) {
	rules := `
rules:
  - {name: a, tools: [x], when: '"sre" in requester.groups', deny: a}
  - {name: b, tools: [x], allow: true}
`
	for _, o := range []policy.Options{{}, {Directory: dir{err: errors.New("secret detail")}}} {
		got := say(t, parse(t, rules, o), call("x", `{}`))
		require.Equal(t, "strictest: The rule a could not be judged for this call: the groups of the requester could not be looked up. That rule denies: a. So it needs every approval that the policy can ask for.", got)
	}
}

func TestADenyThatMatchesWinsOverRulesThatCannotBeJudged(t *testing.T) {
	p := parse(t, `
rules:
  - {name: broken, tools: [x], when: args.missing, deny: a}
  - {name: no, tools: [x], when: args.there, deny: no}
`, policy.Options{})
	require.Equal(t, "refused: no", say(t, p, call("x", `{"there":true}`)))
	require.Contains(t, say(t, p, call("x", `{"there":false}`)), "strictest: The rule broken")
}

func TestAConditionThatWouldTakeTooLongAsksEveryone(t *testing.T) {
	p := parse(t, `
rules:
  - {name: slow, tools: [x], when: 'args.l.all(a, args.l.all(b, args.l.all(c, a + b + c > 0)))', allow: true}
`, policy.Options{})
	list := "1" + strings.Repeat(",1", 500)
	start := time.Now()
	require.Contains(t, say(t, p, call("x", `{"l":[`+list+`]}`)), "its condition would take too long")
	require.Less(t, time.Since(start), 2*time.Second)
	require.Equal(t, "runs", say(t, p, call("x", `{"l":[1,2,3]}`)))
}

func TestNoArgumentAppearsInWhatIsSaidOfAFailure(t *testing.T) {
	p := parse(t, `
rules:
  - {name: a, tools: [x], when: 'args.m[args.key] == 1 || int(args.n) > 1', allow: true}
`, policy.Options{})
	q := call("x", `{"m":{},"key":"hunter2","n":"hunter2"}`)
	require.NotContains(t, say(t, p, q)+p.Explain(t.Context(), q).Text(), "hunter2")
}

func TestSettingsOfToolsComeBehindTheFile(t *testing.T) {
	always, never := policy.Setting{Approval: policy.ApprovalTrue, Place: "agents[0].approval"}, policy.Setting{Approval: policy.ApprovalFalse, Place: "agents[0].tools.x.approval"}
	when := policy.Setting{Approval: policy.ApprovalWhen, When: "args.n > 1", Place: "agents[0].approval"}
	schema := []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	for name, c := range map[string]struct {
		tool policy.Tool
		gate approvals.Gate
		args string
		want string
	}{
		"nothing is said: it asks":               {policy.Tool{}, "", `{}`, "asks: default"},
		"the code says never: it runs":           {policy.Tool{Asks: policy.AsksNever}, "", `{}`, "runs"},
		"the code says when, and not now":        {policy.Tool{Asks: policy.AsksWhen}, "", `{}`, "runs"},
		"the code says when, and now":            {policy.Tool{Asks: policy.AsksWhen}, approvals.GatePredicate, `{}`, "asks: default"},
		"the code says always":                   {policy.Tool{Asks: policy.AsksAlways}, approvals.GateDeclared, `{}`, "asks: default"},
		"the agent asks, whatever the code says": {policy.Tool{Asks: policy.AsksNever, AgentSetting: always}, "", `{}`, "asks: agents[0].approval"},
		"the tool's setting comes before":        {policy.Tool{AgentSetting: always, Setting: never}, "", `{}`, "runs"},
		"a setting never lifts what a tool asks": {policy.Tool{Setting: never}, approvals.GateRaised, `{}`, "asks: default"},
		"a condition that is true asks":          {policy.Tool{AgentSetting: when}, "", `{"n":2}`, "asks: agents[0].approval"},
		"one that is false lets it run":          {policy.Tool{AgentSetting: when}, "", `{"n":1}`, "runs"},
		"one that breaks asks everyone":          {policy.Tool{AgentSetting: when}, "", `{}`, "strictest: The rule agents[0].approval could not be judged for this call: something that its condition needs is missing. That rule asks: default. So it needs every approval that the policy can ask for."},
	} {
		t.Run(name, func(t *testing.T) {
			c.tool.Agent, c.tool.Name, c.tool.Schema = "ops", "x", schema
			p := parse(t, "", policy.Options{Tools: []policy.Tool{c.tool}})
			require.Equal(t, c.want, say(t, p, with(call("x", c.args), func(q *approvals.Proposal) { q.Gate = c.gate })))
		})
	}
	slip := policy.Setting{Approval: policy.ApprovalWhen, When: "args.m > 1", Place: "agents[0].tools.x.approval"}
	_, err := policy.Parse("p.yaml", []byte(head), policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x", Schema: schema, Setting: slip}}})
	require.EqualError(t, err, `agents[0].tools.x.approval: there is no argument "m" (for the tool x of ops); use n`)
}

func TestAToolThatIsNotKnownIsNeverLetThroughByHints(t *testing.T) {
	p := parse(t, `
rules:
  - {name: reads, when: annotations.readOnlyHint && !annotations.destructiveHint, allow: true}
`, policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x", Annotations: policy.Annotations{ReadOnlyHint: true, DestructiveHint: new(bool)}}}})
	require.Equal(t, "runs", say(t, p, call("x", `{}`)))
	require.Equal(t, "asks: default", say(t, p, call("y", `{}`)))
}

func TestTheStrictestRequirementNeedsEveryQuorumOfTheFile(t *testing.T) {
	p := parse(t, `
rules:
  - {name: a, tools: [a], ask: {within: 2h, fragile: true, requester_may_approve: true, delegates: true, editor_may_approve: true, quorums: [{name: ops, need: 3, from: {groups: [sre]}}, {name: boss, from: {roles: [manager]}}]}}
  - {name: b, tools: [b], ask: {quorums: [{any: [{name: one, from: {groups: [security]}}, {name: ops, need: 2, from: {people: [alice, bob, carol]}}]}]}}
  - {name: c, tools: [c], mode: shadow, ask: {within: 1h, quorums: [{name: shadow, from: {groups: [war-room]}}]}}
`, policy.Options{})
	got := p.Strictest(monday)
	require.Equal(t, approvals.Requirement{
		Quorums: []approvals.Quorum{
			{Name: "ops", Need: 3, Stage: 1, From: approvals.From{Groups: []approvals.GroupID{"S0SRE00001"}}},
			{Name: "boss", Need: 1, Stage: 1, From: approvals.From{Users: []approvals.UserID{"U0CAROL001"}}},
			{Name: "one", Need: 1, Stage: 1, From: approvals.From{Groups: []approvals.GroupID{"S0SECUR001"}}},
			{Name: "ops+", Need: 2, Stage: 1, From: approvals.From{Users: []approvals.UserID{"U0ALICE001", "U0BOB00001", "U0CAROL001"}}},
		},
		Deny: 1, Separation: true, Deadline: monday.Add(2 * time.Hour),
	}, got)
	got.Quorums[0].From.Groups[0] = "S0EVIL0001"
	require.NotEqual(t, got, p.Strictest(monday), "nobody shares memory with the policy")
}

func TestShadowRulesAreReportedAndNeverEnforced(t *testing.T) {
	var told []string
	o := policy.Options{Shadow: func(_ context.Context, r policy.ShadowRuling) {
		told = append(told, fmt.Sprintf("%s of %s by %s: %T, was %T", strings.Split(r.Rule, "@")[0], r.Tool, r.Agent, r.Would, r.Was))
	}}
	rules := `
rules:
  - {name: try-deny, mode: shadow, tools: [x], when: args.n > 1, deny: no}
  - {name: run, tools: [x], allow: true}
  - {name: try-ask, mode: shadow, tools: [x], ask: {why: behind}}
`
	p := parse(t, rules, o)
	require.Equal(t, "runs", say(t, p, call("x", `{"n":2}`)))
	require.Equal(t, []string{
		"try-deny of x by ops: approvals.Refuse, was approvals.Permit",
		"try-ask of x by ops: approvals.Permit, was approvals.Permit",
	}, told)
	told = nil
	require.Equal(t, "runs", say(t, p, call("x", `{}`)))
	require.Equal(t, "try-deny of x by ops: approvals.Ask, was approvals.Permit", told[0], "it could not be judged")

	told = nil
	p = parse(t, "mode: shadow\nrules:\n  - {name: no, tools: [x], deny: no}\n", o)
	require.Equal(t, "asks: default", say(t, p, call("x", `{}`)))
	require.Equal(t, []string{"no of x by ops: approvals.Refuse, was approvals.Ask"}, told)
}

// A name is no path, though servers and remote agents have names with a slash.
func TestAPatternMatchesAnyTextInTheNameOfATool(t *testing.T) {
	for glob, names := range map[string]map[string]bool{
		"*":        {"Bash": true, "files/delete": true, "a/b/c": true},
		"*delete*": {"files/delete_all": true, "deleted/files": true, "files/write": false},
		"files/*":  {"files/a": true, "files/a/b": true, "files": false},
		"files?ls": {"files/ls": true, "files.ls": true, "filesls": false},
		"[^a]b":    {"/b": true, "ab": false},
		"a/b":      {"a/b": true, "a.b": false},
	} {
		p := parse(t, `rules: [{name: no, tools: ["`+glob+`"], deny: No.}]`, policy.Options{Remote: []string{"claude"}})
		for name, denied := range names {
			q := call(name, `{}`)
			q.Agent = "claude"
			want := "asks: default"
			if denied {
				want = "refused: No."
			}
			require.Equal(t, want, say(t, p, q), "%s, %s", glob, name)
		}
	}
	tools := []policy.Tool{{Agent: "ops", Name: "files/delete"}}
	_, err := policy.Parse("policy.yaml", []byte(head+`rules: [{name: no, tools: ["*delete*"], deny: No.}]`), policy.Options{Tools: tools})
	require.NoError(t, err)
}
