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
	SpoofInvisible SpoofKind = "invisible" // one character that cannot be seen, see [Invisible]
	SpoofMarks     SpoofKind = "marks"     // combining marks beyond the fourth on one character
	SpoofScript    SpoofKind = "script"    // letters that can be taken for those of another script
)

// A Spoof is the stretch of a text from byte From to byte To that people would
// not see, or would take for something else.
type Spoof struct {
	From, To int
	Kind     SpoofKind
	Script   string // of a SpoofScript, such as "Cyrillic"
}

// maxMarks is how many combining marks one character may carry. Living
// languages need no more, and a pile of them covers the lines around it.
const maxMarks = 4

// Spoofs returns the stretches of s that must not be shown as they are, in
// their order and without overlaps. It depends on s alone. Cards and forms both
// use it, so they mark the same characters. Bytes that are not UTF-8 are not
// its business.
//
// Besides what is [Invisible], these are combining marks beyond the fourth on
// one character, emoji styles that style nothing, and letters of a script that
// their word should not hold: see [foreignLetters].
func Spoofs(s string) []Spoof {
	foreign := foreignLetters(s)
	var out []Spoof
	marks, before, script := 0, rune(0), ""
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			continue // a byte that is no character
		}
		x := Spoof{From: i, To: i + utf8.RuneLen(r)}
		odd := ""
		if len(foreign) > 0 && foreign[0].From == i {
			odd, foreign = foreign[0].Script, foreign[1:]
		}
		stacks := unicode.In(r, unicode.Mn, unicode.Me)
		if stacks {
			marks++
		}
		switch {
		case Invisible(r), r == emojiStyle && !styles(before, s[x.To:]):
			x.Kind = SpoofInvisible
		case stacks && marks > maxMarks:
			x.Kind = SpoofMarks
		case odd != "":
			x.Kind, x.Script = SpoofScript, odd
		case stacks && script != "": // it stays with its letter
			x.Kind, x.Script = SpoofScript, script
		}
		if !stacks && x.Kind != SpoofInvisible && !unicode.Is(unicode.Mc, r) {
			marks = 0
		}
		before, script = r, x.Script
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
		if last := &all[n-1]; last.To == x.From && last.Kind == x.Kind && last.Script == x.Script {
			last.To = x.To
			return all
		}
	}
	return append(all, x)
}

// emojiStyle turns the character before it into an emoji. After a character
// that is not one it changes nothing that can be seen.
const emojiStyle = 0xFE0F

// styles reports whether an emojiStyle between these changes what is seen.
func styles(before rune, after string) bool {
	const keycap = "\u20E3"
	switch {
	case before == 0:
		return false
	case strings.ContainsRune("0123456789#*", before):
		return strings.HasPrefix(after, keycap)
	case before >= 0x2000 && unicode.In(before, unicode.So, unicode.Sm, unicode.Sk):
		return true
	}
	return strings.ContainsRune("©®‼⁉ℹ〰〽", before)
}
