package form

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/spoof"
)

const orderSchema = `{"type":"object","required":["to","amount"],"properties":{
	"to":{"type":"string","description":"Who gets it"},
	"amount":{"type":"integer"},
	"rate":{"type":"number"},
	"dry":{"type":"boolean"},
	"mode":{"type":"string","enum":["fast","slow","never"]},
	"on":{"type":"string","format":"date"},
	"limits":{"type":"object","properties":{"retry":{"type":"object","properties":{"times":{"type":"integer"},"deep":{"type":"object","properties":{"er":{"type":"integer"}}}}}}},
	"tags":{"type":["null","array"],"items":{"type":"string"}},
	"token":{"type":"string"}}}`

const order = ` {"amount" : 9007199254740993, "to":"ann","extra":{"k":[1,2]} ,"dry":false,"limits":{"retry":{"times":3,"deep":{"er":1}}},"token":"s3cret"} `

func formFor(t *testing.T, schema, args string, writeOnly ...string) EditForm {
	t.Helper()
	f, ok := NewForm(agentrun.Spec{Schema: json.RawMessage(schema)}, []byte(args), writeOnly)
	require.True(t, ok)
	return f
}

// untouched is what comes back of a form that nobody touched.
func untouched(f EditForm) States {
	in := States{}
	for _, x := range f.Fields {
		var e entered
		switch x.input {
		case inputChoice:
			e.Selected.Value = x.initial
		case inputDate:
			e.Date = x.initial
		default:
			e.Value = x.initial
		}
		in[x.Key()] = map[string]entered{editInput: e}
	}
	return in
}

func (f EditForm) field(t *testing.T, label string) field {
	t.Helper()
	for _, x := range f.Fields {
		if LabelOf(x.Path) == label {
			return x
		}
	}
	t.Fatalf("no field %q", label)
	return field{}
}

// same compares bytes: what means the same is not the same.
func same(t *testing.T, want string, got []byte) {
	t.Helper()
	require.Equal(t, want, string(got))
}

// types enters a text, a day or the text of an option.
func (f EditForm) types(t *testing.T, in States, label, text string) {
	t.Helper()
	x := f.field(t, label)
	e := entered{Value: text, Date: text}
	for i, o := range x.options {
		if o.text == text {
			e.Selected.Value = string(rune('0' + i))
		}
	}
	in[x.Key()] = map[string]entered{editInput: e}
}

func TestAFormHasAnInputForEveryValue(t *testing.T) {
	f := formFor(t, orderSchema, order, "/token")
	got := map[string]input{}
	var labels []string
	for _, x := range f.Fields {
		got[LabelOf(x.Path)] = x.input
		labels = append(labels, LabelOf(x.Path))
		require.NotContains(t, x.initial, "s3cret")
	}
	require.Equal(t, map[string]input{
		"to": inputText, "amount": inputWhole, "rate": inputNumber, "dry": inputChoice, "mode": inputChoice, "on": inputDate,
		"limits › retry › times": inputWhole, "limits › retry › deep": inputJSON, "tags": inputJSON, "token": inputSecret, "extra": inputJSON,
	}, got)
	require.Equal(t, "to", labels[0], "the schema's order")
	require.Equal(t, "9007199254740993", f.field(t, "amount").initial)
}

func TestWhatIsNotTouchedKeepsItsBytes(t *testing.T) {
	f := formFor(t, orderSchema, order, "/token")
	args, problems, known := f.Read(untouched(f))
	require.True(t, known)
	require.Empty(t, problems)
	same(t, order, args)
}

func TestAnEditChangesNothingElse(t *testing.T) {
	for name, c := range map[string]struct{ label, text, want string }{
		"a text":                   {"to", `bo "b" & <c>`, strings.Replace(order, `"ann"`, `"bo \"b\" & <c>"`, 1)},
		"a number, digit by digit": {"amount", "9007199254740994", strings.Replace(order, "0993", "0994", 1)},
		"a number as written":      {"rate", "1.50", strings.Replace(order, `"s3cret"}`, `"s3cret","rate":1.50}`, 1)},
		"a choice":                 {"dry", "true", strings.Replace(order, "false", "true", 1)},
		"a choice left out":        {"dry", "No value", strings.Replace(order, ` ,"dry":false`, "", 1)},
		"a choice that was not":    {"mode", "slow", strings.Replace(order, `"s3cret"}`, `"s3cret","mode":"slow"}`, 1)},
		"a day":                    {"on", "2026-03-04", strings.Replace(order, `"s3cret"}`, `"s3cret","on":"2026-03-04"}`, 1)},
		"below other keys":         {"limits › retry › times", "4", strings.Replace(order, `"times":3`, `"times":4`, 1)},
		"JSON as it is":            {"extra", `{ "k" : [1.0] }`, strings.Replace(order, `{"k":[1,2]}`, `{ "k" : [1.0] }`, 1)},
		"JSON left out":            {"extra", "", strings.Replace(order, `,"extra":{"k":[1,2]}`, "", 1)},
		"a new secret":             {"token", "n3w", strings.Replace(order, "s3cret", "n3w", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			f := formFor(t, orderSchema, order, "/token")
			in := untouched(f)
			f.types(t, in, c.label, c.text)
			args, problems, known := f.Read(in)
			require.True(t, known)
			require.Empty(t, problems)
			require.Equal(t, c.want, string(args))
			require.NoError(t, approvals.CheckArgs(args))
		})
	}
}

func TestWhatDoesNotFitIsSaidUnderItsInput(t *testing.T) {
	for name, c := range map[string]struct{ label, text, says string }{
		"a word for a number":    {"rate", "many", "Enter a number"},
		"a number of JavaScript": {"rate", "0x10", "Enter a number"},
		"a leading zero":         {"amount", "007", "whole number"},
		"a fraction":             {"amount", "1.5", "whole number"},
		"an exponent":            {"amount", "1e999999999", "whole number"},
		"nothing":                {"amount", " ", "This is required"},
		"no JSON":                {"extra", "{\n\"k\": }", "an error on line 2"},
		"two values":             {"extra", "1 2", "isn't valid JSON"},
		"a text without quotes":  {"extra", "R-100", `A text needs double quotes, such as "a text".`},
	} {
		t.Run(name, func(t *testing.T) {
			f := formFor(t, orderSchema, order)
			in := untouched(f)
			f.types(t, in, c.label, c.text)
			_, problems, known := f.Read(in)
			require.True(t, known)
			require.Len(t, problems, 1)
			require.Contains(t, problems[f.field(t, c.label).Key()], c.says)
		})
	}
}

func TestAFormOfAnotherSchemaIsNotRead(t *testing.T) {
	f := formFor(t, orderSchema, order)
	in := untouched(f)
	other := formFor(t, strings.Replace(orderSchema, `"amount":{"type":"integer"}`, `"amount":{"type":"string"}`, 1), order)
	_, _, known := other.Read(in)
	require.False(t, known)
}

// Twenty-one fields are one field of JSON, and so is a schema that says more
// than a form can. With something hidden in it there is no form at all.
func TestTooMuchForAFormIsOneFieldOfJSON(t *testing.T) {
	var props, args []string
	for i := range maxFields + 1 {
		k := "k" + strings.Repeat("x", i)
		props, args = append(props, `"`+k+`":{"type":"integer"}`), append(args, `"`+k+`":9007199254740993`)
	}
	many := `{"type":"object","properties":{` + strings.Join(props, ",") + `}}`
	raw := "{" + strings.Join(args, ",") + "}"
	for schema, args := range map[string]string{many: raw, `{"oneOf":[{"type":"object"}]}`: `{"a":1}`} {
		f := formFor(t, schema, args)
		require.Len(t, f.Fields, 1)
		require.Equal(t, inputJSON, f.Fields[0].input)
		kept, _, _ := f.Read(untouched(f)) // indented for reading only
		same(t, args, kept)
		in := untouched(f)
		f.types(t, in, "all arguments", "  {\"a\" : 2}\n")
		got, problems, _ := f.Read(in)
		require.Empty(t, problems)
		require.Equal(t, `{"a" : 2}`, string(got))
		_, ok := NewForm(agentrun.Spec{Schema: json.RawMessage(schema)}, []byte(args), []string{"/a", "/k"})
		require.False(t, ok)
	}
}

func TestWhatCannotBeChangedStaysAndSaysWhy(t *testing.T) {
	f := formFor(t, `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"auth":{"type":"array"}}}`,
		`{"path":"a","content":"`+strings.Repeat("x", 4000)+`","auth":[{"token":"abc"}]}`, "/auth/*/token")
	require.Len(t, f.Fields, 1)
	require.Equal(t, []kept{
		{"content", "is too long for a form (4,000 characters)"}, {"auth", "has hidden values"},
	}, f.kept)
	_, ok := NewForm(agentrun.Spec{}, []byte(`{"a":1}`), nil)
	require.False(t, ok, "no schema")
	_, ok = NewForm(agentrun.Spec{Schema: json.RawMessage(`{"type":"object"}`)}, nil, nil)
	require.False(t, ok, "nothing to change")
}

// What an input would give back otherwise than it got it is written as JSON.
func TestATextThatCannotBeTypedIsJSON(t *testing.T) {
	for _, s := range []string{" a", "a ", `a\u202eb`, `a\r\nb`, `a\u0000`, "\u200b", "p\u0430y", "Москвa", `\nМосквa`, "a\ufe0f", "a\u0301\u0301\u0301\u0301\u0301"} {
		f := formFor(t, `{"type":"object","properties":{"s":{"type":"string"}}}`, `{"s":"`+s+`"}`)
		require.Equal(t, inputJSON, f.Fields[0].input, "%q", s)
		unescaped := regexp.MustCompile(`\\(u....|.)`).ReplaceAllString(f.Fields[0].initial, " ")
		require.Empty(t, spoof.Find(unescaped), "%q", f.Fields[0].initial)
		var was, now string
		require.NoError(t, json.Unmarshal([]byte(`"`+s+`"`), &was))
		require.NoError(t, json.Unmarshal([]byte(f.Fields[0].initial), &now))
		require.Equal(t, was, now)
	}
}

// Whatever is set or taken out, what comes out is the same JSON otherwise.
func FuzzSetAt(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, ` { "a" : 1 , "b":{"c" :[1,2]} } `, `{"a":{"b":{"c":1}}}`, `{"":{"":""}}`} {
		f.Add([]byte(s), "a", "b", []byte("2"))
		f.Add([]byte(s), "", "", []byte(nil))
	}
	f.Fuzz(func(t *testing.T, raw []byte, one, two string, value []byte) {
		if len(raw) == 0 || approvals.CheckArgs(raw) != nil || (len(value) > 0 && !json.Valid(value)) || !json.Valid(jsonText(one)) {
			return
		}
		if len(value) == 0 {
			value = nil
		}
		var before, after map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &before))
		got := setAt(raw, []string{one}, value)
		require.NoError(t, json.Unmarshal(got, &after), "%s", got)
		for _, m := range Members(raw) {
			if m.Key != one {
				require.Equal(t, string(before[m.Key]), string(after[m.Key]))
			}
		}
		found, there := ValueAt(got, []string{one})
		if want := strings.ToValidUTF8(one, "\uFFFD") == one; want {
			require.Equal(t, value != nil, there)
			require.Equal(t, strings.TrimSpace(string(value)), strings.TrimSpace(string(found)))
		}
		require.True(t, json.Valid(setAt(raw, []string{one, two}, value)))
	})
}
