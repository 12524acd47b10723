package approvals

import (
	"strings"
	"unicode/utf8"
)

// MaxQuote is how many characters of someone else's words a batch keeps. It is
// about what a phone shows without scrolling: enough to say why, and too little
// to bury the arguments under it.
const MaxQuote = 500

// A Quote is the beginning of what a model, a person or a tool wrote. Such
// words can hold anything, also arguments and instructions to the reader. So a
// quote is shown as a quotation, with the name of who wrote it, and only to
// those who may read the arguments of the run.
type Quote struct {
	Text string
	Left int // so many characters of it were left out
}

// QuoteOf quotes at most [MaxQuote] characters, without the blanks around them.
// What is no text becomes U+FFFD.
func QuoteOf(text string) Quote {
	text = strings.TrimSpace(strings.ToValidUTF8(text, string(utf8.RuneError)))
	n := 0
	for i := range text {
		if n == MaxQuote {
			return Quote{Text: text[:i], Left: utf8.RuneCountInString(text[i:])}
		}
		n++
	}
	return Quote{Text: text}
}
