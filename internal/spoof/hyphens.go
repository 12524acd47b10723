package spoof

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Dashes that look like the hyphen of a flag, of
// https://www.unicode.org/Public/security/latest/confusables.txt, and longer ones, which
// editors write in its place.
const (
	alikeHyphens = "\u02d7\u2010\u2011\u2012\u2013\u2043\u2212\ufe58\ufe63"
	longHyphens  = "\u2014\u2015"
)

// flagWord is what people read as a flag: it stands where a word or a quoted text
// begins. The second group is its letters, without a value.
var flagWord = regexp.MustCompile("(?:^|[\\s\\p{Z}\\p{Cf}\"'`(\\[{,;:=|&<>])([-" + alikeHyphens + longHyphens + "]+)([A-Za-z][A-Za-z0-9_" + alikeHyphens + "-]*=?)")

// oddHyphens returns the dashes that people read as the hyphens of a flag, and that
// no program takes for those: "delete everything \u2010\u2010dry-run" deletes.
//
// In prose these dashes are ordinary. So they are returned only where a flag could
// stand, and a long one only if the rest of the word looks like a flag, too:
// direct speech of some languages begins with one.
func oddHyphens(s string) []Span {
	if !strings.ContainsAny(s, alikeHyphens+longHyphens) {
		return nil
	}
	var out []Span
	for _, m := range flagWord.FindAllStringSubmatchIndex(s, -1) {
		from, letters, to := m[2], m[4], m[5]
		if !strings.ContainsAny(s[from:to], alikeHyphens) && !strings.ContainsAny(s[letters:to], "-=") {
			continue
		}
		for i, r := range s[from:to] {
			if r >= utf8.RuneSelf {
				out = append(out, Span{From: from + i, To: from + i + utf8.RuneLen(r), Kind: Form, Name: "lookalike hyphen"})
			}
		}
	}
	return out
}
