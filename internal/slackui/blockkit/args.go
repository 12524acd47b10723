package blockkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// An Argument is one top-level value of a call, as people read it. Its text is
// complete, and [Visible] or [Quote] made it.
type Argument struct {
	key   string // never cut; empty if the arguments are not an object
	text  string
	block bool   // it is drawn in a box of its own
	note  string // stands in brackets behind the key
}

// Arguments reads the stored bytes: keys in their order, numbers digit by
// digit. Values at the writeOnly pointers are replaced by their length. Bytes
// that are not JSON, or that JSON parsers read differently, are shown as they
// are stored.
//
// Apart from hidden values, arguments with different meanings are never shown
// alike. Arguments with the same meaning are: white space between values is not
// shown, a letter and its escape ("a" and "\u0061") are the same letter, and an
// empty text has no arguments, like {}. The digest distinguishes these too.
func Arguments(raw json.RawMessage, writeOnly []string) []Argument {
	const blanks = " \t\r\n" // JSON allows no others
	raw = bytes.Trim(raw, blanks)
	hide := approvals.HiddenAt(writeOnly)
	switch {
	case len(raw) == 0:
		return nil
	case hide.Here():
		return []Argument{{text: HiddenValue(raw)}}
	case !Unambiguous(raw) && hide.Any():
		return []Argument{{text: fmt.Sprintf("(hidden, %s)", Count(len(raw), "byte")), note: "not well-formed JSON"}}
	case !Unambiguous(raw):
		return []Argument{{text: markSpacesOver(Visible(string(raw)), spacesInText), block: true, note: "not well-formed JSON, shown as it is stored"}}
	case raw[0] != '{':
		return []Argument{readArgument("", raw, hide)}
	}
	var args []Argument
	d := Decoder(raw)
	_, _ = d.Token()
	for d.More() {
		key, _ := d.Token()
		name, _ := key.(string)
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break // unreachable: json.Valid has checked the bytes
		}
		args = append(args, readArgument(QuoteKey(name), value, hide.Below(name)))
	}
	return args
}

// Unambiguous reports whether every JSON parser reads the same strings in raw.
// Parsers disagree about bytes that are not UTF-8 and about half a surrogate
// pair.
func Unambiguous(raw []byte) bool {
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
			i++ // skip the escaped character: a backslash there begins no escape
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

// commandKey is the argument in which tools of terminals have their command. It is
// drawn as at a prompt, without quotes and escapes. The note says that it is a text,
// so that no other value looks the same; a command in which spaces could be missed
// keeps its quotes.
const commandKey = "command"

// hidesSpaces reports whether a command has spaces that could be missed, or so many that
// they push what follows out of sight.
func hidesSpaces(command string) bool {
	return command != strings.TrimSpace(command) || strings.ContainsRune(command, '\t') || strings.Contains(command, strings.Repeat(" ", spacesInLine+1))
}

// inlineRunes is the longest value that shares a box with others.
const inlineRunes = 100

func readArgument(key string, raw json.RawMessage, hide approvals.Hidden) Argument {
	if hide.Here() {
		return Argument{key: key, text: HiddenValue(raw)}
	}
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		if strings.ContainsRune(s, '\n') {
			lines := strings.Count(s, "\n") + 1
			return Argument{key: key, text: markSpacesOver(Visible(s), spacesInText), block: true, note: fmt.Sprintf("text, %s lines", Number(lines))}
		}
		if key == commandKey && s != "" && !hidesSpaces(s) {
			return Argument{key: key, text: Visible(s), block: true, note: "text"}
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

// Decoder returns a decoder of JSON that keeps numbers as they are written.
func Decoder(raw []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d
}

// A Printer writes JSON with readable white space. It changes nothing else but
// hidden values and characters that [Visible] marks.
type Printer struct {
	Out   strings.Builder
	lines bool
}

// maxIndent bounds the indentation of deep values.
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

// Quote writes s as a readable JSON string: it escapes only what JSON requires,
// and marks what [Visible] marks.
func Quote(s string) string {
	// Spoofs are marked before escaping: otherwise the n of \n would be read as
	// part of the word after it.
	s = jsonEscapes.Replace(visibleBut(s, "\r"))
	return `"` + markSpaces(s) + `"`
}

var jsonEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`)

// QuoteKey quotes a key, unless it consists of letters, digits and _-. only.
func QuoteKey(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == "" {
		return s
	}
	return Quote(s)
}

// HiddenValue returns what is shown instead of a value that nobody may read: its
// length.
func HiddenValue(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return fmt.Sprintf("(hidden, %s)", Count(utf8.RuneCountInString(s), "character"))
	}
	return fmt.Sprintf("(hidden, %s)", Count(len(raw), "byte"))
}

// Shorten keeps the beginning and the end of a text and says between them how
// much it left out. It keeps the end because a harmful part may follow a long
// harmless start.
func Shorten(s string, most int) (short string, left int) { return shorten(s, most, 0) }

// shorten is [Shorten], which also keeps no more lines than this, if it is not zero.
func shorten(s string, most, lines int) (short string, left int) {
	total := utf8.RuneCountInString(s)
	tall := lines > 0 && strings.Count(s, "\n") >= lines
	if total <= most && !tall {
		return s, 0
	}
	head, _ := Cut(s, most-most/4)
	tail := LastRunes(s, most/4)
	if tall {
		head = head[:afterLines(head, lines-lines/4)]
		tail = lastLines(tail, lines/4)
	}
	tail = s[afterRemark(s, len(s)-len(tail)):]
	left = total - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	return head + fmt.Sprintf(" ⟦%s left out⟧ ", Count(left, "character")) + tail, left
}

// afterLines returns where the first n lines of s end.
func afterLines(s string, n int) int {
	end := 0
	for range n {
		i := strings.IndexByte(s[end:], '\n')
		if i < 0 {
			return len(s)
		}
		end += i + 1
	}
	return end
}

// lastLines returns the last n lines of s.
func lastLines(s string, n int) string {
	start := len(s)
	for range n {
		if start = strings.LastIndexByte(s[:start], '\n'); start < 0 {
			return s
		}
	}
	return s[start+1:]
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

// Pieces cuts a text into parts of at most size runes, where [Cut] would cut. Together
// they are the whole text.
func Pieces(s string, size int) []string {
	var parts []string
	for s != "" {
		end := cutAt(s, size)
		if end == 0 { // the first letter, or remark, is longer than a part
			end = afterRunes(s, size)
		}
		parts = append(parts, s[:end])
		s = s[end:]
	}
	return parts
}
