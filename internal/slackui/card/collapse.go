package card

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// A row of a card is one call, or several that do the same and have the same
// status.
type row struct {
	calls []int              // of the card's, from 0
	a     approvals.Approval // the first of them
}

func (r row) several() bool { return len(r.calls) > 1 }

// groupRows returns the rows of the card in the order of their first calls. In a
// review, and where nothing can open a sheet, each open call has its own.
func (c Card) groupRows(now time.Time) []row {
	var rows []row
	for i, a := range c.OnCard() {
		j := -1
		if c.Place != PlaceReview && (c.Sheets || !a.OpenAt(now)) {
			j = slices.IndexFunc(rows, func(r row) bool { return c.sameCall(r.a, a, now) })
		}
		if j < 0 {
			rows = append(rows, row{[]int{i}, a})
			continue
		}
		rows[j].calls = append(rows[j].calls, i)
		if d := &rows[j].a.Requirement.Deadline; a.Requirement.Deadline.Before(*d) {
			*d = a.Requirement.Deadline
		}
	}
	var apart []row
	for _, r := range rows {
		if _, err := c.sheetButton(r, approvals.Approve); err == nil || !r.several() || !r.a.OpenAt(now) {
			apart = append(apart, r)
			continue
		}
		for _, i := range r.calls { // too many for the value of a button
			apart = append(apart, row{[]int{i}, c.OnCard()[i]})
		}
	}
	return apart
}

// sameCall reports whether two calls differ only in their ids: they run the
// same, need the same approval, and have the same decisions. A call that
// somebody changed equals no other.
func (c Card) sameCall(a, b approvals.Approval, now time.Time) bool {
	x, known := c.Calls[a.Call.ID]
	y, also := c.Calls[b.Call.ID]
	switch {
	case !known, !also, a.Call.Name != b.Call.Name, x.Name != y.Name, !bytes.Equal(x.Args, y.Args), !slices.Equal(a.WriteOnly, b.WriteOnly),
		len(a.Amendments)+len(b.Amendments) > 0,
		a.Summary != b.Summary, a.Severity != b.Severity, !sameExecution(a.Execution, b.Execution),
		a.Why != b.Why, a.Rule != b.Rule, a.Unjudged != b.Unjudged, a.Gate != b.Gate, a.GateReason != b.GateReason, !samePreview(a.Preview, b.Preview), !bytes.Equal(a.Metadata, b.Metadata),
		!sameAsked(a.Requirement, b.Requirement),
		a.StatusAt(now) != b.StatusAt(now), a.Climbed != b.Climbed, a.Ending.By != b.Ending.By, a.Ending.Reason != b.Ending.Reason:
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
	return a.State == b.State && a.Words == b.Words && a.Excerpt == b.Excerpt
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

// which says which calls a row is, and what they do.
func (c Card) which(r row) blockkit.Para {
	numbers := make([]string, 0, len(r.calls))
	for _, i := range r.calls {
		numbers = append(numbers, strconv.Itoa(c.Part*CallsPerCard+i+1))
	}
	spans := []blockkit.Span{
		blockkit.Styled(fmt.Sprintf("%s of %d: ", blockkit.List(numbers), len(c.Batch.Approvals)), nil),
		blockkit.Styled(c.Summary(r.a), blockkit.Bold),
	}
	if r.several() {
		spans = append(spans, blockkit.Say(", "), blockkit.Styled("the same call "+blockkit.Number(len(r.calls))+" times", blockkit.Bold))
	}
	return blockkit.Line(spans...)
}

// settledSpan returns the row without the time of its ending, and a paragraph
// with the first and the last time, if its calls did not end at the same
// moment.
func (c Card) settledSpan(r row) (row, []blockkit.Para) {
	var ends []time.Time
	for _, i := range r.calls {
		ends = append(ends, c.OnCard()[i].Ending.At)
	}
	first, last := slices.MinFunc(ends, time.Time.Compare), slices.MaxFunc(ends, time.Time.Compare)
	if first.IsZero() || sameMoment(first, last) {
		return r, nil
	}
	r.a.Ending.At = time.Time{}
	return r, []blockkit.Para{blockkit.Line(blockkit.Say("Decided one by one, from "), blockkit.DateSpan(first), blockkit.Say(" to "), blockkit.DateSpan(last), blockkit.Say("."))}
}

// sheetButton is the value of the button that opens a sheet of the calls of a
// row. It names each call with the digest of the arguments that are drawn.
func (c Card) sheetButton(r row, v approvals.Verdict) (string, error) {
	f := ref.Filter{Batch: c.Batch.ID}
	for _, i := range r.calls {
		call := c.OnCard()[i].Call
		f.Drawn = append(f.Drawn, call.Digest)
		if _, err := (ref.Pointer{Batch: c.Batch.ID, Call: call.ID, Digest: call.Digest}).Encode(); err != nil {
			return "", err
		}
	}
	raw, err := json.Marshal(ref.SheetButton{Verdict: v, Filter: f})
	if err != nil || len(raw) > ref.MaxPointer {
		return "", fmt.Errorf("%w: calls of batch %s", ref.ErrPointer, c.Batch.ID)
	}
	return string(raw), nil
}

// onSheet reports whether a sheet shows the calls of the row whole. A sheet
// leaves out calls that it cannot.
func (c Card) onSheet(r row) bool {
	call, known := c.Calls[r.a.Call.ID]
	if !known {
		return false
	}
	_, whole := ArgumentsOnSheet(r.a, call)
	return whole
}

// groupButtons are the buttons of a row of several open calls. Approving and
// denying them opens a sheet that lists the calls.
func (c Card) groupButtons(r row) slack.Block {
	var all []slack.BlockElement
	button := func(act ref.Action, n int, value, label string, style slack.Style) {
		b := blockkit.Button(act.ID(n), value, label, spoken(strings.TrimSuffix(label, "…"), "", c.Summary(r.a)))
		b.Style = style
		all = append(all, b)
	}
	i, n := r.calls[0], blockkit.Number(len(r.calls))
	approve, err := c.sheetButton(r, approvals.Approve)
	deny, failed := c.sheetButton(r, approvals.Deny)
	whole, unusable := ref.Pointer{Batch: c.Batch.ID, Call: r.a.Call.ID, Digest: r.a.Call.Digest}.Encode()
	if errors.Join(err, failed, unusable) != nil {
		return blockkit.Small(blockkit.Ours("These calls can't be approved here: their ids aren't usable."))
	}
	if len(r.a.Requirement.Quorums) > 0 && c.onSheet(r) {
		button(ref.ActionSheet, 2*i, approve, "Approve all "+n+"…", slack.StylePrimary)
	}
	if len(r.a.Requirement.Quorums) > 0 {
		button(ref.ActionSheet, 2*i+1, deny, "Deny all "+n+"…", slack.StyleDanger)
	}
	button(ref.ActionView, i, whole, "View full", slack.StyleDefault)
	button(ref.ActionEach, i, ref.Card{Batch: c.Batch.ID, Part: c.Part}.String(), "Review one by one", slack.StyleDefault)
	return slack.NewActionBlock("", all...)
}
