package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/policy"
)

func TestANumberThatNothingCanHoldLeavesNoRuleJudgedThatLooksAtArguments(t *testing.T) {
	p := parse(t, `
rules:
  - {name: list, tools: [list], when: 'args.ids == [1]', allow: true}
  - {name: differs, tools: [differs], when: 'args.l != [1.0]', deny: no}
  - {name: map, tools: [map], when: 'args.m == {"a": 1}', allow: true}
  - {name: other, tools: [other], when: 'args.n == 1', allow: true}
  - {name: has, tools: [has], when: 'args.?x.orValue(1) == 1 && !has(args.y)', allow: true}
  - {name: in, tools: [in], when: '!(3 in args.ids)', allow: true}
  - {name: small, tools: [small], when: 'args.n > 0.0', deny: no}
  - {name: blind, tools: [blind], when: 'tool == "blind"', allow: true}
`, policy.Options{})
	for _, n := range []string{"18446744073709551616", "-9223372036854775809", "1e400", "-1e400", "1e-400", "0.0001e-400"} {
		for name, args := range map[string]string{
			"list":    `{"ids":[` + n + `]}`,
			"differs": `{"l":[` + n + `]}`,
			"map":     `{"m":{"a":` + n + `}}`,
			"other":   `{"n":1,"deep":[{"er":[[` + n + `]]}]}`,
			"has":     `{"deep":` + n + `}`,
			"in":      `{"ids":[` + n + `]}`,
			"small":   `{"n":` + n + `}`,
		} {
			require.Contains(t, say(t, p, call(name, args)), "strictest: The rule "+name+" could not be judged for this call: a number in the arguments is too large or too small.", args)
		}
		require.Equal(t, "runs", say(t, p, call("blind", `{"n":[`+n+`]}`)), "it does not look at them")
	}
	for tool, args := range map[string]string{
		"list":  `{"ids":[1]}`,
		"map":   `{"m":{"a":1.0}}`,
		"other": `{"n":1,"u":18446744073709551615,"z":[0e999,-0.0,1e308,5e-324]}`,
		"in":    `{"ids":[1,18446744073709551615]}`,
	} {
		require.Equal(t, "runs", say(t, p, call(tool, args)), args)
	}
}
