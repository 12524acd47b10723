package directory

import (
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// Sees reports whether the person may see this call in a list: what they may
// sign, what they asked for, and what is shown in the channel where they are.
func (w Viewer) Sees(b approvals.Batch, a approvals.Approval, channel string, now time.Time) bool {
	return b.Requester == w.User || ref.ShownIn(b, a, channel) || w.MaySay(b, a, approvals.Approve, now) == nil
}

// MaySay is nil if this verdict of the person on the call would be taken now.
func (w Viewer) MaySay(b approvals.Batch, a approvals.Approval, v approvals.Verdict, now time.Time) error {
	return b.MayDecide(a, w.Principal, v, now)
}

// Apart is what the person waits for, because they asked for it or have signed
// it, and what they decided that is over.
func (w Viewer) Apart(asked, decided []approvals.Batch, now time.Time) (others, done []card.OpenCalls) {
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
