package slackui

import (
	"fmt"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// buttons are what can be done with an open call, at most five.
func (c Card) buttons(i int, a approvals.Approval) slack.Block {
	value, err := pointer{Batch: c.Batch.ID, Call: a.Call.ID, Digest: a.Call.Digest}.encode()
	if err != nil {
		return small("This call cannot be signed here: its ids are not usable.")
	}
	button := func(action, label string, style slack.Style) *slack.ButtonBlockElement {
		b := slack.NewButtonBlockElement(fmt.Sprintf("%s.%d", action, i), value, literal(label))
		b.Style = style
		return b
	}
	spec, known := c.Tools[a.Call.Name]
	var all []slack.BlockElement
	if len(a.Requirement.Quorums) > 0 {
		approve := button(actionApprove, "Approve", slack.StylePrimary)
		switch {
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
	words := "This tool may change or delete things for good."
	if !known {
		words = "What this tool can do is not known here. It may change or delete things for good."
	}
	return slack.NewConfirmationBlockObject(literal("Approve "+brief(tool, 60)+"?"),
		literal(words+" You sign exactly the arguments on the card."), literal("Approve"), literal("Not now"))
}
