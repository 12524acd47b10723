package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/policy"
)

// What testdata/refused has beside these is refused; these are not.
func TestAConditionThatAsksBeforeItLooksIsTaken(t *testing.T) {
	schema := []byte(`{"type":"object","required":["id","all"],"properties":{"id":{"type":"string"},"n":{"type":"integer"},
		"to":{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}},
		"all":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}}}`)
	one := []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"anyOf":[{"required":["n"]},{"required":["m"]}]}`)
	for when, refused := range map[string]bool{
		`args.id == "a"`:                                     false,
		`has(args.n) && args.n > 1`:                          false,
		`args.n > 1 && has(args.n)`:                          false,
		`args.id == "a" && has(args.n) && args.n > 1`:        false,
		`!has(args.n) || args.n > 1`:                         false,
		`has(args.n) ? args.n > 1 : args.id == "a"`:          false,
		`!has(args.n) ? args.id == "a" : args.n > 1`:         false,
		`args.?n.orValue(0) > 1`:                             false,
		`args.?n.hasValue() && args.n > 1`:                   false,
		`has(args.n) == true && args.n > 1`:                  false,
		`args.?to.?b.orValue("") == "x"`:                     false,
		`has(args.to) && args.to.a == "x"`:                   false,
		`has(args.to) && has(args.to.b) && args.to.b == "x"`: false,
		`args.all.exists(e, has(e.n) && e.n > 1)`:            false,
		`args.n > 1`:                                  true,
		`args.n > 1 || has(args.n)`:                   true,
		`has(args.n) || has(args.to) && args.n > 1`:   true,
		`(has(args.n) || has(args.to)) && args.n > 1`: true,
		`has(args.to) && args.to.b == "x"`:            true,
		`has(args.to.b)`:                              true,
		`args.all.exists(e, e.n > 1)`:                 true,
		`[1, args.n].size() > 3`:                      true,
	} {
		t.Run(when, func(t *testing.T) {
			src := head + "\nrules:\n  - {name: r, tools: [x], when: '" + when + "', deny: no}\n"
			_, err := policy.Parse("p.yaml", []byte(src), policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x", Schema: schema}}})
			if !refused {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "is optional (for the tool x of ops)")
		})
	}
	_, err := policy.Parse("p.yaml", []byte(head+"\nrules: [{name: r, tools: [x], when: args.n > 1, deny: no}]\n"),
		policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x", Schema: one}}})
	require.NoError(t, err, "what other parts of a schema require is not known")
}

func TestAMarkAtTheStartOfAFileIsNoPartOfIt(t *testing.T) {
	src := "\ufeff" + head[1:]
	p, err := policy.Parse("p.yaml", []byte(src), policy.Options{})
	require.NoError(t, err)
	_, groups := p.Named()
	require.Equal(t, "p.yaml:1:15", groups["S0SRE00001"])
}

func TestAVetoThatAddsSomethingIsTaken(t *testing.T) {
	for _, ask := range []string{
		`quorums: [{name: a, from: {groups: [sre]}}], veto: [{name: v, from: {groups: [security]}}]`,
		`quorums: [{name: a, need: 2, from: {groups: [sre, security]}}], denials: 2, veto: [{name: v, from: {groups: [security]}}]`,
		`quorums: [{name: a, from: {groups: [sre]}}], veto: [{name: v, from: {roles: [manager]}}]`,
	} {
		parse(t, "rules: [{name: r, ask: {"+ask+"}}]\n", policy.Options{})
	}
}
