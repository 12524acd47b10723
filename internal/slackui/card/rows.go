package card

import (
	"bytes"
	"reflect"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// groupRows returns the rows of the card in the order of their first calls. In a
// review, and where nothing can open a sheet, each open call has its own.
func (d *drawing) groupRows() []row {
	var rows []row
	for i, a := range d.OnCard() {
		j := -1
		if d.Place != PlaceReview && (d.Sheets || !a.OpenAt(d.now)) {
			j = slices.IndexFunc(rows, func(r row) bool { return d.sameCall(r.a, a) })
		}
		if j < 0 {
			rows = append(rows, row{d, []int{i}, a})
			continue
		}
		rows[j].calls = append(rows[j].calls, i)
		if end := &rows[j].a.Requirement.Deadline; a.Requirement.Deadline.Before(*end) {
			*end = a.Requirement.Deadline
		}
	}
	var apart []row
	for _, r := range rows {
		if _, err := r.sheetButton(approvals.Approve); err == nil || !r.several() || !r.a.OpenAt(d.now) {
			apart = append(apart, r)
			continue
		}
		for _, i := range r.calls { // too many for the value of a button
			apart = append(apart, row{d, []int{i}, d.OnCard()[i]})
		}
	}
	return apart
}

// sameCall reports whether two calls differ only in their ids: they run the
// same, need the same approval, and have the same decisions. A call that
// someone changed equals no other.
func (d *drawing) sameCall(a, b approvals.Approval) bool {
	x, known := d.Calls[a.Call.ID]
	y, also := d.Calls[b.Call.ID]
	switch {
	case a.InDoubt() || b.InDoubt(): // each is decided by itself
		return false
	case !known, !also, a.Call.Name != b.Call.Name, x.Name != y.Name, !bytes.Equal(x.Args, y.Args), !slices.Equal(a.WriteOnly, b.WriteOnly),
		len(a.Amendments)+len(b.Amendments) > 0,
		a.Summary != b.Summary, a.Severity != b.Severity, a.Place != b.Place, !sameExecution(a.Execution, b.Execution),
		a.Why != b.Why, a.Rule != b.Rule, a.Unjudged != b.Unjudged, a.Checked != b.Checked, a.Gate != b.Gate, a.GateReason != b.GateReason, !samePreview(a.Preview, b.Preview), !bytes.Equal(a.Metadata, b.Metadata),
		!sameAsked(a.Requirement, b.Requirement),
		a.StatusAt(d.now) != b.StatusAt(d.now), a.Climbed != b.Climbed, a.Ending.By != b.Ending.By, a.Ending.Reason != b.Ending.Reason:
		return false
	}
	said := func(p, q approvals.Decision) bool {
		return p.By.User == q.By.User && p.Verdict == q.Verdict && p.Reason == q.Reason
	}
	return slices.EqualFunc(a.Decisions, b.Decisions, said) && reflect.DeepEqual(seats(a), seats(b))
}

// samePreview compares what people are told about two calls that have the same
// arguments. When the tool looked is not part of it.
func samePreview(a, b approvals.Preview) bool {
	content := func(c approvals.Content) int { return c.Size + c.Left }
	return a.Status == b.Status && a.Reads == b.Reads && slices.Equal(a.Facts, b.Facts) && bytes.Equal(a.Precondition, b.Precondition) &&
		content(a.Content) == content(b.Content) && a.Again == b.Again && slices.Equal(a.Before.Facts, b.Before.Facts)
}

// sameExecution compares what became of two calls. When they ran and how long
// is not part of it.
func sameExecution(a, b approvals.Execution) bool {
	return a.State == b.State && a.By == b.By && a.Words == b.Words && a.Excerpt == b.Excerpt
}

// seats are the people who count, by quorum.
func seats(a approvals.Approval) [][]approvals.Seat {
	var all [][]approvals.Seat
	for _, q := range a.Progress() {
		all = append(all, q.By)
	}
	return all
}

// sameAsked compares requirements. The policy judges the calls of one model
// answer one after the other, so their times differ by moments.
func sameAsked(a, b approvals.Requirement) bool {
	if !sameMoment(a.Deadline, b.Deadline) || !slices.EqualFunc(a.Ladder, b.Ladder, func(x, y approvals.Rung) bool { return sameMoment(x.At, y.At) }) {
		return false
	}
	return reflect.DeepEqual(timeless(a), timeless(b))
}

// moments is the most by which the times of calls in one row differ. A card
// shows no seconds.
const moments = 10 * time.Second

func sameMoment(a, b time.Time) bool {
	return a.IsZero() == b.IsZero() && a.Sub(b).Abs() < moments
}

func timeless(r approvals.Requirement) approvals.Requirement {
	r.Deadline, r.Ladder = time.Time{}, slices.Clone(r.Ladder)
	for i := range r.Ladder {
		r.Ladder[i].At = time.Time{}
	}
	return r
}
