package blockkit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// A Detail says how much of each thing is shown.
type Detail struct {
	Value int  // runes of one argument
	Keys  int  // arguments of one call
	Words int  // runes of a reason, for asking or for denying
	Uncut bool // keys are shown whole, however long
}

// Drawn is one box of arguments, under its label if it has one. Without text it
// is a remark.
type Drawn struct {
	Label Para
	Text  string
}

// Boxes are the paragraphs of drawn arguments.
func Boxes(list []Drawn) []Para {
	var paras []Para
	for _, d := range list {
		if d.Label != nil {
			paras = append(paras, d.Label)
		}
		if d.Text != "" {
			paras = append(paras, Box(d.Text))
		}
	}
	return paras
}

// Draw puts short values together in one box, a line each, and long ones into
// boxes of their own, so that no value can look like another one's key. It says
// whether anything was left out, a piece of a key included.
func Draw(args []Argument, d Detail) (out []Drawn, incomplete bool) {
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			out = append(out, Drawn{Text: strings.Join(lines, "\n")})
			lines = nil
		}
	}
	for i, a := range args {
		if i == d.Keys {
			flush()
			return append(out, Drawn{Label: Line(Styled(Count(len(args)-i, "more argument")+" not shown here.", Bold))}), true
		}
		text, left := Shorten(a.text, d.Value)
		key, lost := Shorten(a.key, MaxKey)
		incomplete = incomplete || left > 0 || (lost > 0 && !d.Uncut)
		if lost > 0 && d.Uncut {
			flush()
			said := Line(Styled("A key of "+Count(utf8.RuneCountInString(a.key), "character"), Italic))
			out = append(out, Drawn{Label: said, Text: a.key}, Drawn{Label: a.label(Styled("Its value", Italic), left), Text: text})
			continue
		}
		if a.block {
			flush()
			out = append(out, Drawn{Label: a.label(Styled(key, Bold), left), Text: text})
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

// MaxKey is how many runes of a key stand beside its value.
const MaxKey = 64

// label stands above the box of a long value.
func (a Argument) label(name Span, left int) Para {
	var notes []string
	if a.note != "" {
		notes = append(notes, a.note)
	}
	if left > 0 {
		notes = append(notes, fmt.Sprintf("%s, %s left out", Count(utf8.RuneCountInString(a.text), "character"), Number(left)))
	}
	if a.key == "" {
		if len(notes) == 0 {
			return nil
		}
		name = Say("All arguments") // not bold: no key looks like it
	}
	spans := []Span{name}
	if len(notes) > 0 {
		spans = append(spans, Say(" ("+strings.Join(notes, "; ")+")"))
	}
	return Line(spans...)
}

// Short reports whether a text is never folded away.
func Short(s string) bool { return len(s) <= 300 && strings.Count(s, "\n") < 5 }

// Shows reports whether everything of the call is shown with this detail.
// Values that nobody may read are shown as their length, everywhere.
func (d Detail) Shows(a approvals.Approval, call approvals.ToolCall) bool {
	_, incomplete := Draw(Arguments(call.Args, a.WriteOnly), d)
	return !incomplete
}
