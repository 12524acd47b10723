package card

import (
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/summary"
)

// summaryRunes is how much of a summary a headline and a row show. Slack allows
// a header 150 characters.
const summaryRunes = 130

// Summary says what a call does in words, marked and on one line. It quotes
// arguments, so it is for those who may read them: of a call that is not loaded
// it says only which tool it is.
func (c Card) Summary(a approvals.Approval) string {
	call, known := c.Calls[a.Call.ID]
	if !known {
		return blockkit.Brief(summary.Words(a.Call.Name), summaryRunes)
	}
	return blockkit.Brief(summary.Of(a.Summary, call.Name, call.Args, a.WriteOnly), summaryRunes)
}

// quote is what someone wrote, as a quotation.
func quote(q approvals.Quote, most int) blockkit.Para {
	text, left := blockkit.CutQuote(blockkit.Visible(strings.TrimSpace(q.Text)), most)
	if left += q.Left; left > 0 {
		text += " " + blockkit.Remark(blockkit.Count(left, "character")+" left out")
	}
	return blockkit.Quoted(text)
}

// quoted is how much of someone's words a card quotes, with this detail.
func quoted(d blockkit.Detail) int { return min(d.Words, 300) }
