package command

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// entity is a mention or a link in the form that Slack gives it in a command.
var entity = regexp.MustCompile(`<(?:([@#]|!(?:subteam\^)?)([^<>|]+)|((?:https?|mailto|tel):[^<>|]+))(?:\|([^<>]*))?>`)

// asTyped returns a text as its person typed it: `<@U1|ann>` is @ann, and
// `<http://a.run|a.run>`, which Slack makes of a word that could be a name of a host, is
// a.run.
func asTyped(s string) string {
	return blockkit.Unescape(entity.ReplaceAllStringFunc(s, func(e string) string {
		m := entity.FindStringSubmatch(e)
		sign, id, link, label := m[1], m[2], m[3], m[4]
		switch {
		case sign == "@", sign == "#":
			return sign + cmp.Or(label, id)
		case sign != "":
			return "@" + strings.TrimPrefix(cmp.Or(label, id), "@")
		case label != "" && !strings.HasSuffix(link, label):
			return label + " (" + link + ")"
		}
		return cmp.Or(label, link)
	}))
}
