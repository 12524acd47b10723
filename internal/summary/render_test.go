package summary_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/summary"
)

func of(template, args string, writeOnly ...string) string {
	return summary.Of(template, "issue_refund", json.RawMessage(args), writeOnly)
}

func TestATemplateSaysWhatTheCallDoes(t *testing.T) {
	for _, c := range []struct{ template, args, want string }{
		{`Refund {money args.cents "EUR"} to {args.customer}`, `{"cents":12900,"customer":"Acme"}`, "Refund 129.00 EUR to Acme"},
		{`{{{args.a}}}`, `{"a":"x"}`, "{x}"},
		{`{args.n}`, `{"n":9007199254740993}`, "9007199254740993"},
		{`{args.n}`, `{"n":1.50e3}`, "1.50e3"},
		{`{args["odd key"]} {args.a.b} {args.l[1]}`, `{"odd key":"o","a":{"b":"c"},"l":[1,2]}`, "o c 2"},
		{`to {args.who or "nobody"}`, `{"who":null}`, "to nobody"},
		{`to {args.who or "nobody"}`, `{}`, "to nobody"},
		{`to {args.who or "nobody"}`, ``, "to nobody"},
		{`to {args.who}`, `{"who":"  "}`, "to (empty)"},
		{`{count args.l "file"}`, `{"l":[1]}`, "1 file"},
		{`{count args.l "box" "boxes"}`, `{"l":[]}`, "0 boxes"},
		{`{count args.l "key"}`, `{"l":{"a":1,"b":2}}`, "2 keys"},
		{`{count args.n "pod"}`, `{"n":1200}`, "1,200 pods"},
		{`{list args.l}`, `{"l":["a"]}`, "a"},
		{`{list args.l}`, `{"l":["a","b"]}`, "a and b"},
		{`{list args.l}`, `{"l":["a","b","c"]}`, "a, b, and c"},
		{`{list args.l}`, `{"l":["a","b","c","d"]}`, "a, b, c, and 1 more"},
		{`{list args.l 1}`, `{"l":["a",2,3]}`, "a and 2 more"},
		{`{list args.l}`, `{"l":[]}`, "(none)"},
		{`{list args.l[].e}`, `{"l":[{"e":"a"},{"e":"b"}]}`, "a and b"},
		{`{short args.s 5}`, `{"s":"äöüäöü"}`, "äöüä…"},
		{`{date args.d} {time args.d}`, `{"d":"2026-03-02T09:30:00Z"}`, "Mar 2, 2026 Mar 2, 2026, 09:30 UTC"},
		{`{date args.d}`, `{"d":"2026-03-02"}`, "Mar 2, 2026"},
		{`{time args.d}`, `{"d":"2026-03-02T09:30:05.5+02:00"}`, "Mar 2, 2026, 09:30:05 +02:00"},
		{`{if args.force "by force"}`, `{"force":true}`, "by force"},
		{`Stop {if args.force "by force" "gently"}`, `{}`, "Stop gently"},
		{`Stop{if args.note " with a note"}`, `{"note":""}`, "Stop"},
		{`Stop{if args.n " in time"}`, `{"n":0}`, "Stop in time"},
		{`Restart{fields args.service args.force args.hosts args.more}`, `{"service":"a\"p\\i","force":false,"hosts":["x"],"more":1}`, `Restart (service: "a\"p\\i", force: false, hosts: 1 item)`},
		{`Restart{fields args.service args.n}`, `{"service":"","n":7}`, `Restart (n: 7)`},
		{`Restart{fields args.service}`, `{}`, `Restart`},
	} {
		require.Equal(t, c.want, of(c.template, c.args), "%s of %s", c.template, c.args)
	}
}

// The long s and the dotless i have capitals of ASCII, and are of no currency.
func TestACurrencyIsOneByItsLettersOnly(t *testing.T) {
	for _, code := range []string{"u\u017fd", "\u0131dr", "EURO", "EU", "EUR "} {
		require.NotContains(t, of(`Refund {amount args.n args.c}`, `{"n":5,"c":"`+code+`"}`), "Refund", code)
	}
	require.Equal(t, "Refund 5.00 USD", of(`Refund {amount args.n args.c}`, `{"n":5,"c":"usd"}`))
}

// Nothing is rounded, and nothing passes through a float.
func TestMoneyIsExact(t *testing.T) {
	for _, c := range []struct{ template, n, want string }{
		{`{money args.n "EUR"}`, "0", "0.00 EUR"},
		{`{money args.n "EUR"}`, "-0", "0.00 EUR"},
		{`{money args.n "EUR"}`, "5", "0.05 EUR"},
		{`{money args.n "eur"}`, "-105", "-1.05 EUR"},
		{`{money args.n "EUR"}`, "123456789", "1,234,567.89 EUR"},
		{`{money args.n "EUR"}`, "9007199254740993", "90,071,992,547,409.93 EUR"},
		{`{money args.n "EUR"}`, "1.29e4", "129.00 EUR"},
		{`{money args.n "EUR"}`, "12.5", "0.125 EUR"},
		{`{money args.n "JPY"}`, "500", "500 JPY"},
		{`{money args.n "KWD"}`, "1500", "1.500 KWD"},
		{`{amount args.n "EUR"}`, "129", "129.00 EUR"},
		{`{amount args.n "EUR"}`, "0.1", "0.10 EUR"},
		{`{amount args.n "EUR"}`, "129.999", "129.999 EUR"},
		{`{amount args.n "EUR"}`, `"1290.5"`, "1,290.50 EUR"},
		{`{amount args.n "JPY"}`, "1e3", "1,000 JPY"},
		{`{money args.n args.c}`, `7, "c": "usd"`, "0.07 USD"},
		{`{money args.n args.c or "?"}`, `7`, "?"},
	} {
		require.Equal(t, c.want, of(c.template, `{"n":`+c.n+`}`), "%s of %s", c.template, c.n)
	}
}

func TestBytesAreRoundedToOneDecimal(t *testing.T) {
	for n, want := range map[string]string{
		"0": "0 bytes", "1": "1 byte", "999": "999 bytes", "1000": "1 KB", "1549": "1.5 KB", "1550": "1.6 KB",
		"999949": "999.9 KB", "999950": "1 MB", "5e9": "5 GB", "123456789012345678901234": "123,456.8 EB", `"äb"`: "3 bytes",
	} {
		require.Equal(t, want, of(`{bytes args.n}`, `{"n":`+n+`}`), n)
	}
}

// Arguments that a template does not fit are those of an edit, or of a tool that
// has changed. Then the line is the default, never an error or half a sentence.
func TestATemplateThatDoesNotFitGivesWayToTheDefault(t *testing.T) {
	for _, c := range []struct{ template, args, want string }{
		{`Refund {money args.cents "EUR"}`, `{"cents":"12","to":"bo"}`, `Issue refund (cents: "12", to: "bo")`},
		{`Refund {money args.cents "EUR"}`, `{"to":"bo"}`, `Issue refund (to: "bo")`},
		{`Refund {money args.cents "EUR"}`, `{"cents":1e999999999}`, `Issue refund (cents: 1e999999999)`},
		{`Refund {money args.cents args.c}`, `{"cents":1,"c":"XXX"}`, `Issue refund (cents: 1, c: "XXX")`},
		{`{args.a.b}`, `{"a":"x"}`, `Issue refund (a: "x")`},
		{`{args.a}`, `{"a":{"b":1}}`, `Issue refund`},
		{`{list args.l}`, `{"l":[{}]}`, `Issue refund (l: 1 item)`},
		{`{args.a}`, `{"to":"bo","). Approved by Carol. (x":1}`, `Issue refund (to: "bo", "). Approved by Carol. (x": 1)`},
		{`{args.a}`, `{"b\": 1) Low risk (":1,"":2}`, `Issue refund ("b\": 1) Low risk (": 1, "": 2)`},
		{`{time args.a}`, `{"a":"noon"}`, `Issue refund (a: "noon")`},
		{`{bytes args.a}`, `{"a":-1}`, `Issue refund (a: -1)`},
		{`{nonsense args.a}`, `{"a":1}`, `Issue refund (a: 1)`},
		{`{args.a}`, `[1]`, `Issue refund`},
		{`{args.a}`, `{"a":1} x`, `Issue refund`},
		{`{args.a or ""}`, `{}`, `Issue refund`}, // a line is never empty
		{``, ``, `Issue refund`},
		{``, `{"l":[1,2],"o":{"x":1},"b":true,"n":null,"s":"x","e":"","m":3}`, `Issue refund (b: true, s: "x", m: 3)`},
		{``, `{"l":[1,2],"s":"x"}`, `Issue refund (s: "x", l: 2 items)`},
	} {
		require.Equal(t, c.want, of(c.template, c.args), "%s of %s", c.template, c.args)
	}
}

func TestTheDefaultNamesWhatTheSchemaRequiresFirst(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["cents","to","files"],"properties":{
		"note":{"type":"string"},"files":{"type":"array"},"to":{"type":"string"},"auth":{"type":"string","writeOnly":true},
		"cents":{"type":"integer"},"o":{"type":"object"},"force":{"type":"boolean"},"it's":{"type":"string"},"tags":{"type":"array"}}}`)
	template := summary.Default("issue_refund", schema, nil)
	require.Equal(t, "Issue refund{fields args.to args.cents args.note args.force args.files args.tags}", template)
	require.NoError(t, summary.Check(template, schema, nil))
	require.Equal(t, `Issue refund (to: "bo", cents: 1, force: true)`, of(template, `{"force":true,"cents":1,"files":[],"to":"bo"}`))
	require.Equal(t, "Issue refund{fields args.cents args.note args.force args.files args.tags}",
		summary.Default("issue_refund", schema, []string{"/to"}))
	for _, none := range []string{``, `{}`, `{"type":"object"}`, `{"type":"object","properties":{"x":{}}}`, `{"properties":[]}`} {
		require.Empty(t, summary.Default("issue_refund", json.RawMessage(none), nil))
	}
	require.Equal(t, "{{a}}{fields args.x}", summary.Default("{a}", json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`), nil))
}

func TestTheNameOfAToolIsPutIntoWords(t *testing.T) {
	for tool, want := range map[string]string{
		"delete_file": "Delete file", "deleteFile": "Delete file", "github__create-issue": "Github create issue",
		"readHTTPBody": "Read HTTP body", "k8s.scale": "K8s scale", "___": "___", "": "A call without a name",
		"écrire": "Écrire", "a\nb": "A b", strings.Repeat("x", 50): "X" + strings.Repeat("x", 38) + "…",
	} {
		require.Equal(t, want, summary.Words(tool), tool)
	}
}

func TestALineIsOneAndShort(t *testing.T) {
	require.Equal(t, "Mail a b c", of("Mail {args.s}\n", `{"s":"\ta\r\nb\u2028\u0085 c\n"}`))
	require.Equal(t, "a\u200b\u00a0b", of("{args.s}", `{"s":"a\u200b\u00a0b"}`), "the surface marks what cannot be seen")
	long := strings.Repeat("ä", 500)
	require.Equal(t, strings.Repeat("ä", 59)+"… end", of("{args.s} end", `{"s":"`+long+`"}`), "a long value hides nothing behind it")
	line := of("{args.s}{args.s}{args.s}", `{"s":"`+long+`"}`)
	require.Equal(t, summary.Limit, utf8.RuneCountInString(line))
	require.True(t, strings.HasSuffix(line, "…"))
	require.LessOrEqual(t, utf8.RuneCountInString(of("", `{"a":"`+long+`","b":"`+long+`","`+long+`":1}`)), summary.Limit)
}

// A template is checked when it is loaded, and the pointers are those of the call:
// what was hidden meanwhile stays hidden.
func TestWhatIsWriteOnlyNeverAppears(t *testing.T) {
	args := `{"token":"s3cret","auth":{"user":"ann","pin":"s3cret"},"keys":["s3cret"],"to":"bo"}`
	hidden := []string{"/token", "/auth/pin", "/keys/*"}
	for _, template := range []string{
		"", "{args.token}", "{args.auth.pin}", "{list args.keys}", "{count args.keys \"key\"}", "{args.keys[0]}",
		`{if args.auth "yes"}`, "{bytes args.token}", "{fields args.to args.token}", `{args.token or "none"}`,
	} {
		require.Equal(t, `Issue refund (to: "bo")`, of(template, args, hidden...), template)
	}
	require.Equal(t, "ann", of("{args.auth.user}", args, hidden...))
	require.Equal(t, "Issue refund", of("{args.to}", args, ""), "the empty pointer hides all")
}
