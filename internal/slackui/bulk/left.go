package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/slack-go/slack"
)

// approver resolves the person as for an approval, except that a group which Slack
// does not know has no members: one rule with a wrong group must not stop people
// from approving the calls of other rules. Such groups are returned as gone. Any
// other lookup that fails is an error.
func (s *Service) approver(ctx context.Context, user, team string, what directory.Sought) (p approvals.Principal, gone []approvals.GroupID, err error) {
	for {
		p, err = s.People.Principal(ctx, user, team, what)
		absent := groupsGone(err)
		if len(absent) == 0 {
			return p, gone, err
		}
		left := slices.DeleteFunc(slices.Clone(what.Groups), func(g approvals.GroupID) bool { return slices.Contains(absent, g) })
		if len(left) == len(what.Groups) {
			return p, gone, err
		}
		what.Groups, gone = left, append(gone, absent...)
	}
}

// groupsGone returns the groups in the tree of err that Slack does not know. Groups
// that Slack could not look up just now are not among them.
func groupsGone(err error) []approvals.GroupID {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case *directory.LookupError:
		if e.What == "group" && slackapi.HasCode(e.Err, "no_such_subteam", "channel_not_found") {
			return []approvals.GroupID{approvals.GroupID(e.ID)}
		}
	case interface{ Unwrap() error }:
		return groupsGone(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []approvals.GroupID
		for _, inner := range e.Unwrap() {
			all = append(all, groupsGone(inner)...)
		}
		return all
	}
	return nil
}

// leavesOut returns why the person cannot decide the call now, or nothing.
func leavesOut(w directory.Viewer, b approvals.Batch, a approvals.Approval, v approvals.Verdict, gone []approvals.GroupID, now time.Time) Reason {
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
	case errors.Is(err, approvals.ErrDecided), err == nil && decided:
		return leftDecided
	case err != nil:
		return leftOther
	case v == approvals.Approve && !b.Helps(a, w.Principal):
		return leftNeed
	}
	return ""
}

// asksAny reports whether the requirement asks one of these groups.
func asksAny(r approvals.Requirement, groups []approvals.GroupID) bool {
	return slices.ContainsFunc(slices.Concat(r.Quorums, r.Vetoes), func(q approvals.Quorum) bool {
		return slices.ContainsFunc(q.From.Groups, func(g approvals.GroupID) bool { return slices.Contains(groups, g) })
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
