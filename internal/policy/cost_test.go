package policy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

func TestADenyIsNotPassedByPaddingAnArgument(t *testing.T) {
	one := `args.text.contains("drop table ") || `
	rules := "rules:\n  - {name: no, tools: [x], when: '" + strings.Repeat(one, 31) + `args.text.contains("rm -rf")` + "', deny: Nothing is dropped}\n  - {name: yes, tools: [x], allow: true}\n"
	p := parse(t, rules, policy.Options{})
	padded := `{"text":"` + strings.Repeat("a", 255<<10) + `rm -rf"}`
	require.Equal(t, "refused: The arguments are too large for the rule no to check in time, so the call is refused. Send smaller arguments. Nothing is dropped.", say(t, p, call("x", padded)))
	require.Equal(t, say(t, p, call("x", padded)), "refused: "+p.Explain(t.Context(), call("x", padded)).Ruling.(approvals.Refuse).Reason)
	require.Equal(t, "runs", say(t, p, call("x", `{"text":"select"}`)))
	require.Equal(t, "refused: Nothing is dropped", say(t, p, call("x", `{"text":"rm -rf"}`)))

	var would approvals.Ruling
	p = parse(t, strings.Replace(rules, "{name: no,", "{name: no, mode: shadow,", 1), policy.Options{Shadow: func(_ context.Context, r policy.ShadowRuling) { would = r.Would }})
	require.Equal(t, "runs", say(t, p, call("x", padded)))
	require.IsType(t, approvals.Refuse{}, would)
}

func TestLargeArgumentsAreJudged(t *testing.T) {
	p := parse(t, "rules:\n  - {name: no, tools: [x], when: 'args.text.contains(\"drop\") || args.text.contains(\"rm -rf\") || args.text.startsWith(\"b\")', deny: no}\n", policy.Options{})
	require.Equal(t, "asks: default", say(t, p, call("x", `{"text":"`+strings.Repeat("a", 255<<10)+`"}`)))
}

func TestAConditionThatAlwaysTakesTooLongIsRefusedWhenRead(t *testing.T) {
	list := "[1" + strings.Repeat(",1", 99) + "]"
	for name, when := range map[string]string{
		"over lists that are written": list + ".all(a, " + list + ".all(b, " + list + ".all(c, a + b + c > args.n)))",
		"over arguments":              "args.l.all(a, args.l.all(b, args.l.all(c, args.l.all(d, args.l.all(e, args.l.all(f, a + b + c + d + e + f > 0))))))",
	} {
		_, err := policy.Parse("p.yaml", []byte(head+"rules:\n  - {name: slow, tools: [x], when: '"+when+"', deny: no}\n"), policy.Options{})
		require.ErrorContains(t, err, "rules[0].when: would take ", name)
	}
	parse(t, "rules:\n  - {name: two, tools: [x], when: 'args.l.all(a, "+list+".exists(b, a == b)) && args.s.matches(\"^a+$\")', deny: no}\n", policy.Options{})
}

// One such call took half a minute, for which no other call of the replica was judged.
func TestAMatchWithAPatternOfTheCallIsStopped(t *testing.T) {
	bomb, long := strings.Repeat("(a?){1000}", 100), strings.Repeat("a", 10_000)
	for when, args := range map[string]string{
		`args.text.matches(args.patterns[0])`:             `{"text":"` + long + `","patterns":["` + bomb + `b"]}`,
		`args.patterns.exists(p, args.text.matches(p))`:   `{"text":"x","patterns":[` + strings.Repeat(`"`+bomb+`b",`, 200) + `"y"]}`,
		`args.patterns.exists(p, matches(args.text, p))`:  `{"text":"` + long[:500] + `","patterns":[` + strings.Repeat(`"(a?){1000}(a?){1000}b",`, 5000) + `"y"]}`,
		`args.text.matches("^" + args.patterns[0] + "$")`: `{"text":"x","patterns":["` + strings.Repeat("x?", 100_000) + `"]}`,
	} {
		p := parse(t, "rules:\n  - {name: no, tools: [x], when: '"+when+"', deny: no}\n  - {name: yes, tools: [x], allow: true}\n", policy.Options{})
		began := time.Now()
		require.Contains(t, say(t, p, call("x", args)), "too large for the rule no to check in time", when)
		require.Less(t, time.Since(began), 30*time.Second, when)
		require.Equal(t, "refused: no", say(t, p, call("x", `{"text":"aab","patterns":["a{1,9}b"]}`)), when)
		require.Equal(t, "runs", say(t, p, call("x", `{"text":"aac","patterns":["a{1,9}b"]}`)), when)
		require.Contains(t, say(t, p, call("x", `{"text":"aac","patterns":["("]}`)), "strictest: ", when)
	}
	p := parse(t, "rules:\n  - {name: yes, tools: [x], when: '[\"^a+$\", \"^[0-9]{1,9}$\"].exists(p, args.text.matches(p))', allow: true}\n", policy.Options{})
	require.Equal(t, "runs", say(t, p, call("x", `{"text":"`+long+`"}`)))
}

// These took a minute and more, for which no other call of the replica was judged.
func TestASearchInLargeArgumentsIsStopped(t *testing.T) {
	many, long := strings.TrimSuffix(strings.Repeat(`"x",`, 20_000), ","), strings.Repeat("y", 100<<10)
	args := `{"a":[` + many + `],"b":[` + strings.ReplaceAll(many, "x", "y") + `],"s":"` + long + `"}`
	for _, when := range []string{`args.a.exists(x, x in args.b)`, `args.a.exists(x, size(args.s) < 9)`, `args.a.exists(x, args.s + x == "z")`, `args.a.exists(x, timestamp(args.s) > now)`} {
		rules := "rules:\n  - {name: no, tools: [x], when: '" + when + "', deny: no}\n  - {name: yes, tools: [x], allow: true}\n"
		for _, schema := range []string{"", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":"array","items":{"type":"string"}},"s":{"type":"string"}},"required":["a","b","s"]}`} {
			p := parse(t, rules, policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x", Schema: []byte(schema)}}})
			began := time.Now()
			require.Contains(t, say(t, p, call("x", args)), "too large for the rule no to check in time", when)
			require.Less(t, time.Since(began), 30*time.Second, when)
			require.Equal(t, "runs", say(t, p, call("x", `{"a":["1","2"],"b":["3"],"s":"2026-01-01T00:00:00Z"}`)), when)
		}
	}
}

// A filter that is made of filters. Reading it took minutes, and more with each key.
func TestASchemaThatRefersToItselfInManyPlacesIsReadInTime(t *testing.T) {
	var keys []string
	for _, key := range "abcdefghijklmnopqrst" {
		keys = append(keys, `"`+string(key)+`":{"$ref":"#/$defs/filter"}`)
	}
	tools := []policy.Tool{{Agent: "ops", Name: "x", Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer"},"filter":{"$ref":"#/$defs/filter"}},
		"required":["n","filter"],"additionalProperties":false,"$defs":{"filter":{"type":"object","properties":{"is":{"type":"string"},` + strings.Join(keys, ",") + `}}}}`)}}
	read := func(when string) error {
		_, err := policy.Parse("p.yaml", []byte(head+"rules:\n  - {name: no, tools: [x], when: '"+when+"', deny: no}\n"), policy.Options{Tools: tools})
		return err
	}
	began := time.Now()
	require.NoError(t, read("args.n > 5 && has(args.filter.is)"))
	require.ErrorContains(t, read("args.m > 5"), `there is no argument "m"`)
	require.ErrorContains(t, read(`has(args.filter.a.iz) && args.filter.a.iz == "x"`), `there is no argument "iz"`)
	require.Less(t, time.Since(began), 30*time.Second)
}
