package slackui

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// drawn is one box of arguments, under its label if it has one. Without text it
// is a remark.
type drawn struct {
	label para
	text  string
}

func boxes(list []drawn) []para {
	var paras []para
	for _, d := range list {
		if d.label != nil {
			paras = append(paras, d.label)
		}
		if d.text != "" {
			paras = append(paras, box(d.text))
		}
	}
	return paras
}

// draw puts short values together in one box, a line each, and long ones into
// boxes of their own, so that no value can look like another one's key. It says
// whether anything was left out, a piece of a key included.
func draw(args []argument, d detail) (out []drawn, incomplete bool) {
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			out = append(out, drawn{text: strings.Join(lines, "\n")})
			lines = nil
		}
	}
	for i, a := range args {
		if i == d.keys {
			flush()
			return append(out, drawn{label: line(styled(count(len(args)-i, "more argument")+" not shown here.", bold))}), true
		}
		text, left := shorten(a.text, d.value)
		key, lost := shorten(a.key, maxKey)
		incomplete = incomplete || left > 0 || (lost > 0 && !d.uncut)
		if lost > 0 && d.uncut {
			flush()
			said := line(styled("A key of "+count(utf8.RuneCountInString(a.key), "character"), italic))
			out = append(out, drawn{label: said, text: a.key}, drawn{label: a.label(styled("Its value", italic), left), text: text})
			continue
		}
		if a.block {
			flush()
			out = append(out, drawn{label: a.label(styled(key, bold), left), text: text})
			continue
		}
		if key != "" {
			text = key + ": " + text
		}
		lines = append(lines, text)
		if len(lines) == linesPerBox {
			flush()
		}
	}
	flush()
	return out, incomplete
}

// linesPerBox keeps a box of short values below what one text may hold.
const linesPerBox = 15

// maxKey is how many runes of a key stand beside its value.
const maxKey = 64

// label stands above the box of a long value.
func (a argument) label(name span, left int) para {
	var notes []string
	if a.note != "" {
		notes = append(notes, a.note)
	}
	if left > 0 {
		notes = append(notes, fmt.Sprintf("%s, %s left out", count(utf8.RuneCountInString(a.text), "character"), number(left)))
	}
	if a.key == "" {
		if len(notes) == 0 {
			return nil
		}
		name = say("All arguments") // not bold: no key looks like it
	}
	spans := []span{name}
	if len(notes) > 0 {
		spans = append(spans, say(" ("+strings.Join(notes, "; ")+")"))
	}
	return line(spans...)
}

// short reports whether a text is never folded away.
func short(s string) bool { return len(s) <= 300 && strings.Count(s, "\n") < 5 }
