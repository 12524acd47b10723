package blockkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// An Argument is one top-level value of a call, as people read it. The text is
// harmless already and complete.
type Argument struct {
	key   string // whole; empty if the arguments are not an object
	text  string
	block bool   // it has lines of its own
	note  string // what the text is, if that is not plain to see
}

// Arguments reads the exact stored bytes: keys in their order, numbers digit
// by digit. Values at the writeOnly pointers become their length. Bytes that
// are no JSON, or that readers of JSON read differently, are shown as they are.
//
// Apart from hidden values, arguments that mean different things never read
// the same here. What means the same does: blanks between values are not
// shown, a letter and its escape ("a" and "\u0061") are one letter, and nothing
// at all is no arguments, as {} is. The digest tells these apart too.
func Arguments(raw json.RawMessage, writeOnly []string) []Argument {
	const blanks = " \t\r\n" // JSON's; a reader takes no others
	raw = bytes.Trim(raw, blanks)
	hide := approvals.HiddenAt(writeOnly)
	switch {
	case len(raw) == 0:
		return nil
	case hide.Here():
		return []Argument{{text: HiddenValue(raw)}}
	case !Definite(raw) && hide.Any():
		return []Argument{{text: fmt.Sprintf("(hidden, %s)", Count(len(raw), "byte")), note: "not well-formed JSON"}}
	case !Definite(raw):
		return []Argument{{text: Visible(string(raw)), block: true, note: "not well-formed JSON, shown as it is stored"}}
	case raw[0] != '{':
		return []Argument{read("", raw, hide)}
	}
	var args []Argument
	d := Decoder(raw)
	_, _ = d.Token()
	for d.More() {
		key, _ := d.Token()
		name, _ := key.(string)
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break // json.Valid has seen to it that there is none
		}
		args = append(args, read(QuoteKey(name), value, hide.Below(name)))
	}
	return args
}

// Definite reports whether raw is JSON whose strings every reader takes for
// the same: of bytes that are no UTF-8, and of half a surrogate pair, each
// makes something else.
func Definite(raw []byte) bool {
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return false
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		first := escaped(raw[i:])
		switch {
		case !utf16.IsSurrogate(first):
			i++ // an escaped backslash begins no escape
		case utf16.DecodeRune(first, escaped(raw[i+len(`\u0000`):])) == utf8.RuneError:
			return false
		default:
			i += 2*len(`\u0000`) - 1
		}
	}
	return true
}

// escaped returns the character of an escape like \u0061 at the start of raw,
// and 0 if there is none.
func escaped(raw []byte) rune {
	if len(raw) < len(`\u0000`) || raw[0] != '\\' || raw[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(raw[2:len(`\u0000`)]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// inlineRunes is how long a value may be to share a box with others.
const inlineRunes = 100

func read(key string, raw json.RawMessage, hide approvals.Hidden) Argument {
	if hide.Here() {
		return Argument{key: key, text: HiddenValue(raw)}
	}
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		if strings.ContainsRune(s, '\n') {
			lines := strings.Count(s, "\n") + 1
			return Argument{key: key, text: Visible(s), block: true, note: fmt.Sprintf("text, %s lines", Number(lines))}
		}
		text := Quote(s)
		return Argument{key: key, text: text, block: utf8.RuneCountInString(text) > inlineRunes}
	}
	short := Printer{}
	short.Value(Decoder(raw), hide, 0)
	if s := short.Out.String(); utf8.RuneCountInString(s) <= inlineRunes {
		return Argument{key: key, text: s}
	}
	long := Printer{lines: true}
	long.Value(Decoder(raw), hide, 0)
	return Argument{key: key, text: long.Out.String(), block: true}
}

// Decoder reads JSON with its numbers as they are written.
func Decoder(raw []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d
}

// A Printer writes JSON again as it was, with blanks for people.
type Printer struct {
	Out   strings.Builder
	lines bool
}

// maxIndent keeps deep values from being mostly blanks.
const maxIndent = 8

// Value prints the next value of d.
func (p *Printer) Value(d *json.Decoder, hide approvals.Hidden, depth int) {
	if hide.Here() {
		var raw json.RawMessage
		if d.Decode(&raw) == nil {
			p.Out.WriteString(HiddenValue(raw))
		}
		return
	}
	token, err := d.Token()
	if err != nil {
		return // the bytes are valid JSON
	}
	switch token := token.(type) {
	case json.Delim:
		p.composite(d, token, hide, depth)
	case string:
		p.Out.WriteString(Quote(token))
	case json.Number:
		p.Out.WriteString(token.String())
	case bool:
		p.Out.WriteString(strconv.FormatBool(token))
	default:
		p.Out.WriteString("null")
	}
}

func (p *Printer) composite(d *json.Decoder, open json.Delim, hide approvals.Hidden, depth int) {
	end := "]"
	if open == '{' {
		end = "}"
	}
	p.Out.WriteString(open.String())
	n := 0
	for ; d.More(); n++ {
		if n > 0 {
			p.Out.WriteString(",")
		}
		p.space(depth+1, n > 0)
		name := strconv.Itoa(n)
		if open == '{' {
			key, _ := d.Token()
			name, _ = key.(string)
			p.Out.WriteString(Quote(name) + ": ")
		}
		p.Value(d, hide.Below(name), depth+1)
	}
	_, _ = d.Token()
	if n > 0 {
		p.space(depth, false)
	}
	p.Out.WriteString(end)
}

func (p *Printer) space(depth int, between bool) {
	switch {
	case p.lines:
		p.Out.WriteString("\n" + strings.Repeat("  ", min(depth, maxIndent)))
	case between:
		p.Out.WriteString(" ")
	}
}

// Quote writes s as a JSON string that people can read: only what must be is
// escaped, and what cannot be seen is made visible.
func Quote(s string) string {
	// Marked first: the n of an escape is no letter of the word behind it.
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(visibleBut(s, "\r"))
	return `"` + squeeze(s) + `"`
}

// QuoteKey leaves plain keys plain.
func QuoteKey(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == "" {
		return s
	}
	return Quote(s)
}

// HiddenValue is what stands for a value that nobody may read.
func HiddenValue(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return fmt.Sprintf("(hidden, %s)", Count(utf8.RuneCountInString(s), "character"))
	}
	return fmt.Sprintf("(hidden, %s)", Count(len(raw), "byte"))
}

// Shorten keeps the beginning and the end of a text, because what matters may
// be behind a long harmless start, and says in between what it left out.
func Shorten(s string, most int) (short string, left int) {
	total := utf8.RuneCountInString(s)
	if total <= most {
		return s, 0
	}
	head, _ := Cut(s, most-most/4)
	tail := LastRunes(s, most/4)
	left = total - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	return head + fmt.Sprintf(" ⟦%s left out⟧ ", Count(left, "character")) + tail, left
}

// LastRunes returns the last n runes of s.
func LastRunes(s string, n int) string {
	start := len(s)
	for range n {
		_, size := utf8.DecodeLastRuneInString(s[:start])
		start -= size
	}
	return s[start:]
}

// Pieces cuts a text into parts of size runes, and loses none.
func Pieces(s string, size int) []string {
	var parts []string
	for r := strings.NewReader(s); ; {
		var b strings.Builder
		for range size {
			c, _, err := r.ReadRune()
			if err == io.EOF {
				break
			}
			b.WriteRune(c)
		}
		if b.Len() == 0 {
			return parts
		}
		parts = append(parts, b.String())
	}
}
