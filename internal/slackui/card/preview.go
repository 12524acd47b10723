package card

import (
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// says is why the tool itself, and the check of the rule, ask: in their own words.
func says(a approvals.Approval, d blockkit.Detail) []blockkit.Para {
	var out []blockkit.Para
	if a.GateReason.Text != "" {
		out = append(out, blockkit.Line(blockkit.Styled(sayToolSays, blockkit.Bold)), quote(a.GateReason, quoted(d)))
	}
	switch c := a.Checked; {
	case c.Answer != approvals.CheckAsk:
	case c.Said.Text == "":
		out = append(out, blockkit.Line(blockkit.Say(fmt.Sprintf(sayCheckAsks, c.Check))))
	default:
		out = append(out, blockkit.Line(blockkit.Styled(fmt.Sprintf(sayCheckSays, c.Check), blockkit.Bold)), quote(c.Said, quoted(d)))
	}
	return out
}

// changes says what the call would change, as its tool saw it, and what people
// had been told before they are asked again.
func changes(a approvals.Approval, d blockkit.Detail) []blockkit.Para {
	p := a.Preview
	var out []blockkit.Para
	if p.Before.Batch != "" { // not where the tool itself asks for one more approval
		spans := []blockkit.Span{blockkit.Styled("Asked again", blockkit.Bold), blockkit.Say(sayAskedAgain)}
		if len(p.Before.Facts) > 0 {
			spans = append(append(spans, blockkit.Say("; before: ")), factSpans(p.Before.Facts, d)...)
		}
		out = append(out, blockkit.Line(append(spans, blockkit.Say("."))...))
	}
	if why := notPreviewed[p.Status]; why != "" {
		return append(out, blockkit.Line(blockkit.Say(why)))
	}
	if p.Status != approvals.PreviewMade || (len(p.Facts) == 0 && p.Content.Digest.IsZero()) {
		return out
	}
	spans := []blockkit.Span{blockkit.Styled("Checked", blockkit.Bold)}
	if !p.CheckedAt.IsZero() {
		spans = append(spans, blockkit.Say(" "), blockkit.DateSpan(p.CheckedAt))
	}
	if len(p.Facts) > 0 {
		spans = append(append(spans, blockkit.Say(": ")), factSpans(p.Facts, d)...)
	}
	if spans = append(spans, blockkit.Say(".")); !p.Content.Digest.IsZero() {
		spans = append(spans, blockkit.Say(sayViewFullChange))
	}
	return append(out, blockkit.Line(spans...))
}

// factSpans lists facts on one line.
func factSpans(facts []approvals.Fact, d blockkit.Detail) []blockkit.Span {
	var out []blockkit.Span
	most := min(d.Words, approvals.MaxFactText)
	for i, f := range facts {
		if i > 0 {
			out = append(out, blockkit.Say(", "))
		}
		if most < approvals.MaxFactText && i == 4 {
			return append(out, blockkit.Say("and "+blockkit.Count(len(facts)-i, "more fact")))
		}
		out = append(out, blockkit.Say(blockkit.Brief(lowerFirst(f.Label), most)+" "))
		if f.At.IsZero() {
			out = append(out, blockkit.Styled(blockkit.Brief(f.Value, most), blockkit.Bold))
			continue
		}
		out = append(out, blockkit.DateSpan(f.At))
	}
	return out
}

// lowerFirst writes a label such as "Size" within a line; "HTTP status" stays.
func lowerFirst(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'a' && s[1] <= 'z' {
		return string(s[0]+'a'-'A') + s[1:]
	}
	return s
}
