package form

import (
	"encoding/json"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/summary"
)

const maxSummary = 160

// Head says what the call of a form does with these arguments, in words, and below
// that its tool, how bad it is and where it would run.
func Head(a approvals.Approval, args json.RawMessage) []blockkit.Para {
	does := summary.Of(a.Summary, a.Call.Name, args, a.WriteOnly)
	return append([]blockkit.Para{
		blockkit.Line(blockkit.Styled(blockkit.Brief(does, maxSummary), blockkit.Bold)),
		blockkit.Line(blockkit.Styled(blockkit.Brief(a.Call.Name, 80), blockkit.Code), blockkit.Say(" · "+blockkit.Risk(a.Severity))),
	}, Where(a, args)...)
}
