package slackui

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

// An argument is one top-level value of a call, as people read it. The text is
// harmless already and complete.
type argument struct {
	key   string // whole; empty if the arguments are not an object
	text  string
	block bool   // it has lines of its own
	note  string // what the text is, if that is not plain to see
}

// arguments reads the exact stored bytes: keys in their order, numbers digit
// by digit. Values at the writeOnly pointers become their length. Bytes that
// are no JSON, or that readers of JSON read differently, are shown as they are.
//
// Apart from hidden values, arguments that mean different things never read
// the same here. What means the same does: blanks between values are not
// shown, a letter and its escape ("a" and "\u0061") are one letter, and nothing
// at all is no arguments, as {} is. The digest tells these apart too.
func arguments(raw json.RawMessage, writeOnly []string) []argument {
	const blanks = " \t\r\n" // JSON's; a reader takes no others
	raw = bytes.Trim(raw, blanks)
	hide := approvals.HiddenAt(writeOnly)
	switch {
	case len(raw) == 0:
		return nil
	case hide.Here():
		return []argument{{text: hiddenValue(raw)}}
	case !definite(raw) && hide.Any():
		return []argument{{text: fmt.Sprintf("(hidden, %s)", count(len(raw), "byte")), note: "not well-formed JSON"}}
	case !definite(raw):
		return []argument{{text: visible(string(raw)), block: true, note: "not well-formed JSON, shown as it is stored"}}
	case raw[0] != '{':
		return []argument{read("", raw, hide)}
	}
	var args []argument
	d := decoder(raw)
	_, _ = d.Token()
	for d.More() {
		key, _ := d.Token()
		name, _ := key.(string)
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break // json.Valid has seen to it that there is none
		}
		args = append(args, read(quoteKey(name), value, hide.Below(name)))
	}
	return args
}

// definite reports whether raw is JSON whose strings every reader takes for
// the same: of bytes that are no UTF-8, and of half a surrogate pair, each
// makes something else.
func definite(raw []byte) bool {
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

func read(key string, raw json.RawMessage, hide approvals.Hidden) argument {
	if hide.Here() {
		return argument{key: key, text: hiddenValue(raw)}
	}
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		if strings.ContainsRune(s, '\n') {
			lines := strings.Count(s, "\n") + 1
			return argument{key: key, text: visible(s), block: true, note: fmt.Sprintf("text, %s lines", number(lines))}
		}
		text := quote(s)
		return argument{key: key, text: text, block: utf8.RuneCountInString(text) > inlineRunes}
	}
	short := printer{}
	short.value(decoder(raw), hide, 0)
	if s := short.out.String(); utf8.RuneCountInString(s) <= inlineRunes {
		return argument{key: key, text: s}
	}
	long := printer{lines: true}
	long.value(decoder(raw), hide, 0)
	return argument{key: key, text: long.out.String(), block: true}
}

func decoder(raw []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d
}

// A printer writes JSON again as it was, with blanks for people.
type printer struct {
	out   strings.Builder
	lines bool
}

// maxIndent keeps deep values from being mostly blanks.
const maxIndent = 8

func (p *printer) value(d *json.Decoder, hide approvals.Hidden, depth int) {
	if hide.Here() {
		var raw json.RawMessage
		if d.Decode(&raw) == nil {
			p.out.WriteString(hiddenValue(raw))
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
		p.out.WriteString(quote(token))
	case json.Number:
		p.out.WriteString(token.String())
	case bool:
		p.out.WriteString(strconv.FormatBool(token))
	default:
		p.out.WriteString("null")
	}
}

func (p *printer) composite(d *json.Decoder, open json.Delim, hide approvals.Hidden, depth int) {
	end := "]"
	if open == '{' {
		end = "}"
	}
	p.out.WriteString(open.String())
	n := 0
	for ; d.More(); n++ {
		if n > 0 {
			p.out.WriteString(",")
		}
		p.space(depth+1, n > 0)
		name := strconv.Itoa(n)
		if open == '{' {
			key, _ := d.Token()
			name, _ = key.(string)
			p.out.WriteString(quote(name) + ": ")
		}
		p.value(d, hide.Below(name), depth+1)
	}
	_, _ = d.Token()
	if n > 0 {
		p.space(depth, false)
	}
	p.out.WriteString(end)
}

func (p *printer) space(depth int, between bool) {
	switch {
	case p.lines:
		p.out.WriteString("\n" + strings.Repeat("  ", min(depth, maxIndent)))
	case between:
		p.out.WriteString(" ")
	}
}

// quote writes s as a JSON string that people can read: only what must be is
// escaped, and what cannot be seen is made visible.
func quote(s string) string {
	// Marked first: the n of an escape is no letter of the word behind it.
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(visibleBut(s, "\r"))
	return `"` + squeeze(s) + `"`
}

// quoteKey leaves plain keys plain.
func quoteKey(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == "" {
		return s
	}
	return quote(s)
}

func hiddenValue(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return fmt.Sprintf("(hidden, %s)", count(utf8.RuneCountInString(s), "character"))
	}
	return fmt.Sprintf("(hidden, %s)", count(len(raw), "byte"))
}

// shorten keeps the beginning and the end of a text, because what matters may
// be behind a long harmless start, and says in between what it left out.
func shorten(s string, most int) (short string, left int) {
	total := utf8.RuneCountInString(s)
	if total <= most {
		return s, 0
	}
	head, _ := cut(s, most-most/4)
	tail := lastRunes(s, most/4)
	left = total - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	return head + fmt.Sprintf(" ⟦%s left out⟧ ", count(left, "character")) + tail, left
}

func lastRunes(s string, n int) string {
	start := len(s)
	for range n {
		_, size := utf8.DecodeLastRuneInString(s[:start])
		start -= size
	}
	return s[start:]
}

// pieces cuts a text into parts of size runes, and loses none.
func pieces(s string, size int) []string {
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
