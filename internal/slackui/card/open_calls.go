package card

import (
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// OpenCalls are some calls of a batch, by their indexes.
type OpenCalls struct {
	Batch approvals.Batch
	Calls []int
}

// PendingOf are the open calls of one card.
func PendingOf(b approvals.Batch, part int) []int {
	var all []int
	for i, a := range b.Approvals {
		if i/CallsPerCard == part && a.Status == approvals.Pending {
			all = append(all, i)
		}
	}
	return all
}

// deadline is the earliest deadline of the calls, or the zero time.
func (p OpenCalls) deadline() time.Time {
	var first time.Time
	for _, i := range p.Calls {
		if d := p.Batch.Approvals[i].Requirement.Deadline; !d.IsZero() && (first.IsZero() || d.Before(first)) {
			first = d
		}
	}
	return first
}

// Urgency is a key that sorts by deadline, then by age, then by part.
func (p OpenCalls) Urgency() string {
	deadline := int64(1e15) // none, after all others
	if d := p.deadline(); !d.IsZero() {
		deadline = d.UnixMilli()
	}
	part := 0
	if len(p.Calls) > 0 {
		part = p.Calls[0] / CallsPerCard
	}
	return fmt.Sprintf("%016d %016d %s %03d", deadline, max(0, p.Batch.OpenedAt.UnixMicro()), p.Batch.ID, part)
}

// Parts divides the calls by the cards of the batch.
func (p OpenCalls) Parts() []OpenCalls {
	var all []OpenCalls
	for _, i := range p.Calls {
		if n := len(all); n == 0 || all[n-1].Calls[0]/CallsPerCard != i/CallsPerCard {
			all = append(all, OpenCalls{Batch: p.Batch})
		}
		last := &all[len(all)-1]
		last.Calls = append(last.Calls, i)
	}
	return all
}

// FirstCard is the card that shows the first of the calls.
func (p OpenCalls) FirstCard() ref.Card {
	return ref.Card{Batch: p.Batch.ID, Part: p.Calls[0] / CallsPerCard}
}

// DecidedBy is when the person decided the last of these calls.
func (p OpenCalls) DecidedBy(user approvals.UserID) time.Time {
	var last time.Time
	for _, i := range p.Calls {
		if d, _ := p.Batch.Approvals[i].DecisionBy(user); d.At.After(last) {
			last = d.At
		}
	}
	return last
}
