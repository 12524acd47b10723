// Package spoof finds the characters of a text that people would not see, or
// would take for others. Cards and forms mark what it finds, so that an approver
// reads what will run.
package spoof

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// Kind says why a stretch of a text is not what it looks like.
type Kind string

// The kinds of spoofs.
const (
	Invisible Kind = "invisible" // one character that does not show, see [approvals.Unseen]
	Marks     Kind = "marks"     // combining marks beyond the fourth on one character
	Script    Kind = "script"    // letters that can be taken for those of another script
	Form      Kind = "form"      // other forms of plain letters, digits and signs
)

// A Span is the stretch of a text from byte From to byte To that people would
// not see, or would take for something else.
type Span struct {
	From, To int
	Kind     Kind
	Name     string // the script of a Script, such as "Cyrillic", or the form of a Form, such as "fullwidth"
}

// maxMarks is how many combining marks one character may carry. Living
// languages need no more, and a pile of them covers the lines around it.
const maxMarks = 4

// Find returns the stretches of s that must not be shown as they are, in
// their order and without overlaps. It depends on s alone. Cards and forms both
// use it, so they mark the same characters. Bytes that are not UTF-8 are not
// returned.
//
// Besides what is [approvals.Unseen], these are combining marks beyond the fourth on one
// character, other forms of plain characters (see [oddForms]), and letters of a
// script that their word should not hold (see [foreignLetters]).
func Find(s string) []Span {
	foreign, forms := foreignLetters(s), oddForms(s)
	var unseen []int
	for i := range approvals.Unseen(s) {
		unseen = append(unseen, i)
	}
	var out []Span
	marks, kind, name := 0, Kind(""), ""
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			continue // a byte that is no character
		}
		x := Span{From: i, To: i + utf8.RuneLen(r)}
		hidden := len(unseen) > 0 && unseen[0] == i
		if hidden {
			unseen = unseen[1:]
		}
		script, form := "", ""
		if len(foreign) > 0 && foreign[0].From == i {
			script, foreign = foreign[0].Name, foreign[1:]
		}
		if len(forms) > 0 && forms[0].From == i {
			form, forms = forms[0].Name, forms[1:]
		}
		stacks := unicode.In(r, unicode.Mn, unicode.Me)
		if stacks {
			marks++
		}
		switch {
		case hidden:
			x.Kind = Invisible
		case stacks && marks > maxMarks:
			x.Kind = Marks
		case form != "":
			x.Kind, x.Name = Form, form
		case script != "":
			x.Kind, x.Name = Script, script
		case stacks && name != "": // it stays with its letter
			x.Kind, x.Name = kind, name
		}
		if !stacks && x.Kind != Invisible && !unicode.Is(unicode.Mc, r) {
			marks = 0
		}
		kind, name = x.Kind, x.Name
		out = appendSpan(out, x)
	}
	return out
}

// appendSpan adds x to the stretch before it, if both are of one kind. Each
// invisible character stays a stretch of its own.
func appendSpan(all []Span, x Span) []Span {
	if x.Kind == "" {
		return all
	}
	if n := len(all); n > 0 && x.Kind != Invisible {
		if last := &all[n-1]; last.To == x.From && last.Kind == x.Kind && last.Name == x.Name {
			last.To = x.To
			return all
		}
	}
	return append(all, x)
}
