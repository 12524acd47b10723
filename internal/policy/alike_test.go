package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/policy"
)

// Some tools take "true" for true, or ["prod"] for "prod".
func TestAnArgumentOfAnotherTypeLeavesTheRuleUnjudged(t *testing.T) {
	rules := `
rules:
  - {name: text, tools: [text], when: 'args.env == "prod"', deny: no}
  - {name: truth, tools: [truth], when: 'args.force == true', deny: no}
  - {name: number, tools: [number], when: 'args.n == 5', deny: no}
  - {name: not, tools: [not], when: 'args.env != "prod"', allow: true}
  - {name: in, tools: [in], when: 'args.env in ["prod", "live"]', deny: no}
  - {name: notin, tools: [notin], when: '!(args.env in ["prod", "live"])', allow: true}
  - {name: tags, tools: [tags], when: '"prod" in args.tags', deny: no}
  - {name: some, tools: [some], when: 'args.tags.exists(t, t == "prod")', deny: no}
  - {name: deep, tools: [deep], when: 'args.to.env == "prod"', deny: no}
  - {name: optional, tools: [optional], when: 'args.?env.orValue("") == "prod"', deny: no}
  - {name: both, tools: [both], when: 'args.?env == optional.of("prod")', deny: no}
  - {name: field, tools: [field], when: '"prod" in args.envs', deny: no}
  - {name: list, tools: [list], when: 'args.tags == ["prod"]', deny: no}
  - {name: object, tools: [object], when: 'args.to == {"env": "prod"}', deny: no}
  - {name: many, tools: [many], when: 'args.a.exists(x, x in args.b)', deny: no}
  - {name: rest, allow: true}
`
	other := map[string][]string{
		"text": {`{"env":["prod"]}`, `{"env":{"name":"prod"}}`, `{"env":1}`, `{"env":false}`}, "truth": {`{"force":"true"}`, `{"force":1}`}, "number": {`{"n":"5"}`},
		"not": {`{"env":["prod"]}`}, "in": {`{"env":["prod"]}`}, "notin": {`{"env":["prod"]}`}, "tags": {`{"tags":[["prod"]]}`}, "some": {`{"tags":["a",["prod"]]}`},
		"deep": {`{"to":{"env":["prod"]}}`}, "optional": {`{"env":["prod"]}`}, "both": {`{"env":["prod"]}`},
		"list": {`{"tags":[["prod"]]}`, `{"tags":"prod"}`}, "object": {`{"to":{"env":["prod"]}}`},
	}
	same := map[string][]string{
		"text": {`{"env":"test"}`, `{"env":null}`}, "truth": {`{"force":false}`, `{"force":null}`}, "number": {`{"n":6}`, `{"n":5.5}`}, "not": {`{"env":"test"}`},
		"in": {`{"env":"test"}`}, "notin": {`{"env":"test"}`, `{"env":null}`}, "tags": {`{"tags":["a"]}`, `{"tags":[]}`, `{"tags":[1,"a"]}`}, "some": {`{"tags":["a"]}`},
		"deep": {`{"to":{"env":"test"}}`}, "optional": {`{}`, `{"env":"test"}`}, "both": {`{}`, `{"env":"test"}`}, "field": {`{"envs":{"test":1}}`}, "many": {`{"a":["x"],"b":["y"]}`},
		"list": {`{"tags":["test"]}`, `{"tags":["prod","x"]}`, `{"tags":[null]}`}, "object": {`{"to":{"env":"test"}}`, `{"to":{"at":1}}`, `{"to":{"env":["prod"],"at":1}}`},
	}
	holds := map[string][]string{
		"text": {`{"env":"prod"}`}, "truth": {`{"force":true}`}, "number": {`{"n":5}`, `{"n":5.0}`}, "in": {`{"env":"live"}`}, "tags": {`{"tags":[1,"prod"]}`},
		"some": {`{"tags":[["a"],"prod"]}`}, "deep": {`{"to":{"env":"prod"}}`}, "optional": {`{"env":"prod"}`}, "both": {`{"env":"prod"}`}, "field": {`{"envs":{"prod":1}}`}, "many": {`{"a":["x","y"],"b":["y"]}`},
		"list": {`{"tags":["prod"]}`}, "object": {`{"to":{"env":"prod"}}`},
	}
	var anything []policy.Tool
	for tool := range same {
		anything = append(anything, policy.Tool{Agent: "ops", Name: tool, Schema: []byte(`{"type":"object"}`)})
	}
	for agent, o := range map[string]policy.Options{"ops": {Tools: anything}, "claude": {Remote: []string{"claude"}}} {
		p := parse(t, rules, o)
		each := func(of map[string][]string, check func(tool, args, said string)) {
			for tool, all := range of {
				for _, args := range all {
					q := call(tool, args)
					q.Agent = agent
					check(tool, args, say(t, p, q))
				}
			}
		}
		each(other, func(tool, args, said string) {
			require.Contains(t, said, "strictest: The rule "+tool+" could not be judged for this call: an argument has another type than what its condition compares it with.", args)
		})
		each(same, func(_, args, said string) { require.Equal(t, "runs", said, args) })
		each(holds, func(_, args, said string) { require.Equal(t, "refused: no", said, args) })
		long := strings.TrimSuffix(strings.Repeat(`"x",`, 4000), ",")
		q := call("many", `{"a":[`+long+`],"b":[`+strings.ReplaceAll(long, "x", "y")+`]}`)
		q.Agent = agent
		require.Contains(t, say(t, p, q), "too large for the rule many")
	}
	either := policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "text", Schema: []byte(`{"type":"object","properties":{"env":{"type":["string","integer"]}},"required":["env"]}`)}}}
	for when, said := range map[string]string{`args.env == "prod"`: "strictest: ", `string(args.env) == "prod"`: "runs"} {
		p := parse(t, "\nrules:\n  - {name: text, tools: [text], when: '"+when+"', deny: no}\n  - {name: rest, tools: [text], allow: true}\n", either)
		require.Contains(t, say(t, p, call("text", `{"env":1}`)), said)
	}
}

// CEL goes over an empty text as over an empty list, of which everything holds.
func TestALoopOverWhatIsNoListLeavesTheRuleUnjudged(t *testing.T) {
	p := parse(t, `
rules:
  - {name: all, tools: [all], when: 'args.paths.all(p, p.startsWith("/srv/"))', allow: true}
  - {name: some, tools: [some], when: 'args.paths.exists(p, p == "/etc")', deny: no}
  - {name: one, tools: [one], when: '!args.paths.exists_one(p, p == "/etc")', allow: true}
  - {name: map, tools: [map], when: 'size(args.paths.map(p, p)) < 2', allow: true}
  - {name: filter, tools: [filter], when: 'size(args.to.paths.filter(p, p != "")) < 2', allow: true}
  - {name: index, tools: [index], when: 'args["paths"].all(p, p == "a")', allow: true}
  - {name: inner, tools: [inner], when: 'args.paths.all(p, p.all(q, q == "a"))', allow: true}
  - {name: rest, tools: ["*"], ask: {why: Look., quorums: [{name: operations, from: {groups: [sre]}}]}}
`, policy.Options{})
	for name, args := range map[string]string{
		"all": `{"paths":%s}`, "some": `{"paths":%s}`, "one": `{"paths":%s}`, "map": `{"paths":%s}`, "filter": `{"to":{"paths":%s}}`,
		"index": `{"paths":%s}`, "inner": `{"paths":[%s]}`,
	} {
		for _, v := range []string{`""`, `"a"`, `0`, `false`, `null`} {
			require.Contains(t, say(t, p, call(name, fmt.Sprintf(args, v))), "strictest: The rule "+name+" could not be judged", name+v)
		}
		want := "runs"
		if name == "some" {
			want = "asks: rest"
		}
		require.Equal(t, want, say(t, p, call(name, fmt.Sprintf(args, `[]`))), name)
	}
}
