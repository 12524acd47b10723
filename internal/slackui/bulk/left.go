package bulk

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/slack-go/slack"
)

// leavesOut returns why the person cannot decide the call now, or nothing.
func leavesOut(w directory.Viewer, b approvals.Batch, a approvals.Approval, v approvals.Verdict, gone []*directory.LookupError, now time.Time) Reason {
	err := w.MayDecide(b, a, v, now)
	_, decided := a.DecisionBy(w.User)
	switch {
	case errors.Is(err, approvals.ErrInDoubt):
		return leftDoubt
	case errors.Is(err, approvals.ErrOwnEdit):
		return leftEdit
	case errors.Is(err, approvals.ErrOwnWords):
		return leftSpoke
	case errors.Is(err, approvals.ErrOwnRequest):
		return leftOwn
	case errors.Is(err, approvals.ErrNotEligible) && asksAny(a.Requirement, gone):
		return leftGone
	case errors.Is(err, approvals.ErrNotEligible):
		return leftApprover
	case errors.Is(err, approvals.ErrDecided):
		return leftContrary
	case err == nil && decided:
		return leftDecided
	case err != nil:
		return leftOther
	case v == approvals.Approve && !b.Helps(a, w.Principal):
		return leftNeed
	}
	return ""
}

// asksAny reports whether the requirement asks one of the groups that are gone.
func asksAny(r approvals.Requirement, gone []*directory.LookupError) bool {
	return slices.ContainsFunc(slices.Concat(r.Quorums, r.Vetoes), func(q approvals.Quorum) bool {
		return slices.ContainsFunc(gone, func(e *directory.LookupError) bool { return slices.Contains(q.From.Groups, approvals.GroupID(e.ID)) })
	})
}

// leftCard is the card on which a call is reviewed by itself.
type leftCard struct {
	ID string `json:"i"`
	At string `json:"r"` // a [ref.Card]
}

// reviews returns the buttons that lead to the cards of the calls that can be
// approved only there, or nil.
func (b sheetContext) reviews() slack.Block {
	var buttons []slack.BlockElement
	for _, l := range b.Left {
		for _, c := range l.Cards {
			buttons = append(buttons, blockkit.Button(ref.ActionReview.ID(len(buttons)), c.At, "Review "+c.ID, fmt.Sprintf(reviewSpoken, c.ID)))
		}
	}
	if len(buttons) == 0 {
		return nil
	}
	return slack.NewActionBlock("", buttons...)
}

// movedSince returns why a call is no longer as it was drawn, or nothing.
func movedSince(f ref.Filter, a approvals.Approval, now time.Time) Reason {
	switch {
	case len(f.Drawn) == 0:
		return ""
	case !a.OpenAt(now):
		return leftSettled
	case !slices.Contains(f.Drawn, a.Call.Digest):
		return leftChanged
	}
	return ""
}
