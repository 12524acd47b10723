package card

import (
	"fmt"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/form"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// spoken is what a screen reader says of a button: what it does first, as it is
// written on it, and then to which call.
func spoken(label, which, what string) string {
	s := label + which
	if what != "" {
		s += ": " + what
	}
	return s
}

// spokenOf is the label for screen readers of a button on the i-th call of the
// card.
func (c Card) spokenOf(label string, i int, a approvals.Approval) string {
	which := " this call"
	if n := len(c.Batch.Approvals); n > 1 {
		which = fmt.Sprintf(" call %d of %d", c.Part*CallsPerCard+i+1, n)
	}
	return spoken(label, which, c.Summary(a))
}

// buttons are the actions on an open call, at most five. A call that the card
// does not show whole is approved in a form that does.
func (c Card) buttons(i int, a approvals.Approval, whole bool) slack.Block {
	value, err := ref.Pointer{Batch: c.Batch.ID, Call: a.Call.ID, Digest: a.Call.Digest}.Encode()
	if err != nil {
		return blockkit.Small(blockkit.Ours("This call can't be approved here: its ids aren't usable."))
	}
	button := func(act ref.Action, label, says string, style slack.Style) *slack.ButtonBlockElement {
		b := blockkit.Button(act.ID(i), value, label, c.spokenOf(says, i, a))
		b.Style = style
		return b
	}
	spec, known := c.Tools[a.Call.Name]
	_, decided := a.DecisionBy(c.Viewer)
	var all []slack.BlockElement
	if len(a.Requirement.Quorums) > 0 && !decided {
		approve := button(ref.ActionApprove, "Approve", "Approve", slack.StylePrimary)
		switch {
		case !whole:
			approve = button(ref.ActionSign, "Approve…", "Approve", slack.StylePrimary)
		case a.Requirement.ReasonNeeded:
			approve.Text = blockkit.Literal("Approve…")
		case Confirmed(a, spec, known):
			approve.Confirm = confirmation("Approve this call?", c.Summary(a)+". "+HarmWarning(a.Severity, known)+" You approve exactly the arguments on the card.", "Approve")
		}
		all = append(all, approve, button(ref.ActionDeny, "Deny…", "Deny", slack.StyleDanger))
	}
	if known {
		if _, can := form.NewForm(spec, c.Calls[a.Call.ID].Args, a.WriteOnly); can {
			all = append(all, button(ref.ActionEdit, "Edit…", "Edit", slack.StyleDefault))
		}
	}
	all = append(all, button(ref.ActionView, "View full", "View full arguments of", slack.StyleDefault))
	if len(a.Decisions) > 0 && (c.Viewer == "" || decided) {
		all = append(all, button(ref.ActionRetract, "Take back", "Take back your decision on", slack.StyleDefault))
	}
	return slack.NewActionBlock("", all...)
}

// Destructive reports whether the tool may destroy something. A tool that does
// not deny it may.
func Destructive(a agentrun.Annotations) bool {
	return !a.ReadOnlyHint && (a.DestructiveHint == nil || *a.DestructiveHint)
}

// Confirmed reports whether an approval of the call is asked for twice: because
// it cannot be undone, or because its tool does not deny that it may do harm.
func Confirmed(a approvals.Approval, spec agentrun.Spec, known bool) bool {
	return blockkit.Risk(a.Severity) == blockkit.Risk(approvals.SeverityIrreversible) || !known || Destructive(spec.Annotations)
}

// confirmation is a question before an approval. Slack takes 300 characters.
func confirmation(title, text, yes string) *slack.ConfirmationBlockObject {
	return slack.NewConfirmationBlockObject(blockkit.Literal(title), blockkit.Literal(blockkit.Clip(text, 299)), blockkit.Literal(yes), blockkit.Literal("Not now"))
}

// HarmWarning is the warning about a call that cannot be undone, or whose tool
// may do harm or is not known.
func HarmWarning(s approvals.Severity, known bool) string {
	switch {
	case blockkit.Risk(s) == blockkit.Risk(approvals.SeverityIrreversible):
		return "This can't be undone."
	case !known:
		return "Nothing is known here about what this tool does: it may change or delete things for good."
	}
	return "This tool may change or delete things for good."
}
