package approvals

import (
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Invisible reports whether r leaves no mark of its own where it stands, or
// changes how others are seen: control and format characters, blanks other
// than the space, fillers that are drawn as nothing, private characters, and
// variation selectors. Line feeds, tabs and spaces are layout, not invisible.
//
// It is the one table of its kind: what a card marks, a policy refuses and a
// message escapes is the same set, see [Unseen]. What can be seen and is not what it
// looks like, package spoof finds. The classes are those of
// https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing and
// https://www.unicode.org/reports/tr31/#Default_Ignorable_Code_Points.
func Invisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x7f:
		return r < ' '
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp, unicode.Zs):
		return true
	case unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return true
	}
	return r == 0x2800 // a braille cell without dots
}

// Unseen yields the characters of s that do not show, with their places: those
// that are [Invisible], but for U+FE0F behind an emoji. Keyboards write it there,
// as in ❤️, and it is what makes the emoji look like one.
func Unseen(s string) iter.Seq2[int, rune] {
	return func(yield func(int, rune) bool) {
		before := rune(0)
		for i, r := range s {
			if hiddenAfter(before, r, s[i:]) && !yield(i, r) {
				return
			}
			before = r
		}
	}
}

// hiddenAfter reports whether r, with which the rest of a text begins, does not
// show behind the character before it.
func hiddenAfter(before, r rune, rest string) bool {
	return Invisible(r) && (r != emojiStyle || !styles(before, rest[utf8.RuneLen(r):]))
}

// VisibleLine is [Visible] for a text that must stay on its line, and in its column:
// line feeds and tabs are escape sequences too. It is for names and ids, which may be
// what a model wrote.
func VisibleLine(s string) string { return lineOf.Replace(Visible(s)) }

var lineOf = strings.NewReplacer("\n", `\n`, "\t", `\t`)

// Visible returns s with everything that is [Unseen], and every byte that is not
// UTF-8, written as an escape sequence: \u200b, \xff. It is for text that a
// message quotes.
func Visible(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, Invisible) {
		return s
	}
	var b strings.Builder
	before := rune(0)
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		hidden := hiddenAfter(before, r, s[i:])
		before = r
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !hidden:
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
