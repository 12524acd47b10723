package blockkit

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/spoof"
)

// Remark marks s as a remark of ours within foreign text.
func Remark(s string) string { return "⟦" + s + "⟧" }

var (
	escaper   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	unescaper = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")
)

// Unescape undoes Slack's escaping, once.
func Unescape(s string) string { return unescaper.Replace(s) }

// Visible returns s with a remark in place of everything that is not what it
// looks like, as found by [spoof.Find]. An invisible character, one that
// changes how others are shown, and a pile of combining marks become their code
// points: ⟦U+202E⟧. The script of a letter that does not fit its word is named,
// p⟦Cyrillic а⟧y, and so is another form of a plain character, p⟦fullwidth ａ⟧y.
// Bytes that are not UTF-8 are shown as numbers. Line feeds and
// tabs stay. The bracket ⟦ in s becomes its code point too, so that every ⟦ in
// the result begins a remark of ours; Visible must therefore be applied only
// once. Different texts have different results.
func Visible(s string) string { return visibleBut(s, "") }

// visibleBut is [Visible], but leaves the characters in but as they are.
func visibleBut(s, but string) string {
	if plainASCII(s) {
		return s
	}
	var b strings.Builder
	at := 0
	for _, x := range spoof.Find(s) {
		writeMarked(&b, s[at:x.From])
		stretch := s[x.From:x.To]
		switch {
		case but != "" && strings.Contains(but, stretch):
			b.WriteString(stretch)
		case x.Name != "":
			b.WriteString(Remark(x.Name + " " + stretch))
		default:
			b.WriteString(Remark(codePoints(stretch)))
		}
		at = x.To
	}
	writeMarked(&b, s[at:])
	return b.String()
}

// writeMarked writes a text that has no spoofs: it marks bytes that are not
// UTF-8, and the bracket of remarks.
func writeMarked(b *strings.Builder, s string) {
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(b, "⟦byte %02X⟧", s[i])
		case r == remarkStart:
			b.WriteString(Remark(codePoints(string(r))))
		default:
			b.WriteRune(r)
		}
	}
}

// codePoints writes the code points of s, with a count for one that is repeated.
func codePoints(s string) string {
	var all []string
	runes := []rune(s)
	for i := 0; i < len(runes); {
		n := 1
		for i+n < len(runes) && runes[i+n] == runes[i] {
			n++
		}
		code := fmt.Sprintf("U+%04X", runes[i])
		if n > 1 {
			code += fmt.Sprintf(" ×%d", n)
		}
		all = append(all, code)
		i += n
	}
	return strings.Join(all, " ")
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || (c < ' ' && c != '\n' && c != '\t') || c == 0x7f {
			return false
		}
	}
	return true
}

// remarkStart begins every remark of ours within foreign text, and remarkEnd ends it.
const (
	remarkStart = '⟦'
	remarkEnd   = "⟧"
)

// The longest runs of spaces that are shown as they are. Texts of several lines may be
// indented.
const (
	spacesInLine = 16
	spacesInText = 64
)

// markSpaces replaces long runs of spaces by a remark with their number: they
// could push what follows out of sight.
func markSpaces(s string) string { return markSpacesOver(s, spacesInLine) }

// markSpacesOver marks runs of more than so many spaces.
func markSpacesOver(s string, most int) string {
	if !strings.Contains(s, strings.Repeat(" ", most+1)) {
		return s
	}
	var b strings.Builder
	for s != "" {
		rest := strings.TrimLeft(s, " ")
		if n := len(s) - len(rest); n > most {
			fmt.Fprintf(&b, "⟦%d spaces⟧", n)
		} else {
			b.WriteString(s[:n])
		}
		word := strings.IndexByte(rest, ' ')
		if word < 0 {
			word = len(rest)
		}
		b.WriteString(rest[:word])
		s = rest[word:]
	}
	return b.String()
}

// Cut returns at most n runes of s and how many it left out. It does not
// separate a letter from its marks, or cut a remark of ours in two.
func Cut(s string, n int) (string, int) {
	end := cutAt(s, n)
	return s[:end], utf8.RuneCountInString(s[end:])
}

// quotedLines is how many lines of someone's words are quoted: more would push what
// follows them in a block to where Slack folds it away.
const quotedLines = 10

// CutQuote is [Cut] for words that are quoted. It also leaves out lines, if there are many.
func CutQuote(s string, n int) (string, int) {
	text, left := Cut(s, n)
	if lines := strings.SplitN(text, "\n", quotedLines+1); len(lines) > quotedLines {
		left += 1 + utf8.RuneCountInString(lines[quotedLines])
		text = strings.Join(lines[:quotedLines], "\n")
	}
	return text, left
}

// cutAt returns where [Cut] cuts.
func cutAt(s string, n int) int {
	end := afterRunes(s, n)
	if end == len(s) {
		return end
	}
	// Step back over marks that belong to the letter before them, but not far.
	for range 8 {
		next, _ := utf8.DecodeRuneInString(s[end:])
		if end == 0 || !unicode.Is(unicode.M, next) {
			break
		}
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	return beforeRemark(s, end)
}

// afterRunes returns where the first n runes of s end.
func afterRunes(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// longestRemark is how many bytes of a remark are kept together.
const longestRemark = 120

// beforeRemark returns the start of the remark that a cut of s would cut in two, or the
// place of the cut if there is none.
func beforeRemark(s string, cut int) int {
	near := max(0, cut-longestRemark)
	start := strings.LastIndex(s[near:cut], string(remarkStart))
	if start < 0 || strings.Contains(s[near+start:cut], remarkEnd) {
		return cut
	}
	return near + start
}

// afterRemark is [beforeRemark], but returns the end of the remark.
func afterRemark(s string, cut int) int {
	if beforeRemark(s, cut) == cut {
		return cut
	}
	rest := strings.Index(s[cut:min(len(s), cut+longestRemark)], remarkEnd)
	if rest < 0 {
		return cut
	}
	return cut + rest + len(remarkEnd)
}

// Brief is foreign text made visible, on one line, cut to n runes.
func Brief(s string, n int) string { return Clip(Visible(oneLine(s)), n) }

// Clip is a text that is visible already, on one line, cut to n runes.
func Clip(s string, n int) string {
	head, left := Cut(markSpaces(oneLine(s)), n)
	if left > 0 {
		head += "…"
	}
	return head
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\t' || r == '\r' }), " ")
}

// Number writes n with commas between thousands.
func Number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count writes "1 call" or "3 calls".
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + one + "s"
}

// Literal is shown letter for letter.
func Literal(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}

// List joins with commas and a last "and".
func List(items []string) string {
	switch len(items) {
	case 0:
		return ""
	case 1:
		return items[0]
	}
	return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
}
