package blockkit

import (
	"strings"
	"unicode/utf8"
)

// AnswerRunes is the most of an answer that one message holds, in runes.
const AnswerRunes = 2800

// Split cuts a text into parts of at most size runes, at the end of a
// paragraph, a line or a word where there is one in the second half. A fence
// that is cut is closed and opened again.
func Split(s string, size int) []string {
	var parts []string
	fence := ""
	for s != "" {
		room := size - 2*len(fence) - 2*len("```\n")
		part := s
		if utf8.RuneCountInString(s) > room {
			part = cutAtBreak(s, room)
		}
		s = strings.TrimLeft(s[len(part):], "\n")
		opened := fence
		fence = openFence(part, fence)
		if opened != "" {
			part = opened + "\n" + part
		}
		if fence != "" && s != "" {
			part = strings.TrimRight(part, "\n") + "\n```"
		}
		parts = append(parts, strings.TrimRight(part, "\n "))
	}
	return parts
}

// cutAtBreak returns at most the first n runes of s, up to the end of a
// paragraph, a line or a word if there is one in their second half.
func cutAtBreak(s string, n int) string {
	h, _ := Cut(s, n)
	for _, end := range []string{"\n\n", "\n", " "} {
		if i := strings.LastIndex(h, end); i > len(h)/2 {
			return h[:i+len(end)]
		}
	}
	return h
}

// openFence returns the fence that is still open after s, with its language.
func openFence(s, fence string) string {
	for l := range strings.Lines(s) {
		l = strings.TrimSpace(l)
		if !strings.HasPrefix(l, "```") {
			continue
		}
		if fence != "" {
			fence = ""
			continue
		}
		fence, _ = Cut(l, 20)
	}
	return fence
}

// Markdown turns the Markdown that models use most into rich text: fences,
// `code`, **bold** and headings. Everything else, such as links, is shown
// letter for letter.
func Markdown(s string) []Para {
	var paras []Para
	var text, fenced []string
	inFence := false
	flush := func() {
		if t := strings.Trim(strings.Join(text, "\n"), "\n"); t != "" {
			paras = append(paras, Line(inlineSpans(t)...))
		}
		text = nil
	}
	for l := range strings.SplitSeq(s, "\n") {
		switch trimmed := strings.TrimSpace(l); {
		case strings.HasPrefix(trimmed, "```") && !inFence:
			flush()
			inFence = true
		case trimmed == "```" && inFence:
			paras, fenced, inFence = append(paras, Box(strings.Join(fenced, "\n"))), nil, false
		case inFence:
			fenced = append(fenced, l)
		case heading(trimmed) != "":
			flush()
			paras = append(paras, Line(Styled(heading(trimmed), Bold)))
		default:
			text = append(text, l)
		}
	}
	if inFence && len(fenced) > 0 {
		paras = append(paras, Box(strings.Join(fenced, "\n")))
	}
	flush()
	if len(paras) == 0 {
		paras = []Para{Line(Say(s))}
	}
	return paras
}

func heading(l string) string {
	rest := strings.TrimLeft(l, "#")
	if n := len(l) - len(rest); n == 0 || n > 6 || !strings.HasPrefix(rest, " ") {
		return ""
	}
	return strings.TrimSpace(rest)
}

// inlineSpans finds `code` and **bold** in a paragraph.
func inlineSpans(s string) []Span {
	var spans []Span
	plain := 0 // start of the text that is not in spans yet
	for i := 0; i < len(s); {
		mark, style := "`", Code
		switch {
		case strings.HasPrefix(s[i:], "**"):
			mark, style = "**", Bold
		case s[i] != '`':
			i++
			continue
		}
		word, rest, ok := between(s[i:], mark)
		if !ok {
			i += len(mark)
			continue
		}
		if plain < i {
			spans = append(spans, Say(s[plain:i]))
		}
		spans = append(spans, Styled(word, style))
		i = len(s) - len(rest)
		plain = i
	}
	if plain < len(s) {
		spans = append(spans, Say(s[plain:]))
	}
	return spans
}

// between returns the text between two marks on one line.
func between(s, mark string) (word, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, mark)
	if !ok {
		return "", "", false
	}
	word, rest, ok = strings.Cut(s, mark)
	if !ok || word == "" || strings.ContainsRune(word, '\n') || strings.TrimSpace(word) != word {
		return "", "", false
	}
	return word, rest, true
}
