package openaisim

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxQuote is how many characters of an answer are quoted.
const maxQuote = 300

// opening is how many words of an answer are searched for a refusal.
const opening = 12

var (
	fileName = regexp.MustCompile(`[\w./-]*\w\.[A-Za-z][A-Za-z0-9]{1,4}\b`)
	year     = regexp.MustCompile(`(?:^|[^0-9])((?:19|20)[0-9]{2})(?:$|[^0-9])`)
	quoted   = regexp.MustCompile(`"[^"]*"|“[^”]*”`)
)

// fileNames returns the names in the content, in order and once each, whether
// it is a list, objects with names in them, or lines of text.
func (r Result) fileNames() []string {
	var names []string
	for _, text := range r.texts() {
		for _, name := range fileName.FindAllString(text, -1) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// texts returns every string in JSON content, in order, or the plain text.
func (r Result) texts() []string {
	if !json.Valid([]byte(r.Content)) {
		return []string{r.Content}
	}
	var found []string
	tokens := json.NewDecoder(strings.NewReader(r.Content))
	for {
		token, err := tokens.Token()
		if err != nil {
			return found // the content is valid, so this is its end
		}
		if text, ok := token.(string); ok {
			found = append(found, text)
		}
	}
}

// olderYears returns the names whose year is before the newest year among all
// the names.
func olderYears(names []string) []string {
	newest := ""
	for _, name := range names {
		newest = max(newest, yearOf(name))
	}
	var old []string
	for _, name := range names {
		if y := yearOf(name); y != "" && y < newest {
			old = append(old, name)
		}
	}
	return old
}

func yearOf(name string) string {
	if m := year.FindStringSubmatch(path.Base(name)); m != nil {
		return m[1]
	}
	return ""
}

// report says of a call what its answer says: that it was done, that it was
// not, or, where that is not plain, only what the answer was.
func (r Result) report(subject, done string, doneWords ...string) string {
	switch {
	case r.refused():
		return fmt.Sprintf("%s: not %s. %s", subject, done, r.told())
	case r.done(doneWords):
		return fmt.Sprintf("%s: %s.", subject, done)
	default:
		return fmt.Sprintf("%s: %s", subject, r.told())
	}
}

// refused reports whether the call was not carried out because people denied
// it, or nobody approved it in time: "The tool call was denied", "Approval
// expired". It reads the beginning only: what a file says further down is not
// about the call.
func (r Result) refused() bool {
	said := strings.Fields(r.words())
	said = said[:min(len(said), opening)]
	ends := []string{"denied", "expired", "withdrawn", "refused", "rejected"}
	end := slices.IndexFunc(said, func(word string) bool { return slices.Contains(ends, word) })
	if end <= 0 {
		return end == 0
	}
	about := []string{"call", "tool", "approval", "signature", "request"}
	return slices.ContainsFunc(said[:end], func(word string) bool { return slices.Contains(about, word) })
}

// done reports whether the content says that the call did what it was asked,
// and nothing that casts doubt on it. An answer about another file than the
// one that was asked for is doubtful.
func (r Result) done(doneWords []string) bool {
	if other := r.fileNames(); r.Arg("path") != "" && len(other) > 0 && !slices.Contains(other, r.Arg("path")) {
		return false
	}
	said := r.words()
	doubts := []string{
		"not", "cannot", "t", "no", "false", "error", "errors", "fail", "fails", "failed", "unknown",
		"doubt", "unclear", "invalid", "denied", "expired", "retry", "partly", "maybe", "already",
	}
	return !containsAny(said, doubts...) && containsAny(said, append(doneWords, "ok", "done", "success", "true")...)
}

// words returns the words of the content with a space around each. Paths and
// what plain text quotes are left out: neither says what happened.
func (r Result) words() string {
	text := r.Content
	if !json.Valid([]byte(text)) {
		text = quoted.ReplaceAllString(text, " ")
	}
	return " " + words(fileName.ReplaceAllString(text, " ")) + " "
}

func containsAny(said string, list ...string) bool {
	return slices.ContainsFunc(list, func(word string) bool { return strings.Contains(said, " "+word+" ") })
}

// told quotes the answer.
func (r Result) told() string {
	text := strings.Join(strings.Fields(r.Text()), " ")
	if text == "" {
		return "The tool answered nothing."
	}
	return "The tool answered: " + cut(text)
}

func cut(s string) string {
	runes := []rune(s)
	if len(runes) <= maxQuote {
		return s
	}
	return string(runes[:maxQuote]) + "… (cut)"
}
