package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

// CEL compares 9007199254740993 as the double 9007199254740992.
func TestAWholeNumberThatIsRoundedInAComparisonLeavesTheRuleUnjudged(t *testing.T) {
	p := parse(t, `
rules:
  - {name: is, tools: [is], when: args.id == 9007199254740992.0, allow: true}
  - {name: not, tools: [not], when: args.id != 9007199254740992.0, deny: no}
  - {name: most, tools: [most], when: args.id <= 9007199254740992.0, allow: true}
  - {name: less, tools: [less], when: args.id < 18446744073709551616.0, deny: no}
  - {name: over, tools: [over], when: args.id > 9223372036854775808.0, allow: true}
  - {name: least, tools: [least], when: args.id >= 9223372036854775808.0, allow: true}
  - {name: in, tools: [in], when: 'args.id in [1.0, 9007199254740992.0]', allow: true}
  - {name: list, tools: [list], when: 'args.id == [9007199254740992.0]', allow: true}
  - {name: rest, tools: ["*"], ask: {why: Look., quorums: [{name: operations, from: {groups: [sre]}}]}}
`, policy.Options{})
	for name, ids := range map[string][2]string{ // one that is rounded, and one that is not
		"is": {"9007199254740993", "9007199254740991"}, "not": {"9007199254740993", "9007199254740992"}, "most": {"9007199254740993", "9007199254740994"},
		"less": {"18446744073709551615", ""}, "over": {"9223372036854775807", "9223372036854775808"}, "least": {"9223372036854775807", "9223372036854774784"},
		"in": {"9007199254740993", "9007199254740991"}, "list": {"[9007199254740993]", "[9007199254740991]"},
	} {
		require.Contains(t, say(t, p, call(name, `{"id":`+ids[0]+`}`)), "strictest: The rule "+name+" could not be judged for this call: a whole number in the arguments is too large to be compared exactly", name)
		if name != "less" {
			require.Equal(t, "asks: rest", say(t, p, call(name, `{"id":`+ids[1]+`}`)), name)
		}
	}
	require.Equal(t, "runs", say(t, p, call("is", `{"id":9007199254740992}`)))
	require.Equal(t, "runs", say(t, p, call("in", `{"id":9007199254740992}`)))
	require.Equal(t, "runs", say(t, p, call("least", `{"id":9223372036854775808}`)))
	require.Equal(t, "refused: no", say(t, p, call("less", `{"id":9007199254740993}`)))
}

// Of a remote agent no schema says what an argument is called; its rule does.
func TestAnArgumentInAnotherCaseThanInItsRuleLeavesTheRuleUnjudged(t *testing.T) {
	p := parse(t, `
rules:
  - {name: forced, tools: [push], when: 'has(args.force) && args.force', deny: No.}
  - {name: pushes, tools: [push], allow: true}
  - {name: small, tools: [pay], when: 'args.?amount.orValue(0) <= 50', allow: true}
  - {name: listed, tools: [copy], when: 'args.files.exists(f, has(f.over) && f.over)', deny: No.}
  - {name: copies, tools: [copy], allow: true}
  - {name: nested, tools: [send], when: '!("bcc" in args.to) && args.to["name"] == "ann"', allow: true}
  - {name: optional, tools: [sync], when: 'args.?opts.?force.orValue(false)', deny: No.}
  - {name: mapped, tools: [sync], when: 'args.?opts.optMap(o, has(o.hard) && o.hard).orValue(false)', deny: No.}
  - {name: first, tools: [sync], when: 'has(args.files) && has(args.files[0].over) && args.files[0].over', deny: No.}
  - {name: parts, tools: [sync], when: 'has(args.sets) && args.sets.exists(s, s.parts.exists(p, has(p.meta) && has(p.meta.over) && p.meta.over))', deny: No.}
  - {name: syncs, tools: [sync], allow: true}
`, policy.Options{Remote: []string{"claude"}})
	for tool, all := range map[string]map[string]string{
		"push": {`{"Force":true}`: "unjudged", `{"FORCE":true,"force":false}`: "unjudged", `{"forced":true}`: "runs", `{"x":{"Force":true}}`: "runs"},
		"copy": {`{"files":[{},{"Over":true}]}`: "unjudged", `{"files":[{"over":false}]}`: "runs"},
		"pay":  {`{"Amount":500}`: "unjudged", `{"amount":50}`: "runs", `{"Amounts":500}`: "runs"},
		"sync": {
			`{"opts":{"Force":true}}`: "unjudged", `{"opts":{"Hard":true}}`: "unjudged", `{"files":[{"Over":true}]}`: "unjudged",
			`{"sets":[{"parts":[{},{"meta":{"Over":true}}]}]}`: "unjudged", `{"sets":[{"Over":true,"parts":[{"meta":{"over":false}}]}]}`: "runs",
		},
		"send": {`{"to":{"name":"ann","Bcc":"eve"}}`: "unjudged", `{"to":{"name":"ann","cc":"eve"}}`: "runs"},
	} {
		for args, want := range all {
			q := call(tool, args)
			q.Agent = "claude"
			got := say(t, p, q)
			if want == "unjudged" {
				require.Contains(t, got, "could not be judged for this call: an argument is named like", args)
				continue
			}
			require.Equal(t, want, got, args)
		}
	}
}

// What a condition makes from the arguments, or compares as a whole, has no place that a
// name leads to.
func TestAnArgumentInAnotherCaseIsFoundInWhatAConditionMakes(t *testing.T) {
	for when, all := range map[string]struct{ unjudged, judged []string }{
		`args.files.filter(f, f.size > 1).exists(f, has(f.over) && f.over)`: {
			[]string{`{"files":[{"size":2,"Over":true}]}`}, []string{`{"files":[{"size":2,"over":false}]}`, `{"files":[]}`},
		},
		`args.files.map(f, f.meta)[0].?over.orValue(false)`: {
			[]string{`{"files":[{"meta":{"OVER":true}}]}`}, []string{`{"files":[{"meta":{"x":1}}]}`},
		},
		`has((tool == "push" ? args.o : {}).force)`:    {[]string{`{"o":{"Force":true}}`}, []string{`{"o":{"forced":true}}`}},
		`has(dyn(args).force)`:                         {[]string{`{"Force":true}`}, []string{`{"forced":true}`}},
		`dyn(args).exists(k, k == "force")`:            {[]string{`{"Force":true}`}, []string{`{"forced":true}`}},
		`args["the-o"].?force.orValue(false)`:          {[]string{`{"the-o":{"Force":true}}`}, []string{`{"the-o":{"force":false}}`}},
		`args == {"force": true}`:                      {[]string{`{"Force":true}`}, []string{`{"force":false}`, `{"forced":true}`}},
		`args.o in [{"force": true}]`:                  {[]string{`{"o":{"Force":true}}`}, []string{`{"o":{"force":false}}`}},
		`["force","hard"].exists(k, k in args)`:        {[]string{`{"Force":true}`}, []string{`{"forced":true}`}},
		`["force"].exists(k, args[?k].orValue(false))`: {[]string{`{"Force":true}`}, []string{`{"force":false}`}},
		`has(args.kind) && string(args.kind) == "url"`: {nil, []string{`{"kind":"x","URL":"y"}`}},
	} {
		p := parse(t, `
rules:
  - {name: forced, tools: [push], when: '`+when+`', deny: No.}
  - {name: pushes, tools: [push], allow: true}
`, policy.Options{Remote: []string{"claude"}})
		said := func(args string) string {
			q := call("push", args)
			q.Agent = "claude"
			return say(t, p, q)
		}
		for _, args := range all.unjudged {
			require.Contains(t, said(args), "could not be judged for this call: an argument is named like", "%s: %s", when, args)
		}
		for _, args := range all.judged {
			require.Equal(t, "runs", said(args), "%s: %s", when, args)
		}
	}
}

// A condition that compares each item of a list with an argument asks for the arguments
// with each of them.
func TestALongListIsJudgedSoon(t *testing.T) {
	p := parse(t, `
rules:
  - {name: forced, tools: [push], when: 'args.files.exists(f, f.x == args.y)', deny: No.}
  - {name: pushes, tools: [push], allow: true}
`, policy.Options{Remote: []string{"claude"}})
	q := call("push", `{"y":1,"files":[`+strings.Repeat(`{"x":2},`, 20_000)+`{"x":2}]}`)
	q.Agent = "claude"
	began := time.Now()
	require.Equal(t, "runs", say(t, p, q))
	require.Less(t, time.Since(began), 10*time.Second) // 30 ms; in the square of the list, 30 s
}

// Many conditions that name many texts, about what has no place in the arguments. The keys
// of env, which are data, have the same names in other letters.
func TestManyNamesAreLookedForSoon(t *testing.T) {
	names, keys := make([]string, 300), make([]string, 20_000)
	for i := range names {
		names[i] = fmt.Sprintf("%q", fmt.Sprint("n", i))
	}
	for i := range keys {
		keys[i] = fmt.Sprintf(`"N%d":0`, i)
	}
	rules := "rules:\n"
	for i := range 60 {
		rules += fmt.Sprintf("  - {name: r%d, tools: [push], when: 'dyn(args).what in [%s]', deny: No.}\n", i, strings.Join(names, ","))
	}
	p := parse(t, rules+"  - {name: pushes, tools: [push], allow: true}\n", policy.Options{Tools: []policy.Tool{
		{Agent: "ops", Name: "push", Schema: []byte(`{"type":"object","properties":{"what":{"type":"string"},"env":{"type":"object"}}}`)},
	}})
	began := time.Now()
	require.Equal(t, "runs", say(t, p, call("push", `{"what":"x","env":{`+strings.Join(keys, ",")+`}}`)))
	require.Less(t, time.Since(began), 20*time.Second) // 0.1 s; with a look at each key for each name, 40 s
}

// Many readers of JSON take Amount for amount. A condition on amount would hold for
// what does not run.
func TestAnArgumentInAnotherCaseLeavesNoRuleJudgedThatLooksAtArguments(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"amount":{"type":"number"},"URL":{"type":"string"},"url":{"type":"string"},
		"to":{"type":"object","properties":{"name":{"type":"string"}}},"labels":{"type":"object","additionalProperties":{"type":"string"}}},"required":["amount"],"additionalProperties":true}`)
	p := parse(t, `
rules:
  - {name: pay, tools: [pay, loose, remote], when: 'args.amount <= 50', allow: true}
  - {name: push, tools: [Bash], command: {runs: [git push]}, deny: No.}
  - {name: rest, tools: [Bash], allow: true}
`, policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "pay", Schema: schema}, {Agent: "ops", Name: "loose", Schema: []byte(`{"type":"object"}`)}}, Remote: []string{"claude"}})
	for tool, all := range map[string][]string{
		"pay": {
			`{"amount":5,"Amount":500}`, `{"AMOUNT":500,"amount":5}`, `{"amount":5,"To":{}}`, `{"amount":5,"to":{"Name":"x"}}`,
			`{"amount":5,"label\u017f":{}}`, `{"amount":5,"x":[{"a":1,"A":2}]}`,
		},
		"loose":  {`{"amount":5,"Amount":500}`},
		"remote": {`{"amount":5,"Amount":500}`, `{"amount":5,"x":{"a":[{"b":1,"B":2}]}}`},
		"Bash":   {`{"command":"ls","Command":"git push"}`},
	} {
		for _, args := range all {
			q := call(tool, args)
			if tool == "remote" || tool == "Bash" {
				q.Agent = "claude"
			}
			require.Contains(t, say(t, p, q), "could not be judged for this call", args)
		}
	}
	links := parse(t, `
rules:
  - {name: link, tools: [link], when: 'args.url == "a" && args.labels["env"] == "x"', allow: true}
`, policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "link", Schema: []byte(`{"type":"object","properties":{"URL":{"type":"string"},"url":{"type":"string"},
		"labels":{"type":"object","additionalProperties":{"type":"string"}}},"required":["url","labels"]}`)}}})
	require.Equal(t, "runs", say(t, links, call("link", `{"url":"a","URL":"b","labels":{"env":"x","Env":"y"}}`)), "the schema has both, and labels are data")
	require.Contains(t, say(t, p, call("pay", `{"amount":5,"Amount":500}`)), "an argument is named like another one but for upper and lower case.")
	for _, args := range []string{`{"amount":5,"note":"x"}`, `{"amount":5,"URL":"a","url":"b"}`, `{"amount":5,"labels":{"a":"1","A":"2"}}`, `{"amount":5,"to":{"name":"Name"}}`} {
		require.Equal(t, "runs", say(t, p, call("pay", args)), args)
	}
}
