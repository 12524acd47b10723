package card

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// doubtful says of a call in doubt what is not known and since when, and what was
// reported of it.
func (r row) doubtful() []blockkit.Para {
	a := r.a
	if !a.InDoubt() {
		return nil
	}
	var said []blockkit.Span
	if a.OpenAt(r.now) {
		said = append(said, blockkit.Styled(doubtMark+sayThisMayOrMayNot, blockkit.Bold))
	}
	ended := sayStoppedBefore
	if a.Doubt.Unsure {
		ended = sayEndedSilent
	}
	out := []blockkit.Para{blockkit.Line(append(said,
		blockkit.Say(sayBegan), blockkit.DateSpan(a.Doubt.Began), blockkit.Say(ended))...)}
	if strings.TrimSpace(a.Doubt.Said.Text) != "" {
		out = append(out, blockkit.Line(blockkit.Styled(sayItReported, blockkit.Bold)), quote(a.Doubt.Said, quoted(r.detail)))
	}
	return append(out, r.late()...)
}

// choices says what each answer to an open call in doubt does: in a list if the card
// has no other call, and in two sentences if it has.
func (r row) choices() []blockkit.Para {
	if !r.a.InDoubt() || !r.a.OpenAt(r.now) || len(r.a.Requirement.Quorums) == 0 {
		return nil
	}
	if len(r.OnCard()) > 1 {
		return []blockkit.Para{blockkit.Line(
			blockkit.Styled(sayHappenedName, blockkit.Bold), blockkit.Say(" and "), blockkit.Styled(sayGiveUpName, blockkit.Bold), blockkit.Say(sayNeitherRuns),
			blockkit.Styled(sayAgain, blockkit.Bold), blockkit.Say(sayAgainDoes))}
	}
	item := func(button, does string) blockkit.Para {
		return blockkit.Line(blockkit.Styled(button, blockkit.Bold), blockkit.Say(does))
	}
	return []blockkit.Para{
		blockkit.Line(blockkit.Say(sayDoubtCheck)),
		slack.NewRichTextList(slack.RTEListBullet, 0,
			item(sayHappenedName, sayHappenedDoes), item(sayGiveUpName, sayGiveUpDoes), item(sayAgain, sayAgainDoes)),
	}
}

// inDoubt says that it is not known whether the call took effect.
func inDoubt(a approvals.Approval) string {
	return sayDoubtRow + blockkit.Brief(a.Call.Name, 60) + sayMayOrMayNot
}

// late is what the worker that began the call said when people had been asked.
func (r row) late() []blockkit.Para {
	e := r.a.Doubt.Late
	word, known := reported[e.State]
	if !known {
		return nil
	}
	spans := []blockkit.Span{blockkit.Styled(sayReportedLate, blockkit.Bold), blockkit.Say(word)}
	if !e.At.IsZero() {
		spans = append(spans, blockkit.Say(" ("), blockkit.DateSpan(e.At), blockkit.Say(")"))
	}
	words := e.Words
	if e.State == approvals.Ran {
		words = e.Excerpt
	}
	if strings.TrimSpace(words) == "" {
		return []blockkit.Para{blockkit.Line(append(spans, blockkit.Say("."))...)}
	}
	return []blockkit.Para{blockkit.Line(append(spans, blockkit.Say(":"))...), quote(approvals.Quote{Text: words}, quoted(r.detail))}
}

// doubtButtons are the answers to a call in doubt. None of them stands out, and the
// one that can do harm is the last. A call that the card does not show whole is run
// again from a form that does.
func (r row) doubtButtons(whole bool, button func(act ref.Action, label, says string, style slack.Style) *blockkit.ButtonElement, known bool) []slack.BlockElement {
	again := button(ref.ActionAgain, sayAgain, sayAgainSpoken, slack.StyleDefault)
	switch {
	case !whole:
		again = button(ref.ActionSign, sayAgainLater, sayAgainSpoken, slack.StyleDefault)
	case r.a.Requirement.ReasonNeeded:
		again.Text = blockkit.Literal(sayAgainLater)
	default:
		warning := sayAgainTwice + HarmWarning(r.a.Severity, known) + sayApproveExactly
		again.Confirm = confirmation(sayAgainSure, blockkit.Clip(r.Summary(r.a), 297-utf8.RuneCountInString(warning))+warning, sayAgain)
		again.Confirm.Style = slack.StyleDanger
	}
	return []slack.BlockElement{
		button(ref.ActionHappened, sayHappened, sayHappenedSpoken, slack.StyleDefault),
		button(ref.ActionGiveUp, sayGiveUp, sayGiveUpSpoken, slack.StyleDefault),
		again,
	}
}

// anyDoubt reports whether an open call of the card is in doubt.
func (d *drawing) anyDoubt() bool {
	return slices.ContainsFunc(d.OnCard(), func(a approvals.Approval) bool { return a.InDoubt() && a.OpenAt(d.now) })
}
