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

// together returns the open calls of the card that one button approves
// together: all that are open, if there are several and each may be approved
// this way. The card shows each of them whole, none may be irreversible, and
// none needs a reason. It is nil if one of them must be approved by itself.
func (c Card) together(d blockkit.Detail, now time.Time) []approvals.Approval {
	var all []approvals.Approval
	for _, a := range c.OnCard() {
		if !a.OpenAt(now) {
			continue
		}
		if !c.mayBeTogether(a, d) {
			return nil
		}
		all = append(all, a)
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// MayBeTogether reports whether the call may be approved together with others of
// the card.
func (c Card) MayBeTogether(a approvals.Approval, now time.Time) bool {
	_, d := c.fit(now)
	return c.mayBeTogether(a, d)
}

// mayBeTogether reports whether a call may be approved with others. Where nobody
// has stated a severity, its tool must say that it destroys nothing.
func (c Card) mayBeTogether(a approvals.Approval, d blockkit.Detail) bool {
	call, loaded := c.Calls[a.Call.ID]
	spec, known := c.Tools[a.Call.Name]
	harmless := known && !Destructive(spec.Annotations)
	_, decided := a.DecisionBy(c.Viewer)
	switch {
	case !loaded, decided, !d.Shows(a, call), len(a.Requirement.Quorums) == 0, a.Requirement.ReasonNeeded:
		return false
	case a.Severity == approvals.SeverityUnset:
		return harmless
	}
	return !a.Severity.MayBeIrreversible()
}

// approveAll is the button that approves all open calls of the card, or nil. A
// row of equal calls has a button of its own, so one row needs no other.
func (c Card) approveAll(d blockkit.Detail, now time.Time) slack.Block {
	open := slices.DeleteFunc(slices.Clone(c.rows), func(r row) bool { return !r.a.OpenAt(now) })
	all := c.together(d, now)
	if len(open) < 2 || len(all) == 0 {
		return nil
	}
	t := ref.Together{Card: ref.Card{Batch: c.Batch.ID, Part: c.Part}}
	for _, a := range all {
		t.Digests = append(t.Digests, a.Call.Digest)
	}
	value, err := t.Encode()
	if err != nil {
		return nil // each can still be approved by itself
	}
	s, n, _ := c.worst(now)
	b := blockkit.Button(ref.ActionAll.ID(c.Part), value, fmt.Sprintf("Approve all %d", len(all)), fmt.Sprintf("Approve all %d calls of this card", len(all)))
	b.Style = slack.StylePrimary
	b.Confirm = confirmation(fmt.Sprintf("Approve %d calls?", len(all)),
		riskOf(s, n, len(all))+" You approve exactly the arguments on the card, of each of the "+blockkit.Number(len(all))+" calls.", fmt.Sprintf("Approve %d", len(all)))
	return slack.NewActionBlock("", b)
}
