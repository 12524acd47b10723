package approvals

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Invisible reports whether r leaves no mark of its own where it stands, or
// changes how others are seen: control and format characters, blanks other
// than the space, fillers that are drawn as nothing, private characters, and
// variation selectors. Line feeds, tabs and spaces are layout, not invisible,
// and U+FE0F only makes the character before it an emoji.
//
// It is the one table of its kind: what a card marks, a policy refuses and a
// quoted reason leaves out is the same set. What can be seen and is not what it
// looks like, [Spoofs] finds. The classes are those of
// https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing and
// https://www.unicode.org/reports/tr31/#Default_Ignorable_Code_Points.
func Invisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == ' ' || r == 0xFE0F:
		return false
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp, unicode.Zs):
		return true
	case unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return true
	}
	return r == 0x2800 // a braille cell without dots
}

// Visible returns s with everything that [Invisible] reports, and every byte that
// is not UTF-8, written as an escape sequence: \u200b, \xff. It is for text that
// a message quotes.
func Visible(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, Invisible) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !Invisible(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
