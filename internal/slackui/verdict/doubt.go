package verdict

import (
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// answered is how a call in doubt was answered, by whom. It is nil for any other.
func answered(o approvals.Outcome) []blockkit.Span {
	by := blockkit.ListSpans(blockkit.PersonSpans(Users(o.By)), blockkit.NamesShown)
	switch o.Status {
	case approvals.Approved:
		return append([]blockkit.Span{blockkit.Styled("🔁 Run again", blockkit.Bold), blockkit.Say(sayApprovedBy)}, seatSpans(o.By)...)
	case approvals.Denied:
		return append([]blockkit.Span{blockkit.Styled("⛔ Given up", blockkit.Bold), blockkit.Say(" by ")}, by...)
	case approvals.Confirmed:
		return append(append([]blockkit.Span{blockkit.Styled("☑ It happened", blockkit.Bold), blockkit.Say(saySays)}, by...),
			blockkit.Say(sayPersonsWords))
	case approvals.Expired:
		return []blockkit.Span{blockkit.Styled("⌛ Expired", blockkit.Bold), blockkit.Say(sayDoubtExpired)}
	case approvals.Withdrawn:
		spans := []blockkit.Span{blockkit.Styled("↩ Withdrawn", blockkit.Bold)}
		if o.Superseded {
			spans = []blockkit.Span{blockkit.Styled("↩ "+Superseded, blockkit.Bold)}
		}
		if len(by) > 0 {
			spans = append(append(spans, blockkit.Say(" by ")), by...)
		}
		return append(spans, blockkit.Say(sayDoubtWithdrawn))
	case approvals.Pending:
	}
	return nil
}
