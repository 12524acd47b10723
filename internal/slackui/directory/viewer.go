package directory

import (
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// Sees reports whether a list of the person may have this call: one that they may
// approve, that they asked for, or that is shown in the channel where they are.
func (w Viewer) Sees(b approvals.Batch, a approvals.Approval, channel string, now time.Time) bool {
	return b.Requester == w.User || ref.ShownIn(b, a, channel) || w.MayDecide(b, a, a.Yes(), now) == nil
}

// MayDecide returns nil if this verdict of the person on the call would count now.
func (w Viewer) MayDecide(b approvals.Batch, a approvals.Approval, v approvals.Verdict, now time.Time) error {
	return b.MayDecide(a, w.Principal, v, now)
}

// Involved returns the calls that the person asked for or decided and that wait for
// others, and the calls that the person decided and that are settled.
func (w Viewer) Involved(asked, decided []approvals.Batch, now time.Time) (others, done []card.OpenCalls) {
	seen := map[approvals.BatchID]bool{}
	for _, b := range slices.Concat(asked, decided) {
		if seen[b.ID] {
			continue
		}
		seen[b.ID] = true
		wait, over := card.OpenCalls{Batch: b}, card.OpenCalls{Batch: b}
		for i, a := range b.Approvals {
			_, signed := a.DecisionBy(w.User)
			switch open := a.OpenAt(now); {
			case open && (signed || b.Requester == w.User) && !b.Helps(a, w.Principal):
				wait.Calls = append(wait.Calls, i)
			case !open && signed:
				over.Calls = append(over.Calls, i)
			}
		}
		if len(wait.Calls) > 0 {
			others = append(others, wait)
		}
		if len(over.Calls) > 0 {
			done = append(done, over)
		}
	}
	slices.SortStableFunc(others, func(a, b card.OpenCalls) int { return a.Batch.OpenedAt.Compare(b.Batch.OpenedAt) })
	slices.SortStableFunc(done, func(a, b card.OpenCalls) int { return b.DecidedBy(w.User).Compare(a.DecidedBy(w.User)) })
	return others, done
}
