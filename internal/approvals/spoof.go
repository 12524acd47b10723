package approvals

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// SpoofKind says why a stretch of a text is not what it looks like.
type SpoofKind string

// The kinds of spoofs.
const (
	SpoofInvisible SpoofKind = "invisible" // one character that does not show, see [Unseen]
	SpoofMarks     SpoofKind = "marks"     // combining marks beyond the fourth on one character
	SpoofScript    SpoofKind = "script"    // letters that can be taken for those of another script
	SpoofForm      SpoofKind = "form"      // other forms of plain letters, digits and signs
)

// A Spoof is the stretch of a text from byte From to byte To that people would
// not see, or would take for something else.
type Spoof struct {
	From, To int
	Kind     SpoofKind
	Name     string // the script of a SpoofScript, such as "Cyrillic", or the form of a SpoofForm, such as "fullwidth"
}

// maxMarks is how many combining marks one character may carry. Living
// languages need no more, and a pile of them covers the lines around it.
const maxMarks = 4

// Spoofs returns the stretches of s that must not be shown as they are, in
// their order and without overlaps. It depends on s alone. Cards and forms both
// use it, so they mark the same characters. Bytes that are not UTF-8 are not
// returned.
//
// Besides what is [Unseen], these are combining marks beyond the fourth on one
// character, other forms of plain characters (see [oddForms]), and letters of a
// script that their word should not hold (see [foreignLetters]).
func Spoofs(s string) []Spoof {
	foreign, forms := foreignLetters(s), oddForms(s)
	var out []Spoof
	marks, before, kind, name := 0, rune(0), SpoofKind(""), ""
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			continue // a byte that is no character
		}
		x := Spoof{From: i, To: i + utf8.RuneLen(r)}
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
		case hiddenAfter(before, r, s[i:]):
			x.Kind = SpoofInvisible
		case stacks && marks > maxMarks:
			x.Kind = SpoofMarks
		case form != "":
			x.Kind, x.Name = SpoofForm, form
		case script != "":
			x.Kind, x.Name = SpoofScript, script
		case stacks && name != "": // it stays with its letter
			x.Kind, x.Name = kind, name
		}
		if !stacks && x.Kind != SpoofInvisible && !unicode.Is(unicode.Mc, r) {
			marks = 0
		}
		before, kind, name = r, x.Kind, x.Name
		out = appendSpoof(out, x)
	}
	return out
}

// appendSpoof adds x to the stretch before it, if both are of one kind. Each
// invisible character stays a stretch of its own.
func appendSpoof(all []Spoof, x Spoof) []Spoof {
	if x.Kind == "" {
		return all
	}
	if n := len(all); n > 0 && x.Kind != SpoofInvisible {
		if last := &all[n-1]; last.To == x.From && last.Kind == x.Kind && last.Name == x.Name {
			last.To = x.To
			return all
		}
	}
	return append(all, x)
}
