package summary

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limit is how many characters a summary has at most.
const Limit = 150

// How many characters of one value, and of the name of an argument or a tool,
// are shown.
const (
	valueLimit = 60
	nameLimit  = 40
)

// oneLine returns s as one line without blanks at its ends: line breaks, tabs and
// runs of spaces become one space. Other characters that cannot be seen stay, for
// the surface to mark.
func oneLine(s string) string {
	var b strings.Builder
	blank := false
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch r {
		case ' ', '\t', '\n', '\v', '\f', '\r', 0x85, 0x2028, 0x2029:
			blank = true
			continue
		}
		if blank && b.Len() > 0 {
			b.WriteByte(' ')
		}
		blank = false
		b.WriteRune(r)
	}
	return b.String()
}

// cut returns at most n characters of s; what is cut ends with an ellipsis.
func cut(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return strings.TrimRight(string(runes[:n-1]), " ") + "…"
}

// Words returns the name of a tool in words: delete_file and deleteFile are
// "Delete file".
func Words(tool string) string {
	var words []string
	for _, part := range strings.FieldsFunc(oneLine(tool), func(r rune) bool { return strings.ContainsRune("_-./: ", r) }) {
		words = append(words, humps([]rune(part))...)
	}
	for i, w := range words {
		if i > 0 && strings.ToUpper(w) != w {
			words[i] = strings.ToLower(w)
		}
	}
	name := strings.Join(words, " ")
	if name == "" {
		name = oneLine(tool)
	}
	if name == "" {
		return "A call without a name"
	}
	first, size := utf8.DecodeRuneInString(name)
	return cut(string(unicode.ToUpper(first))+name[size:], nameLimit)
}

// humps takes camel case apart: "readHTTPBody" is read, HTTP and Body.
func humps(part []rune) []string {
	var words []string
	from := 0
	for i := 1; i < len(part); i++ {
		ends := unicode.IsUpper(part[i]) && unicode.IsLower(part[i-1])
		last := unicode.IsUpper(part[i]) && unicode.IsUpper(part[i-1]) && i+1 < len(part) && unicode.IsLower(part[i+1])
		if ends || last {
			words, from = append(words, string(part[from:i])), i
		}
	}
	return append(words, string(part[from:]))
}
