package card

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/verdict"
	"github.com/countersign/countersign/internal/summary"
)

// OpenCalls are some calls of a batch, by their indexes. A list shows them in
// one row.
type OpenCalls struct {
	Batch approvals.Batch
	Calls []int
	Does  string // what the leading call does, foreign text; empty: only its tool is shown
}

// Open are the calls of a batch that wait.
func Open(b approvals.Batch) OpenCalls {
	p := OpenCalls{Batch: b}
	for i, a := range b.Approvals {
		if a.Status == approvals.Pending {
			p.Calls = append(p.Calls, i)
		}
	}
	return p
}

// Leading is the call after which the row is named: the first of the worst.
func (p OpenCalls) Leading() approvals.Approval { return p.Batch.Approvals[p.leading()] }

func (p OpenCalls) leading() int {
	return slices.MinFunc(p.Calls, func(x, y int) int {
		return cmp.Or(approvals.CompareSeverity(p.Batch.Approvals[x].Severity, p.Batch.Approvals[y].Severity), cmp.Compare(x, y))
	})
}

// Title is what the calls do, in at most n characters: "Delete reports/a.txt and
// 2 more calls".
func (p OpenCalls) Title(n int) string {
	does := cmp.Or(p.Does, summary.Words(p.Leading().Call.Name))
	if a := p.Leading(); a.InDoubt() {
		does = sayDoubtRow + does
	}
	if len(p.Calls) == 1 {
		return blockkit.Brief(does, n-1)
	}
	more := " and " + blockkit.Count(len(p.Calls)-1, "more call")
	return blockkit.Brief(does, n-1-len(more)) + more
}

// Progress counts the approvals of a call, or the calls of several. It holds
// names of quorums, which are foreign text.
func (p OpenCalls) Progress() string {
	switch all := len(p.Batch.Approvals); {
	case len(p.Calls) > 1 && len(p.Calls) == all:
		return blockkit.Count(all, "call")
	case len(p.Calls) > 1:
		return fmt.Sprintf("%d of the request's %s", len(p.Calls), blockkit.Count(all, "call"))
	}
	var said []string
	for i, q := range p.Leading().Progress() {
		if i == verdict.QuorumsShown {
			said = append(said, "and more")
			break
		}
		said = append(said, fmt.Sprintf("%s: %d of %s", blockkit.Brief(q.Quorum.Name, 40), len(q.By), blockkit.Count(q.Quorum.Need, "approval")))
	}
	if len(said) == 0 {
		return sayNobodyCanRow
	}
	return strings.Join(said, ", ")
}

// Review is the n-th button of its kind on a list. It opens the card with the
// leading call.
func (p OpenCalls) Review(n int) *blockkit.ButtonElement { return p.button(n, "Review") }

func (p OpenCalls) button(n int, label string) *blockkit.ButtonElement {
	at := ref.Card{Batch: p.Batch.ID, Part: p.leading() / CallsPerCard}
	return blockkit.Button(ref.ActionReview.ID(n), at.String(), label, label+": "+p.Title(blockkit.SpokenRunes))
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

// Urgency is a key that sorts by the hour of the deadline, those without one
// last; within an hour by severity, the worst first; then by deadline, by age
// and by part.
func (p OpenCalls) Urgency() string {
	hour, deadline := int64(1e15), int64(1e15) // none, after all others
	if d := p.deadline(); !d.IsZero() {
		hour, deadline = d.Truncate(time.Hour).UnixMilli(), d.UnixMilli()
	}
	part, severity := 0, approvals.SeverityLow
	if len(p.Calls) > 0 {
		part, severity = p.Calls[0]/CallsPerCard, p.Leading().Severity
	}
	worse := slices.IndexFunc(worstFirst, func(s approvals.Severity) bool { return approvals.CompareSeverity(s, severity) == 0 })
	return fmt.Sprintf("%016d %d %016d %016d %s %03d", hour, worse, deadline, max(0, p.Batch.OpenedAt.UnixMicro()), p.Batch.ID, part)
}

// OpenedIn is the part of an urgency that sorts by age, then by batch, as the
// windows of an inbox do.
func OpenedIn(urgency string) string {
	fields := strings.Fields(urgency)
	if len(fields) != 6 {
		return ""
	}
	return fields[3] + " " + fields[4]
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
