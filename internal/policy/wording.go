package policy

import (
	"regexp"
	"slices"
	"strings"
)

// operatorOf is what CEL writes for the words of English, SQL and Python.
var operatorOf = map[string]string{"and": "&&", "or": "||", "not": "!"}

var (
	quotedText = regexp.MustCompile(`"(\\.|[^"\\])*"|'(\\.|[^'\\])*'`)
	wordOfOne  = regexp.MustCompile(`(?i)(?:^|[^.\w])(and|or|not)\b`)
)

// inWords is a hint for a condition that CEL cannot read because it has
// operators in words, outside of its texts.
func inWords(when string) string {
	var all []string
	for _, m := range wordOfOne.FindAllStringSubmatch(quotedText.ReplaceAllString(when, `""`), -1) {
		say := "write " + operatorOf[strings.ToLower(m[1])] + " for " + m[1]
		if !slices.Contains(all, say) {
			all = append(all, say)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "; " + strings.Join(all, ", ")
}

var (
	unexpectedInput = regexp.MustCompile(`^Syntax error: (?:mismatched|extraneous) input '(.*)' expecting `)
	unknownToken    = regexp.MustCompile(`^Syntax error: token recognition error at: '(.*)'$`)
	noOverload      = regexp.MustCompile(`^found no matching overload for '(.+)' applied to '\((.*)\)'$`)
)

// plainSyntax says what the parser found, without all that it would have understood.
func plainSyntax(what string) string {
	if m := unexpectedInput.FindStringSubmatch(what); m != nil {
		if m[1] == "<EOF>" {
			return "syntax error: the condition ends too early"
		}
		return "syntax error: unexpected " + m[1]
	}
	if m := unknownToken.FindStringSubmatch(what); m != nil {
		if strings.TrimSpace(m[1]) == "=" {
			return "syntax error: unexpected =; write == to compare"
		}
		return "syntax error: unexpected " + strings.TrimSpace(m[1])
	}
	return what
}

// plainOverload names an operator as the file writes it. Functions and their types stay
// as they are.
func plainOverload(what string) string {
	m := noOverload.FindStringSubmatch(what)
	if m == nil {
		return what
	}
	operator, types := strings.Trim(m[1], "_"), strings.Split(m[2], ", ")
	switch {
	case operator == m[1] || strings.ContainsAny(operator, "_[?"):
		return what
	case len(types) == 2:
		return operator + " can't be used with " + types[0] + " and " + types[1]
	}
	return operator + " can't be used with " + m[2]
}
