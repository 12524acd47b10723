package summary

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxTemplate is how many bytes a template may have.
const MaxTemplate = 1000

// A Template is a template that was read. The zero Template says nothing.
type Template struct{ parts []part }

// A part is text or, if expr is set, a placeholder.
type part struct {
	text string
	expr *expr
}

// An expr is what stands in a placeholder.
type expr struct {
	fn   function
	args []operand
	or   *string
}

// operandKind is what an operand is.
type operandKind int

const (
	operandPath operandKind = iota
	operandText
	operandNumber
)

var operandWords = map[operandKind]string{operandPath: "an argument", operandText: "a text in quotes", operandNumber: "a number"}

type operand struct {
	kind   operandKind
	at     int // the column, from 1
	path   path
	text   string
	number int
}

// A path leads to an argument, or with a step that is each to many.
type path []step

type step struct {
	key   string
	index int // where key is empty and isKey is not set
	isKey bool
	each  bool
}

// String writes the path as it stands in a template.
func (p path) String() string {
	var b strings.Builder
	b.WriteString("args")
	for _, s := range p {
		switch {
		case s.each:
			b.WriteString("[]")
		case !s.isKey:
			fmt.Fprintf(&b, "[%d]", s.index)
		case isPlainKey(s.key):
			b.WriteString("." + s.key)
		case strings.Contains(s.key, `"`):
			b.WriteString("['" + s.key + "']")
		default:
			b.WriteString(`["` + s.key + `"]`)
		}
	}
	return b.String()
}

func (p path) each() bool { return slices.ContainsFunc(p, func(s step) bool { return s.each }) }

// ends are the characters that end a plain key.
const ends = " \t\r\n{}.[]\"'"

func isPlainKey(key string) bool { return key != "" && !strings.ContainsAny(key, ends) }

// Parse reads a template. An error names the column and says what to do.
func Parse(source string) (Template, error) {
	switch {
	case strings.TrimSpace(source) == "":
		return Template{}, errors.New("the template is empty; write what the call does, such as Delete {args.path}")
	case len(source) > MaxTemplate:
		return Template{}, fmt.Errorf("the template has %d bytes; at most %d are allowed", len(source), MaxTemplate)
	}
	r := reader{src: []rune(source)}
	t, err := r.template()
	if err != nil {
		return Template{}, err
	}
	return t, nil
}

// Check reads a template and compares it with the JSON Schema of the tool's
// arguments and with the pointers of those that are write-only, as in
// [agentrun.Spec]. The error says everything that is wrong on one line, each with its
// column.
//
// [agentrun.Spec]: https://pkg.go.dev/github.com/countersign/countersign/internal/agentrun#Spec
func Check(source string, schema json.RawMessage, writeOnly []string) error {
	t, err := Parse(source)
	if err != nil {
		return err
	}
	return t.check(schema, writeOnly)
}

// A reader reads a template once, from left to right.
type reader struct {
	src []rune
	pos int
}

func wrongAt(at int, format string, args ...any) error {
	return fmt.Errorf("column %d: "+format, append([]any{at}, args...)...)
}

func (r *reader) done() bool { return r.pos >= len(r.src) }

// next reports whether c comes next, and again after it if it is to be doubled.
func (r *reader) next(s string) bool {
	return strings.HasPrefix(string(r.src[r.pos:min(len(r.src), r.pos+len(s))]), s)
}

func (r *reader) template() (Template, error) {
	var t Template
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			t.parts = append(t.parts, part{text: text.String()})
			text.Reset()
		}
	}
	for !r.done() {
		switch c := r.src[r.pos]; {
		case r.next("{{"), r.next("}}"):
			text.WriteRune(c)
			r.pos += 2
		case c == '}':
			return t, wrongAt(r.pos+1, "unmatched }; for a literal brace, write }}")
		case c == '{':
			flush()
			e, err := r.placeholder()
			if err != nil {
				return t, err
			}
			t.parts = append(t.parts, part{expr: e})
		default:
			text.WriteRune(c)
			r.pos++
		}
	}
	flush()
	return t, nil
}

// placeholder reads from { to }.
func (r *reader) placeholder() (*expr, error) {
	open := r.pos + 1
	r.pos++
	e := &expr{fn: show}
	r.space()
	if word, at := r.word(); word != "" && word != "args" {
		f, ok := functions[word]
		if !ok {
			return nil, wrongAt(at, "there is no function %s; an argument is written args.%s, and the functions are %s", word, word, functionNames())
		}
		e.fn = f
	} else {
		r.pos = at - 1
	}
	for {
		r.space()
		switch {
		case r.done():
			return nil, wrongAt(open, "the { is not closed; add }, or write {{ for a literal brace")
		case r.src[r.pos] == '}':
			r.pos++
			return e, e.complete(open)
		}
		if e.or != nil {
			return nil, wrongAt(r.pos+1, "nothing can follow the text of or")
		}
		if err := r.operand(e); err != nil {
			return nil, err
		}
	}
}

// operand reads one operand of e, or its or.
func (r *reader) operand(e *expr) error {
	at := r.pos + 1
	switch c := r.src[r.pos]; {
	case c == '"' || c == '\'':
		text, err := r.quoted()
		e.args = append(e.args, operand{kind: operandText, at: at, text: text})
		return err
	case c >= '0' && c <= '9':
		n, err := r.number()
		e.args = append(e.args, operand{kind: operandNumber, at: at, number: n})
		return err
	}
	word, _ := r.word()
	switch word {
	case "args":
		p, err := r.path(at)
		e.args = append(e.args, operand{kind: operandPath, at: at, path: p})
		return err
	case "or":
		r.space()
		if r.done() || r.src[r.pos] != '"' && r.src[r.pos] != '\'' {
			return wrongAt(at, `or needs a text, such as or "nobody"`)
		}
		text, err := r.quoted()
		e.or = &text
		return err
	case "":
		return wrongAt(at, "%q has no meaning here; for a literal brace, write {{ or }}", r.src[r.pos])
	}
	return wrongAt(at, "%s has no meaning here; an argument is written args.%s, and text goes in quotes", word, word)
}

func (r *reader) space() {
	for !r.done() && strings.ContainsRune(" \t\r\n", r.src[r.pos]) {
		r.pos++
	}
}

// word reads up to a character that ends one, and returns its column.
func (r *reader) word() (string, int) {
	from := r.pos
	for !r.done() && !strings.ContainsRune(ends, r.src[r.pos]) {
		r.pos++
	}
	return string(r.src[from:r.pos]), from + 1
}

func (r *reader) quoted() (string, error) {
	quote, from := r.src[r.pos], r.pos+1
	end := slices.Index(r.src[from:], quote)
	if end < 0 {
		return "", wrongAt(from, "the text is not closed; add %c at its end", quote)
	}
	r.pos = from + end + 1
	return string(r.src[from : from+end]), nil
}

func (r *reader) number() (int, error) {
	word, at := r.word()
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > 150 {
		return 0, wrongAt(at, "%s is not a number from 1 to 150", word)
	}
	return n, nil
}

// path reads the steps after args.
func (r *reader) path(at int) (path, error) {
	var p path
	for !r.done() {
		switch r.src[r.pos] {
		case '.':
			r.pos++
			key, _ := r.word()
			if key == "" {
				return nil, wrongAt(r.pos+1, "the name of an argument is missing after the point")
			}
			p = append(p, step{key: key, isKey: true})
			continue
		case '[':
			s, err := r.bracket()
			if err != nil {
				return nil, err
			}
			if s.each && p.each() {
				return nil, wrongAt(r.pos, "[] can appear only once in a path")
			}
			p = append(p, s)
			continue
		}
		break
	}
	if len(p) == 0 {
		return nil, wrongAt(at, "args alone names no argument; write args.NAME")
	}
	return p, nil
}

// bracket reads [0], ["key"] or [].
func (r *reader) bracket() (s step, err error) {
	open := r.pos + 1
	r.pos++
	switch {
	case r.done():
	case r.src[r.pos] == ']':
		s.each = true
	case r.src[r.pos] == '"' || r.src[r.pos] == '\'':
		s.isKey = true
		if s.key, err = r.quoted(); err != nil {
			return s, err
		}
	default:
		word, at := r.word()
		if s.index, err = strconv.Atoi(word); err != nil || s.index < 0 || s.index > 9999 {
			return s, wrongAt(at, `write [0], ["key"], or [] for every item`)
		}
	}
	if r.done() || r.src[r.pos] != ']' {
		return s, wrongAt(open, "the [ is not closed; add ]")
	}
	r.pos++
	return s, nil
}
