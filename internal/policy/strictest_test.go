package policy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

// A testingT is a test, of rapid too.
type testingT interface {
	require.TestingT
	Context() context.Context
}

// asked is the ask for a call.
func asked(tb testingT, p *policy.Policy, q approvals.Proposal) approvals.Ask {
	r, err := p.Rule(tb.Context(), q)
	require.NoError(tb, err)
	require.IsType(tb, approvals.Ask{}, r)
	return r.(approvals.Ask)
}

// met reports whether the requirement is met when these people approve.
func met(tb require.TestingT, r approvals.Requirement, people []approvals.Principal) bool {
	c := approvals.ToolCall{ID: "call", Name: "tool"}
	b, _, err := approvals.Open(approvals.Batch{ID: "batch", Run: "run", Requester: "U0ALICE001", OpenedAt: monday},
		[]approvals.Deferral{{Call: c, Ask: approvals.Ask{Requirement: r}}}, nil)
	require.NoError(tb, err)
	for _, by := range people {
		next, _, err := b.Apply(approvals.Decide{Decision: approvals.Decision{
			Call: c.ID, By: by, Verdict: approvals.Approve, Reason: "fine", Digest: approvals.DigestOf(b.ID, c), At: monday,
		}})
		if err == nil {
			b = next
		}
	}
	return b.Approvals[0].Status == approvals.Approved
}

func names(of []approvals.Quorum) []string {
	var all []string
	for _, q := range of {
		all = append(all, fmt.Sprintf("%s%d%v%v", q.Name, q.Need, q.From.Users, q.From.Groups))
	}
	return all
}

func TestAnUnjudgedCallNeedsItsManagerAndItsChannelToo(t *testing.T) {
	const rules = `
rules:
  - {name: pay, tools: [pay], channels: [war-room], when: args.amount > 10, ask: {why: Money leaves., fragile: true, quorums: [{name: boss, from: {roles: [manager]}}, {name: room, need: 2, from: {channel: here}}]}}
`
	p := parse(t, rules, policy.Options{})
	without := call("pay", `{}`)
	ask := asked(t, p, without)
	require.Equal(t, []string{"ops1[][S0SRE00001]", "boss1[U0CAROL001][]", "room2[][C0WARROOM1]"}, names(ask.Requirement.Quorums))
	require.Equal(t, "The rule pay could not be judged for this call: something that its condition needs is missing. That rule asks: Money leaves. So it needs every approval that the policy can ask for.", ask.Why)
	require.False(t, ask.Unjudged, "nothing that would refuse it")

	without.Requester = "U0BOB00001"
	ask = asked(t, p, without)
	require.Equal(t, "boss1[U0CAROL001][]", names(ask.Requirement.Quorums)[1], "who has no manager is approved for by a manager of someone")

	p = parse(t, rules+"  - {name: late, tools: [pay], when: args.amount > 10, ask: {why: It is late.}}\n", policy.Options{})
	without.Channel = "D0BOB00001"
	ask = asked(t, p, without)
	require.Equal(t, "room2[][]", names(ask.Requirement.Quorums)[2])
	require.True(t, strings.HasSuffix(ask.Why, "Nobody can approve for room here, so the call can't run."), ask.Why)
	everyone := []approvals.Principal{{User: "U0CAROL001"}, {User: "U0NOBODY01"}}
	for i := range 9 {
		everyone = append(everyone, approvals.Principal{User: approvals.UserID(fmt.Sprint("U", i)), Groups: []approvals.GroupID{"S0SRE00001", "C0WARROOM1", "D0BOB00001"}, GroupsAt: monday})
	}
	require.False(t, met(t, ask.Requirement, everyone), "a place that nobody can fill stays open")
}

func TestPlacesForTheSamePeopleAddUpWithinAnAsk(t *testing.T) {
	p := parse(t, `
rules:
  - {name: two, tools: [a], ask: {fragile: true, quorums: [{name: x, from: {groups: [sre]}}, {name: y, from: {groups: [sre]}}, {any: [{name: z, from: {groups: [sre]}}, {all: [{name: v, from: {groups: [sre]}}, {name: w, from: {groups: [sre]}}]}]}]}}
  - {name: one, tools: [b], ask: {fragile: true, quorums: [{name: x, need: 2, from: {groups: [sre]}}]}}
`, policy.Options{})
	require.Equal(t, []string{"ops4[][S0SRE00001]"}, names(p.Strictest(monday).Quorums))
}

func TestTheFewestDenialsOfAnyVetoAreEnough(t *testing.T) {
	p := parse(t, `
rules:
  - {name: a, tools: [a], ask: {fragile: true, quorums: [{name: x, from: {groups: [sre]}}], veto: [{name: v, need: 3, from: {groups: [security]}}]}}
  - {name: b, tools: [b], channels: [war-room], ask: {fragile: true, quorums: [{name: x, from: {groups: [sre]}}], veto: [{name: v, need: 2, from: {groups: [security]}}, {name: m, from: {channel: here, people: [carol]}}]}}
`, policy.Options{})
	require.Equal(t, []string{"v2[][S0SECUR001]", "m1[U0CAROL001][]"}, names(p.Strictest(monday).Vetoes))
}

func TestAnAskInPlaceOfARefusalSaysSo(t *testing.T) {
	p := parse(t, `
rules:
  - {name: no, tools: [deny], when: args.x, deny: Never on Fridays}
  - {name: yes, tools: [allow], when: args.x, allow: true}
  - {name: ask, tools: [ask], when: args.x, ask: {why: hm}}
  - {name: boss, tools: [boss], ask: {fragile: true, quorums: [{name: boss, from: {roles: [manager]}}]}}
  - {name: shadow, tools: [shadow], mode: shadow, when: args.x, deny: no}
`, policy.Options{})
	for tool, want := range map[string]bool{"deny": true, "allow": false, "ask": false, "boss": false, "shadow": false} {
		require.Equal(t, want, asked(t, p, with(call(tool, `{}`), func(q *approvals.Proposal) { q.Requester = "U0BOB00001" })).Unjudged, tool)
	}
	require.Contains(t, asked(t, p, call("deny", `{}`)).Why, "That rule denies: Never on Fridays.")
}

func TestADefaultThatCannotBeJudgedAsksForEverything(t *testing.T) {
	src := strings.Replace(head, "quorums: [{name: ops, from: {groups: [sre]}}]", "fragile: true, quorums: [{name: boss, from: {roles: [manager]}}, {name: ops, from: {groups: [sre]}}]", 1)
	p, err := policy.Parse("p.yaml", []byte(src+"rules:\n  - {name: a, tools: [a], ask: {quorums: [{name: sec, need: 2, from: {groups: [security]}}]}}\n"), policy.Options{})
	require.NoError(t, err)
	ask := asked(t, p, with(call("x", `{}`), func(q *approvals.Proposal) { q.Requester = "U0BOB00001" }))
	require.Equal(t, []string{"boss1[U0CAROL001][]", "ops1[][S0SRE00001]", "sec2[][S0SECUR001]"}, names(ask.Requirement.Quorums))
	require.Equal(t, "default@"+p.Version(), ask.Rule)
	require.Equal(t, "The rule default could not be judged for this call: the requester has no manager. That rule asks: default. So it needs every approval that the policy can ask for.", ask.Why)
}

// People who meet the requirement of a call that no rule could judge meet every
// ask of the file, as it would be for the same call.
func TestAnUnjudgedCallNeverNeedsLessThanAnyAsk(t *testing.T) {
	from := []string{"{groups: [sre]}", "{groups: [security]}", "{groups: [sre, security]}", "{people: [bob, carol]}", "{people: [carol]}", "{roles: [manager]}", "{channel: here}", "{people: [bob], roles: [manager]}", "{groups: [sre], channel: here}", "{groups: [war-room]}"}
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		quorum := func() string {
			n++
			return fmt.Sprintf("{name: q%d, need: %d, from: %s}", n, rapid.IntRange(1, 2).Draw(t, "need"), rapid.SampledFrom(from).Draw(t, "from"))
		}
		several := func(label string) string {
			all := []string{}
			for range rapid.IntRange(1, 2).Draw(t, label) {
				all = append(all, quorum())
			}
			return strings.Join(all, ", ")
		}
		var rules strings.Builder
		asks := rapid.IntRange(1, 3).Draw(t, "asks")
		for i := range asks {
			quorums := several("quorums")
			if rapid.Bool().Draw(t, "choice") {
				quorums += ", {any: [" + quorum() + ", {all: [" + several("all") + "]}]}"
			}
			fmt.Fprintf(&rules, "  - {name: r%d, tools: [t%d], channels: [war-room], ask: {fragile: true, quorums: [%s]}}\n", i, i, quorums)
		}
		rules.WriteString("  - {name: broken, tools: [x], when: args.missing, deny: no}\n")
		p, err := policy.Parse("p.yaml", []byte(head+"rules:\n"+rules.String()), policy.Options{})
		if err != nil {
			require.Regexp(t, "could approve|can't (all )?be met", err.Error())
			t.Skip("too few people could approve this policy: rapid draws another one")
		}
		who := approvals.UserID(rapid.SampledFrom([]string{"U0ALICE001", "U0BOB00001"}).Draw(t, "requester"))
		at := func(tool string) approvals.Proposal {
			return with(call(tool, `{}`), func(q *approvals.Proposal) { q.Requester = who })
		}
		strictest := asked(t, p, at("x")).Requirement
		groups := []approvals.GroupID{"S0SRE00001", "S0SECUR001", "C0WARROOM1"}
		var people []approvals.Principal
		for i := range 24 {
			in := slices.DeleteFunc(slices.Clone(groups), func(approvals.GroupID) bool { return rapid.IntRange(0, 2).Draw(t, "in") == 0 })
			people = append(people, approvals.Principal{User: approvals.UserID(fmt.Sprint("U", i)), Groups: in, GroupsAt: monday})
		}
		people = append(people, approvals.Principal{User: "U0CAROL001"}, approvals.Principal{User: "U0BOB00001"})
		if !met(t, strictest, people) {
			return
		}
		for i := 0; i < len(people); { // nobody approves who need not
			fewer := slices.Delete(slices.Clone(people), i, i+1)
			if met(t, strictest, fewer) {
				people = fewer
			} else {
				i++
			}
		}
		for i := range asks {
			ask := asked(t, p, at(fmt.Sprint("t", i)))
			if strings.Contains(ask.Why, "could not be judged") {
				continue
			}
			require.True(t, met(t, ask.Requirement, people), "%s\n%v\n%v\n%v", rules.String(), names(ask.Requirement.Quorums), names(strictest.Quorums), people)
		}
		require.True(t, met(t, asked(t, p, at("y")).Requirement, people))
	})
}
