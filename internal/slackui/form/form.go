package form

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/spoof"
)

// The limits of a form.
const (
	maxFields  = 20   // with more, the form is one field of JSON
	MaxPath    = 3    // the most keys that lead to a field; deeper values are JSON
	maxInput   = 3000 // Slack's limit for the text of an input
	maxOptions = 100  // Slack's limit for the options of a menu
)

// input is how a value is entered.
type input string

const (
	inputText   input = "text"
	inputNumber input = "number" // entered as text, so that every digit is kept
	inputWhole  input = "whole"  // a number without a fraction
	inputChoice input = "choice"
	inputDate   input = "date"
	inputJSON   input = "json"
	inputSecret input = "secret" // shows nothing; empty means keep
)

// A field is one value of the arguments that a form lets people change.
type field struct {
	Path     []string // none: all the arguments
	input    input
	about    string // the description of the schema
	initial  string // the text of the input when the form is opened
	present  bool   // whether the arguments have the value
	required bool
	options  []option // of a choice
	secret   string   // of a hidden value: the hint below the input
	asJSON   bool     // of a hidden value: it is entered as JSON
}

// An option is one value of a choice. The one without raw leaves the value out.
type option struct {
	text string
	raw  []byte
}

// A kept value is one that the form cannot change, and why.
type kept struct{ label, why string }

// An EditForm lets people change the arguments of a call. It is derived from the
// arguments and the schema alone. When it is submitted it is derived again, so
// nothing that Slack sends back is trusted.
type EditForm struct {
	Args   []byte
	Fields []field
	kept   []kept
}

// NewForm returns the form, and whether it can change anything.
func NewForm(spec agentrun.Spec, args []byte, writeOnly []string) (EditForm, bool) {
	hide := approvals.HiddenAt(writeOnly)
	f := EditForm{Args: args}
	if len(f.Args) == 0 {
		f.Args = []byte("{}")
	}
	var s shape
	if len(spec.Schema) == 0 || json.Unmarshal(spec.Schema, &s) != nil || !blockkit.Unambiguous(f.Args) || Object(f.Args)[0] != '{' || hide.Here() {
		return EditForm{}, false
	}
	if !s.unsupported {
		f.object(nil, s, f.Args, hide)
	}
	if s.unsupported || len(f.Fields) > maxFields {
		f.Fields, f.kept = nil, nil
		if hide.Any() {
			return EditForm{}, false // the JSON would show hidden values
		}
		f.json(nil, f.Args, true, true)
	}
	return f, len(f.Fields) > 0
}

// object adds the members of an object: those of the schema, in its order, and
// then those that only the arguments have.
func (f *EditForm) object(path []string, s shape, raw []byte, hide approvals.Hidden) {
	under := func(key string) []string { return append(slices.Clip(path), key) }
	for _, p := range s.Properties {
		value, there := ValueAt(raw, []string{p.key})
		f.add(under(p.key), p.shape, value, there, s.requires(p.key), hide.Below(p.key))
	}
	for _, m := range Members(raw) {
		if !slices.ContainsFunc(s.Properties, func(p property) bool { return p.key == m.Key }) {
			f.add(under(m.Key), shape{unsupported: true}, raw[m.Start:m.End], true, false, hide.Below(m.Key))
		}
	}
}

func (f *EditForm) add(path []string, s shape, raw []byte, there, required bool, hide approvals.Hidden) {
	before := len(f.Fields)
	var text string
	isText := there && json.Unmarshal(raw, &text) == nil && raw[0] == '"'
	x := field{Path: path, about: s.Description, present: there, required: required}
	switch {
	case hide.Here(), s.WriteOnly:
		x.input, x.secret = inputSecret, hiddenEmpty
		if there {
			x.secret = hiddenNow + strings.TrimPrefix(strings.Trim(blockkit.HiddenValue(raw), "()"), "hidden, ") + "."
		}
		if x.asJSON = !isText && (there || !s.is("string")); x.asJSON {
			x.secret += hiddenJSON
		}
		f.Fields = append(f.Fields, x)
		return
	case s.is("object") && there && raw[0] == '{' && len(path) < MaxPath:
		f.object(path, s, raw, hide)
		return
	case hide.Any():
		f.kept = append(f.kept, kept{LabelOf(path), keptHidden})
		return
	case f.choice(x, s, raw):
	case s.is("string") && (isText || !there):
		if x.input, x.initial = inputText, text; !returnsUnchanged(text) {
			f.json(path, raw, there, required)
			break
		}
		if _, err := time.Parse(time.DateOnly, text); s.Format == "date" && (text == "" || err == nil) {
			x.input = inputDate
		}
		f.Fields = append(f.Fields, x)
	case s.is("integer") && (!there || isWhole(string(raw))), s.is("number") && (!there || isNumber(string(raw))):
		if x.input, x.initial = inputNumber, string(raw); s.is("integer") {
			x.input = inputWhole
		}
		f.Fields = append(f.Fields, x)
	default:
		f.json(path, raw, there, required)
	}
	if len(f.Fields) > before {
		last := &f.Fields[len(f.Fields)-1]
		last.about = s.Description
		if utf8.RuneCountInString(last.initial) > maxInput {
			f.Fields = f.Fields[:before]
			f.kept = append(f.kept, kept{LabelOf(path), keptLong + blockkit.Count(utf8.RuneCountInString(last.initial), "character") + ")"})
		}
	}
}

// choice adds a field with options, if the value is one of a few.
func (f *EditForm) choice(x field, s shape, raw []byte) bool {
	values := s.Enum
	if s.is("boolean") && len(values) == 0 {
		values = []json.RawMessage{[]byte("true"), []byte("false")}
	}
	if s.unsupported || len(values) == 0 || len(values) >= maxOptions {
		return false
	}
	x.input = inputChoice
	for i, v := range values {
		text := OnOneLine(v, nil)
		if plain, ok := strings.CutPrefix(text, `"`); ok && len(plain) > 1 {
			text = strings.TrimSuffix(plain, `"`)
		}
		x.options = append(x.options, option{text: blockkit.Clip(text, 70), raw: v})
		if x.present && bytes.Equal(bytes.TrimSpace(v), raw) {
			x.initial = fmt.Sprint(i)
		}
	}
	if x.present && x.initial == "" {
		return false
	}
	if !x.required {
		if x.options = append(x.options, option{text: noValue}); !x.present {
			x.initial = fmt.Sprint(len(values))
		}
	}
	f.Fields = append(f.Fields, x)
	return true
}

// json adds a field of JSON. Its text is indented if the input has room for
// that, and invisible characters are escaped.
func (f *EditForm) json(path []string, raw []byte, there, required bool) {
	x := field{Path: path, input: inputJSON, present: there, required: required}
	if there {
		var nice bytes.Buffer
		raw = bytes.TrimSpace(raw)
		if json.Indent(&nice, raw, "", "  ") == nil && utf8.RuneCount(nice.Bytes()) <= maxInput {
			raw = nice.Bytes()
		}
		x.initial = escapeSpoofs(string(raw))
	}
	if len(path) == 0 && utf8.RuneCountInString(x.initial) > maxInput {
		return
	}
	f.Fields = append(f.Fields, x)
}

// escapeSpoofs escapes the characters of JSON that [spoof.Find] finds.
// The meaning stays the same, and escapes stay as they are.
func escapeSpoofs(s string) string {
	var b strings.Builder
	spoofs := spoof.Find(s)
	escape := 0 // end of the escape that was read last
	for i, r := range s {
		if r == '\\' && i >= escape {
			if escape = i + len(`\n`); strings.HasPrefix(s[i:], `\u`) {
				escape = i + len(`\u0000`)
			}
		}
		for len(spoofs) > 0 && spoofs[0].To <= i {
			spoofs = spoofs[1:]
		}
		switch {
		case len(spoofs) == 0 || i < spoofs[0].From || i < escape:
			b.WriteRune(r)
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// returnsUnchanged reports whether an input returns a text unchanged, and shows
// nothing in it that is not what it looks like.
func returnsUnchanged(s string) bool {
	return strings.TrimSpace(s) == s && len(spoof.Find(s)) == 0
}

// Key is the block id of the field. It differs between forms of different
// schemas.
func (x field) Key() string {
	said := fmt.Appendf(nil, "%s\n%s\n", x.input, pointerTo(x.Path))
	for _, o := range x.options {
		said = fmt.Appendf(said, "%d:%s\n", len(o.raw), o.raw)
	}
	sum := sha256.Sum256(said)
	return "edit." + hex.EncodeToString(sum[:8])
}
