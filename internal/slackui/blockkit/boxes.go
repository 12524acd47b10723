package blockkit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// A Detail says how much of a call is shown.
type Detail struct {
	Value int  // runes of one argument
	Lines int  // lines of one argument; zero: any
	Keys  int  // arguments of one call
	Words int  // runes of what the policy or a person wrote
	Uncut bool // keys are never cut
}

// ArgumentBox is one box of arguments, under its label if it has one. One
// without text is only its label, such as a note on what is left out.
type ArgumentBox struct {
	Label Para
	Text  string
}

// BoxParas returns drawn arguments as paragraphs.
func BoxParas(list []ArgumentBox) []Para {
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

// Lines returns how many lines the boxes have together.
func Lines(list []ArgumentBox) int {
	n := 0
	for _, d := range list {
		if d.Text != "" {
			n += strings.Count(d.Text, "\n") + 1
		}
	}
	return n
}

// DrawArguments puts short values together in one box, a line each, and every
// long value into a box of its own, so that no value can look like the key of
// another. It reports whether it left anything out, such as a part of a key.
func DrawArguments(args []Argument, d Detail) (out []ArgumentBox, incomplete bool) {
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			out = append(out, ArgumentBox{Text: strings.Join(lines, "\n")})
			lines = nil
		}
	}
	for i, a := range args {
		if i == d.Keys {
			flush()
			return append(out, ArgumentBox{Label: Line(Styled(Count(len(args)-i, "more argument")+" not shown here.", Bold))}), true
		}
		text, left := shorten(a.text, d.Value, d.Lines)
		key, lost := Shorten(a.key, MaxKey)
		incomplete = incomplete || left > 0 || (lost > 0 && !d.Uncut)
		if lost > 0 && d.Uncut {
			flush()
			said := Line(Styled("A key of "+Count(utf8.RuneCountInString(a.key), "character"), Italic))
			out = append(out, ArgumentBox{Label: said, Text: a.key}, ArgumentBox{Label: a.label(Styled("Its value", Italic), left), Text: text})
			continue
		}
		if a.block {
			flush()
			out = append(out, ArgumentBox{Label: a.label(Styled(key, Bold), left), Text: text})
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

// linesPerBox keeps a box of short values below Slack's limit for one text.
const linesPerBox = 15

// MaxKey is the longest key, in runes, that is shown beside its value.
const MaxKey = 64

// label returns the paragraph above the box of a long value.
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
		name = Say("All arguments") // not bold, unlike keys
	}
	spans := []Span{name}
	if len(notes) > 0 {
		spans = append(spans, Say(" ("+strings.Join(notes, "; ")+")"))
	}
	return Line(spans...)
}

// NeverFolded reports whether Slack never folds the text away.
func NeverFolded(s string) bool { return len(s) <= 300 && strings.Count(s, "\n") < 5 }

// Shows reports whether everything of the call is shown with this detail.
// A hidden value counts as shown: its length is all that anybody sees of it.
func (d Detail) Shows(a approvals.Approval, call approvals.ToolCall) bool {
	_, incomplete := DrawArguments(Arguments(call.Args, a.WriteOnly), d)
	return !incomplete
}
