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
