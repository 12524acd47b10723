package card

import (
	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/form"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// buttons are the actions on an open call, at most five. A call that the card
// does not show whole is approved in a form that does.
func (c Card) buttons(i int, a approvals.Approval, whole bool) slack.Block {
	value, err := ref.Pointer{Batch: c.Batch.ID, Call: a.Call.ID, Digest: a.Call.Digest}.Encode()
	if err != nil {
		return blockkit.Small(blockkit.Ours("This call cannot be signed here: its ids are not usable."))
	}
	button := func(act ref.Action, label string, style slack.Style) *slack.ButtonBlockElement {
		b := slack.NewButtonBlockElement(act.ID(i), value, blockkit.Literal(label))
		b.Style = style
		return b
	}
	spec, known := c.Tools[a.Call.Name]
	var all []slack.BlockElement
	if len(a.Requirement.Quorums) > 0 {
		approve := button(ref.ActionApprove, "Approve", slack.StylePrimary)
		switch {
		case !whole:
			approve = button(ref.ActionSign, "Approve…", slack.StylePrimary)
		case a.Requirement.ReasonNeeded:
			approve.Text = blockkit.Literal("Approve…")
		case !known || Destructive(spec.Annotations):
			approve.Confirm = confirmation(a.Call.Name, known)
		}
		all = append(all, approve, button(ref.ActionDeny, "Deny…", slack.StyleDanger))
	}
	if known {
		if _, can := form.NewForm(spec, c.Calls[a.Call.ID].Args, a.WriteOnly); can {
			all = append(all, button(ref.ActionEdit, "Edit…", slack.StyleDefault))
		}
	}
	all = append(all, button(ref.ActionView, "View full", slack.StyleDefault))
	if len(a.Decisions) > 0 {
		all = append(all, button(ref.ActionRetract, "Take back", slack.StyleDefault))
	}
	return slack.NewActionBlock("", all...)
}

// Destructive reports whether the tool may destroy something. A tool that does
// not deny it may.
func Destructive(a agentrun.Annotations) bool {
	return !a.ReadOnlyHint && (a.DestructiveHint == nil || *a.DestructiveHint)
}

// confirmation is the question that is asked before an approval of a call that
// may do harm.
func confirmation(tool string, known bool) *slack.ConfirmationBlockObject {
	return slack.NewConfirmationBlockObject(blockkit.Literal("Approve "+blockkit.Brief(tool, 60)+"?"),
		blockkit.Literal(HarmWarning(known)+" You sign exactly the arguments on the card."), blockkit.Literal("Approve"), blockkit.Literal("Not now"))
}

// HarmWarning is the warning about a tool that may do harm, or that is not
// known.
func HarmWarning(known bool) string {
	if !known {
		return "What this tool can do is not known here. It may change or delete things for good."
	}
	return "This tool may change or delete things for good."
}
