package strictyaml

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

const notShown = "contains the invisible character %U; remove it"

// hidden returns the first character of s that does not show, if there is one.
func hidden(s string) (rune, bool) {
	for _, r := range approvals.Unseen(s) {
		return r, true
	}
	return 0, false
}

// maxIllegible is how many places of a file are named that cannot be read.
const maxIllegible = 20

// legible says where a file, comments and keys included, is not UTF-8 or holds
// what does not show. An editor may draw such a file with other lines than it
// has, so a rule could hide in what looks like a comment. A line may end as
// Windows ends it.
func (p *Problems) legible(at Mark, src []byte) bool {
	before := len(p.all)
	text, hidden := string(src), map[int]bool{}
	for i := range approvals.Unseen(text) {
		hidden[i] = true
	}
	for i, r := range text {
		if len(p.all) == before+maxIllegible {
			break
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			p.Wrong(at, "contains the byte 0x%02x, which is not UTF-8; save the file as UTF-8", text[i])
		case strings.HasPrefix(text[i:], "\r\n"):
		case hidden[i]:
			p.Wrong(at, notShown, r)
		}
		if at.Col++; r == '\n' {
			at.Line, at.Col = at.Line+1, 1
		}
	}
	return len(p.all) == before
}
