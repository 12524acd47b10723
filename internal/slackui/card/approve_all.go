package card

import (
	"fmt"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// MayBeTogether reports whether the call may be approved together with others of
// the card.
func (c Card) MayBeTogether(a approvals.Approval, now time.Time) bool {
	return c.draw(now).mayBeTogether(a)
}

// mayBeTogether reports whether a call may be approved with others. Where nobody
// has stated a severity, its tool must say that it destroys nothing.
func (d *drawing) mayBeTogether(a approvals.Approval) bool {
	call, loaded := d.Calls[a.Call.ID]
	spec, known := d.Tools[a.Call.Name]
	harmless := known && !Destructive(spec.Annotations)
	_, decided := a.DecisionBy(d.Viewer)
	switch {
	case a.InDoubt(), !loaded, decided, !d.detail.Shows(a, call), len(a.Requirement.Quorums) == 0, a.Requirement.ReasonNeeded:
		return false
	case a.Severity == approvals.SeverityUnset:
		return harmless
	}
	return !a.Severity.MayBeIrreversible()
}

// together returns the open calls of the card that one button approves
// together: all that are open, if there are several and each may be approved
// this way. The card shows each of them whole, none may be irreversible, and
// none needs a reason. It is nil if one of them must be approved by itself.
func (d *drawing) together() []approvals.Approval {
	var all []approvals.Approval
	for _, a := range d.OnCard() {
		if !a.OpenAt(d.now) {
			continue
		}
		if !d.mayBeTogether(a) {
			return nil
		}
		all = append(all, a)
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// approveAll is the button that approves all open calls of the card, or nil. A
// row of equal calls has a button of its own, so one row needs no other.
func (d *drawing) approveAll() slack.Block {
	open := slices.DeleteFunc(slices.Clone(d.rows), func(r row) bool { return !r.a.OpenAt(d.now) })
	all := d.together()
	if len(open) < 2 || len(all) == 0 {
		return nil
	}
	t := ref.Together{Card: ref.Card{Batch: d.Batch.ID, Part: d.Part}}
	for _, a := range all {
		t.Digests = append(t.Digests, a.Call.Digest)
	}
	value, err := t.Encode()
	if err != nil {
		return nil // each can still be approved by itself
	}
	risk, _ := d.risk()
	if slices.ContainsFunc(all, func(a approvals.Approval) bool {
		spec, known := d.Tools[a.Call.Name]
		return Confirmed(a, spec, known)
	}) {
		risk += sayOneMayDestroy
	}
	b := blockkit.Button(ref.ActionAll.ID(d.Part), value, fmt.Sprintf("Approve all %d", len(all)), fmt.Sprintf(sayApproveAllSpoken, len(all)))
	b.Style = slack.StylePrimary
	b.Confirm = confirmation(fmt.Sprintf("Approve %d calls?", len(all)),
		risk+sayApproveExactlyEach+blockkit.Number(len(all))+" calls.", fmt.Sprintf("Approve %d", len(all)))
	return slack.NewActionBlock("", b)
}
