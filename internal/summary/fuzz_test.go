package summary_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/summary"
)

// FuzzRender holds what every line is, whatever the template and the arguments.
func FuzzRender(f *testing.F) {
	for _, seed := range [][3]string{
		{`Refund {money args.cents "EUR"} to {args.to}`, `{"cents":129,"to":"a\nb"}`, "/token"},
		{`{list args.l[].e 2}{count args.l "x"}`, `{"l":[{"e":"x"},{"e":1e400}]}`, "/l/*/e"},
		{`{fields args.a args["b c"]}`, `{"a":"\u2028","b c":[1]}`, "/a"},
		{`{bytes args.n} {amount args.n "JPY" or ""}`, `{"n":-1e40}`, ""},
		{`{time args.t}{date args.t}{short args.t 1}`, `{"t":"2026-03-02T09:30:00+14:00"}`, "/x"},
		{``, `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "/a~1b"},
		{`{if args.token "a" "b"}`, `nonsense`, "/*"},
	} {
		f.Add(seed[0], "some_tool", seed[1], seed[2])
	}
	const secret = "s3cr3t-9f2c"
	f.Fuzz(func(t *testing.T, template, tool, args, pointer string) {
		line := summary.Of(template, tool, json.RawMessage(args), []string{pointer})
		require.NotEmpty(t, line)
		require.LessOrEqual(t, utf8.RuneCountInString(line), summary.Limit)
		require.True(t, utf8.ValidString(line))
		require.False(t, strings.ContainsAny(line, "\n\r\t\v\f\u0085\u2028\u2029"), "%q is one line", line)
		require.Equal(t, line, summary.Of(template, tool, json.RawMessage(args), []string{pointer}))

		if strings.Contains(template+tool, secret) || strings.Contains(template, "*") {
			return
		}
		// The secret is put where the pointer leads: it shows nowhere.
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(strings.SplitN(strings.TrimPrefix(pointer, "/"), "/", 2)[0])
		var object map[string]json.RawMessage
		if pointer == "" || !utf8.ValidString(pointer) || json.Unmarshal(json.RawMessage(args), &object) != nil || object == nil {
			return
		}
		for _, value := range []string{`"` + secret + `"`, `["` + secret + `"]`, `{"` + secret + `":"` + secret + `"}`} {
			object[key] = json.RawMessage(value)
			with, err := json.Marshal(object)
			require.NoError(t, err)
			require.NotContains(t, summary.Of(template, tool, with, []string{"/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)}), secret)
		}
	})
}

// FuzzParse holds that a template is read or refused, and that what a schema
// accepts can be rendered from the default.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`Refund {money args.cents "EUR" or "x"}`, `{{{args.a}}}`, `{args["a'b"].c[0][].d}`, `{if args.a 'x' "y"}`, `{`, `}`, `{args.`, `{args[`, `{fields args.a args.b}`,
	} {
		f.Add(seed, refund)
	}
	f.Add("{args.x}", `{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`)
	f.Add("{args.x[].y}", `{"type":"object","properties":{"x":{"type":"array","items":{"allOf":[{"$ref":"#"}]}}}}`)
	f.Fuzz(func(t *testing.T, source, schema string) {
		_, err := summary.Parse(source)
		if checked := summary.Check(source, json.RawMessage(schema), nil); err != nil {
			require.EqualError(t, checked, err.Error())
		}
		if d := summary.Default("a_tool", json.RawMessage(schema), nil); d != "" {
			require.NoError(t, summary.Check(d, json.RawMessage(schema), nil))
			require.LessOrEqual(t, len(d), summary.MaxTemplate)
		}
	})
}
