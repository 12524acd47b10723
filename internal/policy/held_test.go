package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

func TestARulingSharesNoMemoryWithThePolicy(t *testing.T) {
	p := parse(t, `
rules:
  - {name: a, tools: [a], ask: {fragile: true, quorums: [{name: x, from: {groups: [sre], people: [bob]}}], denials: 2, veto: [{name: v, from: {groups: [security], people: [carol]}}], escalate: [{after: 1h, quorum: x, add: {groups: [security], people: [alice]}}]}}
  - {name: broken, tools: [b], when: args.x, deny: no}
`, policy.Options{})
	for _, tool := range []string{"a", "b", "other"} {
		first := asked(t, p, call(tool, `{}`)).Requirement
		before := fmt.Sprintf("%+v", first)
		var of []*approvals.From
		for i := range first.Quorums {
			of = append(of, &first.Quorums[i].From)
			first.Quorums[i].Need = 99
		}
		for i := range first.Vetoes {
			of = append(of, &first.Vetoes[i].From)
			first.Vetoes[i].Need = 99
		}
		for i := range first.Ladder {
			of = append(of, &first.Ladder[i].Add)
		}
		for _, f := range of {
			for i := range f.Users {
				f.Users[i] = "U0EVIL0001"
			}
			for i := range f.Groups {
				f.Groups[i] = "S0EVIL0001"
			}
		}
		require.Equal(t, before, fmt.Sprintf("%+v", asked(t, p, call(tool, `{}`)).Requirement), tool)
	}
}

func TestAQuorumMayNameTheChannelAndAlternativesHaveTheirStage(t *testing.T) {
	p := parse(t, `
rules:
  - {name: a, tools: [a], channels: [war-room], ask: {fragile: true, quorums: [{name: room, from: {groups: [sre], channel: here}}, {stage: 3, any: [{name: sec, from: {groups: [security]}}, {all: [{name: bob, from: {people: [bob]}}, {name: carol, from: {people: [carol]}}]}]}]}}
`, policy.Options{})
	require.Equal(t, []approvals.Quorum{
		{Name: "room", Need: 1, Stage: 1, From: approvals.From{Groups: []approvals.GroupID{"S0SRE00001", "C0WARROOM1"}}},
		{Name: "sec", Need: 1, Stage: 3, Choice: 1, Option: 1, From: approvals.From{Groups: []approvals.GroupID{"S0SECUR001"}}},
		{Name: "bob", Need: 1, Stage: 3, Choice: 1, Option: 2, From: approvals.From{Users: []approvals.UserID{"U0BOB00001"}}},
		{Name: "carol", Need: 1, Stage: 3, Choice: 1, Option: 2, From: approvals.From{Users: []approvals.UserID{"U0CAROL001"}}},
	}, asked(t, p, call("a", `{}`)).Requirement.Quorums)
}

func TestTheMostPlacesOfAnyAskAreNeededInWhateverOrder(t *testing.T) {
	for _, needs := range [][3]int{{1, 3, 2}, {3, 2, 1}, {2, 1, 3}} {
		var rules strings.Builder
		for i, n := range needs {
			fmt.Fprintf(&rules, "  - {name: r%d, tools: [t%d], ask: {quorums: [{name: x, need: %d, from: {groups: [security]}}]}}\n", i, i, n)
		}
		p := parse(t, "rules:\n"+rules.String(), policy.Options{})
		require.Equal(t, []string{"ops1[][S0SRE00001]", "x3[][S0SECUR001]"}, names(p.Strictest(monday).Quorums))
	}
}

func TestADenyBehindOneThatIsBrokenIsExplainedAsDeciding(t *testing.T) {
	p := parse(t, `
rules:
  - {name: broken, tools: [x], when: args.missing, deny: a}
  - {name: no, tools: [x], when: args.there, deny: no}
  - {name: yes, tools: [x], allow: true}
`, policy.Options{})
	e := p.Explain(t.Context(), call("x", `{"there":true}`))
	require.Equal(t, approvals.Refuse{Reason: "no"}, unnamed(e.Ruling))
	require.Equal(t, "no@"+p.Version(), e.By)
	var outcomes []policy.Outcome
	for _, s := range e.Steps {
		outcomes = append(outcomes, s.Outcome)
	}
	require.Equal(t, []policy.Outcome{policy.Broken, policy.Decided, policy.Skipped, policy.Skipped}, outcomes)
}

func TestWhatAShadowRuleWouldRule(t *testing.T) {
	for name, c := range map[string]struct{ rules, args, want string }{
		"a deny wins over what matched before it":      {"{name: a, tools: [x], allow: true};{name: s, mode: shadow, tools: [x], deny: s}", `{}`, "deny s"},
		"a deny changes nothing of a refusal":          {"{name: a, tools: [x], deny: a};{name: s, mode: shadow, tools: [x], deny: s}", `{}`, "deny a"},
		"an ask wins over an allow behind it":          {"{name: s, mode: shadow, tools: [x], ask: {why: s}};{name: a, tools: [x], allow: true}", `{}`, "ask s"},
		"and not over one before it":                   {"{name: a, tools: [x], allow: true};{name: s, mode: shadow, tools: [x], ask: {why: s}}", `{}`, "allow"},
		"an allow lifts no rule that cannot be judged": {"{name: s, mode: shadow, tools: [x], allow: true};{name: a, tools: [x], when: args.n, deny: a}", `{}`, "ask unjudged a"},
		"a deny does": {"{name: s, mode: shadow, tools: [x], deny: s};{name: a, tools: [x], when: args.n, deny: a}", `{}`, "deny s"},
		"one that cannot be judged asks for everything": {"{name: s, mode: shadow, tools: [x], when: args.n, ask: {why: s, quorums: [{name: sec, from: {groups: [security]}}]}};{name: a, tools: [x], allow: true}", `{}`, "ask unjudged s of ops, sec"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			p := parse(t, "rules:\n  - "+strings.ReplaceAll(c.rules, ";", "\n  - ")+"\n", policy.Options{Shadow: func(_ context.Context, r policy.ShadowRuling) {
				require.Equal(t, "s", strings.Split(r.Rule, "@")[0])
				switch w := r.Would.(type) {
				case approvals.Permit:
					got = "allow"
				case approvals.Refuse:
					got = "deny " + w.Reason
				case approvals.Ask:
					got = "ask " + strings.Split(w.Rule, "@")[0]
					if strings.Contains(w.Why, "could not be judged") {
						got = "ask unjudged " + strings.Split(w.Rule, "@")[0]
					}
					if len(w.Requirement.Quorums) > 1 {
						got += " of " + w.Requirement.Quorums[0].Name + ", " + w.Requirement.Quorums[1].Name
					}
				}
			}})
			_, err := p.Rule(t.Context(), call("x", c.args))
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestAFileInShadowAsksForEverythingThatItWouldAskFor(t *testing.T) {
	var would approvals.Ruling
	p := parse(t, "mode: shadow\nrules:\n  - {name: a, tools: [a], ask: {quorums: [{name: sec, need: 2, from: {groups: [security]}}]}}\n  - {name: b, tools: [x], when: args.n, deny: b}\n",
		policy.Options{Shadow: func(_ context.Context, r policy.ShadowRuling) { would = r.Would }})
	require.Equal(t, []string{"ops1[][S0SRE00001]"}, names(asked(t, p, call("x", `{}`)).Requirement.Quorums), "only the default is enforced")
	require.Equal(t, []string{"ops1[][S0SRE00001]", "sec2[][S0SECUR001]"}, names(would.(approvals.Ask).Requirement.Quorums))
	require.True(t, would.(approvals.Ask).Unjudged)
}

func TestNobodyIsInNoGroup(t *testing.T) {
	p := parse(t, "rules:\n  - {name: a, tools: [x], requesters: {groups: [sre]}, allow: true}\n", policy.Options{Directory: dir{in: []approvals.GroupID{"S0SRE00001"}}})
	require.Equal(t, "runs", say(t, p, call("x", `{}`)))
	require.Contains(t, say(t, p, with(call("x", `{}`), func(q *approvals.Proposal) { q.Requester = "" })), "strictest: The rule a could not be judged for this call: the groups of the requester")
}

func TestTheGateOfACallIsSeenWhenItIsRuledOnAgain(t *testing.T) {
	p := parse(t, `
rules:
  - {name: no, tools: [x], when: gate == "predicate", deny: no}
  - {name: ask, tools: [x], when: gate == "raised", ask: {why: raised}}
  - {name: yes, tools: [x], when: 'gate in ["declared", ""]', allow: true}
`, policy.Options{})
	for gate, want := range map[approvals.Gate]string{
		approvals.GateNone: "runs", approvals.GateDeclared: "asks: default", approvals.GatePredicate: "refused: no", approvals.GateRaised: "asks: ask",
	} {
		q := with(call("x", `{}`), func(q *approvals.Proposal) { q.Gate = gate })
		require.Equal(t, want, say(t, p, q))
		require.Equal(t, want, say(t, p, q), "again")
	}
}

func TestWhoIsGoneIsRefusedInARuleThatIsTriedToo(t *testing.T) {
	roster := &policy.Roster{
		People: map[approvals.UserID]policy.Standing{"U0ALICE001": policy.Member, "U0CAROL001": policy.Member, "U0BOB00001": policy.Gone, "U0DAN00001": policy.Member},
		Groups: map[approvals.GroupID][]approvals.UserID{"S0SRE00001": {"U0ALICE001", "U0CAROL001", "U0DAN00001"}},
	}
	_, err := policy.Parse("p.yaml", []byte(head+"rules:\n  - {name: a, mode: shadow, tools: [a], ask: {fragile: true, quorums: [{name: x, from: {people: [bob]}}]}}\n"), policy.Options{Roster: roster})
	require.ErrorContains(t, err, "U0BOB00001 is a bot or a deactivated account")
}
