package card

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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

// spokenOf is the label for screen readers of a button on the call of the row.
func (r row) spokenOf(label string) string {
	which := " this call"
	if n := len(r.Batch.Approvals); n > 1 {
		which = fmt.Sprintf(" call %d of %d", r.Part*CallsPerCard+r.calls[0]+1, n)
	}
	return spoken(label, which, r.Summary(r.a))
}

// buttons are the actions on an open call, at most five. A call that the card
// does not show whole is approved in a form that does.
func (r row) buttons(whole bool) slack.Block {
	i, a := r.calls[0], r.a
	value, err := ref.Pointer{Batch: r.Batch.ID, Call: a.Call.ID, Digest: a.Call.Digest}.Encode()
	if err != nil {
		return blockkit.Small(blockkit.Ours(sayUnusable))
	}
	button := func(act ref.Action, label, says string, style slack.Style) *blockkit.ButtonElement {
		b := blockkit.Button(act.ID(i), value, label, r.spokenOf(says))
		b.Style = style
		return b
	}
	spec, known := r.Tools[a.Call.Name]
	_, decided := a.DecisionBy(r.Viewer)
	var all []slack.BlockElement
	switch {
	case len(a.Requirement.Quorums) == 0 || decided:
	case a.InDoubt():
		all = r.doubtButtons(whole, button, known)
	default:
		approve := button(ref.ActionApprove, "Approve", "Approve", slack.StylePrimary)
		switch {
		case !whole:
			approve = button(ref.ActionSign, "Approve…", "Approve", slack.StylePrimary)
		case a.Requirement.ReasonNeeded:
			approve.Text = blockkit.Literal("Approve…")
		case Confirmed(a, spec, known):
			approve.Confirm = confirmation("Approve this call?", r.Summary(a)+". "+HarmWarning(a.Severity, known)+sayApproveExactly, "Approve")
		}
		all = append(all, approve, button(ref.ActionDeny, "Deny…", "Deny", slack.StyleDanger))
	}
	if edit, may := form.Spec(r.Batch, a, spec, known); may && !a.InDoubt() {
		if _, can := form.NewForm(edit, r.Calls[a.Call.ID].Args, a.WriteOnly); can {
			all = append(all, button(ref.ActionEdit, "Edit…", "Edit", slack.StyleDefault))
		}
	}
	all = append(all, button(ref.ActionView, "View full", sayViewFullSpoken, slack.StyleDefault))
	if len(a.Decisions) > 0 && (r.Viewer == "" || decided) {
		all = append(all, button(ref.ActionRetract, "Take back", sayTakeBackSpoken, slack.StyleDefault))
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
	return Irreversible(a.Severity) || !known || Destructive(spec.Annotations)
}

// confirmation is a question before an approval. Slack takes 300 characters.
func confirmation(title, text, yes string) *slack.ConfirmationBlockObject {
	return slack.NewConfirmationBlockObject(blockkit.Literal(title), blockkit.Literal(blockkit.Clip(text, 299)), blockkit.Literal(yes), blockkit.Literal("Not now"))
}

// Rated is the severity of a call in words, where people approve it. Low is no promise
// about a tool that is not known.
func Rated(s approvals.Severity, known bool) string {
	if s == approvals.SeverityLow && !known {
		return sayLowUnknownTool
	}
	return blockkit.Risk(s)
}

// HarmWarning is the warning about a call that cannot be undone, or whose tool
// may do harm or is not known. It does not contradict the card where that says Low risk.
func HarmWarning(s approvals.Severity, known bool) string {
	switch low := s == approvals.SeverityLow; {
	case Irreversible(s):
		return sayCannotUndo
	case low && !known:
		return sayLowUnknownTool + sayItMayDestroy
	case low:
		return sayLowMayDestroy
	case !known:
		return sayUnknownTool
	}
	return sayMayDestroy
}

// groupButtons are the buttons of a row of several open calls. Approving and
// denying them opens a sheet that lists the calls.
func (r row) groupButtons() slack.Block {
	var all []slack.BlockElement
	button := func(act ref.Action, n int, value, label string, style slack.Style) {
		b := blockkit.Button(act.ID(n), value, label, spoken(strings.TrimSuffix(label, "…"), "", r.Summary(r.a)))
		b.Style = style
		all = append(all, b)
	}
	i, n := r.calls[0], blockkit.Number(len(r.calls))
	approve, err := r.sheetButton(approvals.Approve)
	deny, failed := r.sheetButton(approvals.Deny)
	whole, unusable := ref.Pointer{Batch: r.Batch.ID, Call: r.a.Call.ID, Digest: r.a.Call.Digest}.Encode()
	if errors.Join(err, failed, unusable) != nil {
		return blockkit.Small(blockkit.Ours(sayUnusableCalls))
	}
	if len(r.a.Requirement.Quorums) > 0 && r.onSheet() {
		button(ref.ActionSheet, 2*i, approve, "Approve all "+n+"…", slack.StylePrimary)
	}
	if len(r.a.Requirement.Quorums) > 0 {
		button(ref.ActionSheet, 2*i+1, deny, "Deny all "+n+"…", slack.StyleDanger)
	}
	button(ref.ActionView, i, whole, "View full", slack.StyleDefault)
	button(ref.ActionEach, i, ref.Card{Batch: r.Batch.ID, Part: r.Part}.String(), sayReviewEach, slack.StyleDefault)
	return slack.NewActionBlock("", all...)
}

// sheetButton is the value of the button that opens a sheet of the calls of a
// row. It names each call with the digest of the arguments that are drawn.
func (r row) sheetButton(v approvals.Verdict) (string, error) {
	f := ref.Filter{Batch: r.Batch.ID}
	for _, i := range r.calls {
		call := r.OnCard()[i].Call
		f.Drawn = append(f.Drawn, call.Digest)
		if _, err := (ref.Pointer{Batch: r.Batch.ID, Call: call.ID, Digest: call.Digest}).Encode(); err != nil {
			return "", err
		}
	}
	raw, err := json.Marshal(ref.SheetButton{Verdict: v, Filter: f})
	if err != nil || len(raw) > ref.MaxPointer {
		return "", fmt.Errorf("%w: calls of batch %s", ref.ErrPointer, r.Batch.ID)
	}
	return string(raw), nil
}

// onSheet reports whether a sheet shows the calls of the row whole. A sheet
// leaves out calls that it cannot.
func (r row) onSheet() bool {
	call, known := r.Calls[r.a.Call.ID]
	if !known {
		return false
	}
	_, whole := ArgumentsOnSheet(r.a, call)
	return whole
}
