package command

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/ref"
)

// Slack turns mentions, and words that could be links, into entities. A reason is kept as
// its person typed it, and so is the name of a tool.
func TestWordsAreReadAsTheyWereTyped(t *testing.T) {
	for sent, typed := range map[string]string{
		"not &lt;today&gt; &amp; not &lt;@U1&gt;":                "not <today> & not <@U1>",
		"ask <@U0ANN|ann> or <@U0BO>":                            "ask @ann or @U0BO",
		"in <#C0OPS|ops>, <#C0ROOM|>":                            "in #ops, #C0ROOM",
		"<!subteam^S0SRE|@sre> <!subteam^S0SRE> <!here>":         "@sre @S0SRE @here",
		"see <https://wiki.acme.com/a?b=1&amp;c=2>":              "see https://wiki.acme.com/a?b=1&c=2",
		"keep <http://files.zip|files.zip>":                      "keep files.zip",
		"<mailto:ann@acme.com|ann@acme.com>":                     "ann@acme.com",
		"read <https://wiki.acme.com/runbook|the runbook> first": "read the runbook (https://wiki.acme.com/runbook) first",
	} {
		require.Equal(t, typed, asTyped(sent))
	}
	f, rest, bad := typed{}.filter([]string{"tool:<http://deploy.run|deploy.run>", "agent:<http://acme.app|acme.app>"})
	require.Nil(t, bad)
	require.Empty(t, rest)
	require.Equal(t, ref.Filter{Tools: []string{"deploy.run"}, Agents: []string{"acme.app"}}, f)
}
