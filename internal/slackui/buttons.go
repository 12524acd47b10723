package slackui

import (
	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// buttons are what can be done with an open call, at most five. One that the
// card does not show whole is approved in a form that does.
func (c Card) buttons(i int, a approvals.Approval, whole bool) slack.Block {
	value, err := pointer{Batch: c.Batch.ID, Call: a.Call.ID, Digest: a.Call.Digest}.encode()
	if err != nil {
		return small("This call cannot be signed here: its ids are not usable.")
	}
	button := func(act action, label string, style slack.Style) *slack.ButtonBlockElement {
		b := slack.NewButtonBlockElement(act.id(i), value, literal(label))
		b.Style = style
		return b
	}
	spec, known := c.Tools[a.Call.Name]
	var all []slack.BlockElement
	if len(a.Requirement.Quorums) > 0 {
		approve := button(actionApprove, "Approve", slack.StylePrimary)
		switch {
		case !whole:
			approve = button(actionSign, "Approve…", slack.StylePrimary)
		case a.Requirement.ReasonNeeded:
			approve.Text = literal("Approve…")
		case !known || destructive(spec.Annotations):
			approve.Confirm = confirmation(a.Call.Name, known)
		}
		all = append(all, approve, button(actionDeny, "Deny…", slack.StyleDanger))
	}
	if known {
		if _, can := newForm(spec, c.Calls[a.Call.ID].Args, a.WriteOnly); can {
			all = append(all, button(actionEdit, "Edit…", slack.StyleDefault))
		}
	}
	all = append(all, button(actionView, "View full", slack.StyleDefault))
	if len(a.Decisions) > 0 {
		all = append(all, button(actionRetract, "Take back", slack.StyleDefault))
	}
	return slack.NewActionBlock("", all...)
}

// destructive reports whether the tool says, or does not deny, that it may
// destroy what was there.
func destructive(a agentrun.Annotations) bool {
	return !a.ReadOnlyHint && (a.DestructiveHint == nil || *a.DestructiveHint)
}

// confirmation stands between a thumb and a signature that may do harm.
func confirmation(tool string, known bool) *slack.ConfirmationBlockObject {
	return slack.NewConfirmationBlockObject(literal("Approve "+brief(tool, 60)+"?"),
		literal(harmWords(known)+" You sign exactly the arguments on the card."), literal("Approve"), literal("Not now"))
}

// harmWords warn of a tool that may do harm, or that is not known.
func harmWords(known bool) string {
	if !known {
		return "What this tool can do is not known here. It may change or delete things for good."
	}
	return "This tool may change or delete things for good."
}
