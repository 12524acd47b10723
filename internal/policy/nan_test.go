package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/policy"
)

// Every comparison with NaN is false: a deny would not hold, and one with ! would.
func TestAValueThatIsNoNumberLeavesTheRuleUnjudged(t *testing.T) {
	p := parse(t, `
rules:
  - {name: text, tools: [text], when: 'double(args.x) > 1000.0', deny: no}
  - {name: not, tools: [not], when: '!(double(args.x) > 1000.0)', allow: true}
  - {name: some, tools: [some], when: 'args.xs.exists(x, double(x) > 1000.0)', deny: no}
  - {name: ratio, tools: [ratio], when: 'args.a / args.b > 100.0', deny: no}
  - {name: product, tools: [product], when: 'double(args.a) * double(args.b) - 1.0 > 100.0', deny: no}
  - {name: optional, tools: [optional], when: 'args.?x.optMap(x, double(x)).orValue(0.0) > 100.0', deny: no}
  - {name: first, tools: [first], when: 'args.y == "bad" || double(args.x) > 100.0', deny: no}
  - {name: rest, allow: true}
`, policy.Options{})
	for tool, args := range map[string]string{
		"text": `{"x":"NaN"}`, "not": `{"x":"nan"}`, "some": `{"xs":["1","nAn"]}`, "ratio": `{"a":0.0,"b":0.0}`,
		"product": `{"a":"inf","b":"0"}`, "optional": `{"x":"NaN"}`, "first": `{"x":"NaN","y":"good"}`,
	} {
		require.Contains(t, say(t, p, call(tool, args)), "strictest: The rule "+tool+" could not be judged for this call: what its condition calculates is not a number.", args)
	}
	for tool, args := range map[string]string{
		"text": `{"x":"5"}`, "not": `{"x":"5"}`, "some": `{"xs":["1"]}`, "ratio": `{"a":1.0,"b":2.0}`,
		"product": `{"a":"5","b":"-inf"}`, "optional": `{}`, "first": `{"x":"5","y":"good"}`,
	} {
		require.Equal(t, "runs", say(t, p, call(tool, args)), args)
	}
	for tool, args := range map[string]string{
		"text": `{"x":"inf"}`, "some": `{"xs":["NaN","5000"]}`, "ratio": `{"a":1.0,"b":0.0}`, "first": `{"x":"NaN","y":"bad"}`,
	} {
		require.Equal(t, "refused: no", say(t, p, call(tool, args)), args)
	}
}
