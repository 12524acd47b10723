package blockkit

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// Ago says roughly how long ago something was.
func Ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return Count(int(d.Minutes()), "minute") + " ago"
	case d < 48*time.Hour:
		return Count(int(d.Hours()), "hour") + " ago"
	}
	return Count(int(d.Hours()/24), "day") + " ago"
}

// Duration says how long a call took, as a person says it.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return Number(int(max(d.Milliseconds(), 1))) + " ms"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return Number(int(d.Seconds())) + " s"
	}
	return Number(int(d.Minutes())) + " min"
}

// PluralForm is the word for one, or for several.
func PluralForm(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

// Sentence makes a sentence of foreign text such as that of an error.
func Sentence(s string) string {
	if s = Brief(s, 500); s == "" {
		return "The tool doesn't take this."
	}
	first, size := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(first)) + s[size:]
	return strings.TrimRight(s, ".") + "."
}

// Verb is the form for so many of "waits" and its like.
func Verb(n int, one string) string {
	if n == 1 {
		return one
	}
	return strings.TrimSuffix(one, "s")
}

// ShellWord returns a name as one word of a command line.
func ShellWord(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// Nonempty leaves out empty groups.
func Nonempty(groups ...[]Para) [][]Para {
	return slices.DeleteFunc(groups, func(g []Para) bool { return len(g) == 0 })
}

// PersonSpans mentions each of these people.
func PersonSpans(ids []approvals.UserID) []Span {
	spans := make([]Span, 0, len(ids))
	for _, id := range ids {
		spans = append(spans, PersonSpan(id))
	}
	return spans
}

// NamesShown is how many names are listed before the rest is counted.
const NamesShown = 5

// Risk says a severity in words. It is never empty: that nobody stated a risk is no
// promise either.
func Risk(s approvals.Severity) string {
	switch s {
	case approvals.SeverityLow:
		return "Low risk"
	case approvals.SeverityHigh:
		return "High risk"
	case approvals.SeverityUnset:
		return "Risk not stated"
	case approvals.SeverityIrreversible:
	}
	return "Irreversible"
}
