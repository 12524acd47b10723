package strictyaml

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

const notShown = "holds %U, which does not show, so it is not what people read; remove it"

// hidden returns the first character of s that does not show, if there is one.
func hidden(s string) (rune, bool) {
	i := strings.IndexFunc(s, approvals.Invisible)
	if i < 0 {
		return 0, false
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return r, true
}

// maxIllegible is how many places of a file are named that cannot be read.
const maxIllegible = 20

// legible says where a file, comments and keys included, is not UTF-8 or holds
// what does not show. An editor may draw such a file with other lines than it
// has, so a rule could hide in what looks like a comment. A line may end as
// Windows ends it.
func (p *Problems) legible(at Mark, src []byte) bool {
	before := len(p.all)
	for rest := src; len(rest) > 0 && len(p.all) < before+maxIllegible; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			p.Wrong(at, "holds the byte 0x%02x, which is not UTF-8; save the file as UTF-8", rest[0])
		case r == '\r' && len(rest) > 1 && rest[1] == '\n':
		case approvals.Invisible(r):
			p.Wrong(at, notShown, r)
		}
		rest = rest[size:]
		if at.Col++; r == '\n' {
			at.Line, at.Col = at.Line+1, 1
		}
	}
	return len(p.all) == before
}
