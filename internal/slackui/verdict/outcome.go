package verdict

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// withdrawn is who ended the call without a decision.
func withdrawn(o approvals.Outcome) []blockkit.Span {
	if o.Superseded {
		return append(append([]blockkit.Span{blockkit.Styled("↩ "+Superseded, blockkit.Bold), blockkit.Say(": ")}, seatSpans(o.By)...),
			blockkit.Say(saySuperseded))
	}
	spans := []blockkit.Span{blockkit.Styled("↩ Withdrawn", blockkit.Bold)}
	if len(o.By) > 0 {
		spans = append(append(spans, blockkit.Say(" by ")), seatSpans(o.By)...)
	}
	return append(spans, blockkit.Say(". It won't run."))
}

// Outcome is how the call ended, by whom and when.
func Outcome(o approvals.Outcome) []blockkit.Span {
	var spans []blockkit.Span
	switch o.Status {
	case approvals.Confirmed:
		spans = answered(o)
	case approvals.Approved:
		spans = append([]blockkit.Span{blockkit.Styled("✅ Approved", blockkit.Bold), blockkit.Say(" by ")}, seatSpans(o.By)...)
	case approvals.Denied:
		spans = append([]blockkit.Span{blockkit.Styled("⛔ Denied", blockkit.Bold), blockkit.Say(" by ")}, blockkit.ListSpans(blockkit.PersonSpans(Users(o.By)), blockkit.NamesShown)...)
	case approvals.Expired:
		spans = []blockkit.Span{blockkit.Styled("⌛ Expired", blockkit.Bold), blockkit.Say(sayExpiredAlone)}
	case approvals.Withdrawn:
		spans = withdrawn(o)
	case approvals.Pending:
		return []blockkit.Span{blockkit.Say("Waiting.")}
	default:
		return []blockkit.Span{blockkit.Say(sayUnknownStatus)}
	}
	if doubt := answered(o); doubt != nil && o.InDoubt {
		spans = doubt
	}
	if !o.At.IsZero() {
		spans = append(spans, blockkit.Say(" ("), blockkit.DateSpan(o.At), blockkit.Say(")"))
	}
	return spans
}

// Users are the people who decided, without those for whom they did.
func Users(seats []approvals.Seat) []approvals.UserID {
	var ids []approvals.UserID
	for _, s := range seats {
		ids = append(ids, s.User)
	}
	return ids
}

// Reasons quotes what people wrote, the denials first. While the call is open, a
// denial without a reason is shown too, because it counts.
func Reasons(a approvals.Approval, d blockkit.Detail) []blockkit.Para {
	var out []blockkit.Para
	shown := 0
	add := func(reason string, spans ...blockkit.Span) {
		if shown++; shown > blockkit.NamesShown {
			return
		}
		out = append(out, blockkit.Line(spans...))
		if text, left := blockkit.Cut(blockkit.Visible(strings.TrimSpace(reason)), d.Words); text != "" {
			if left > 0 {
				text += fmt.Sprintf(" ⟦%s left out⟧", blockkit.Count(left, "character"))
			}
			out = append(out, blockkit.Quoted(text))
		}
	}
	for _, v := range []approvals.Verdict{approvals.Deny, approvals.GiveUp, approvals.Happened, approvals.Approve, approvals.RunAgain} {
		for _, said := range a.Decisions {
			open, silent := a.Status == approvals.Pending, strings.TrimSpace(said.Reason) == ""
			switch {
			case said.Verdict != v:
			case v == approvals.Deny && open && silent:
				add("", blockkit.PersonSpan(said.By.User), blockkit.Say(" denied it."))
			case v == approvals.Deny && open:
				add(said.Reason, blockkit.PersonSpan(said.By.User), blockkit.Say(" denied it:"))
			case !silent:
				add(said.Reason, blockkit.PersonSpan(said.By.User), blockkit.Say(" wrote:"))
			}
		}
	}
	if a.Status == approvals.Withdrawn && !a.Superseded() && strings.TrimSpace(a.Ending.Reason) != "" {
		add(a.Ending.Reason, blockkit.Say("The reason:"))
	}
	return out
}
