package card

import (
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// became says what became of an approved call, as the journal has it. These are
// all calls of a row: they may have taken different times.
func (r row) became() []blockkit.Para {
	a := r.a
	if a.StatusAt(r.now) != approvals.Approved {
		return nil
	}
	e := a.Execution
	if e.State == "" {
		return []blockkit.Para{blockkit.Line(blockkit.Say(r.notYet()))}
	}
	word, known := executed[e.State]
	if !known {
		return []blockkit.Para{blockkit.Line(blockkit.Say(sayUnknownOutcome))}
	}
	spans := []blockkit.Span{blockkit.Styled(executedMarks[e.State]+word, blockkit.Bold)}
	if took := r.took(); took != "" && (e.State == approvals.Ran || e.State == approvals.RanFailed) {
		spans = append(spans, blockkit.Say(map[approvals.ExecutionState]string{approvals.Ran: " in ", approvals.RanFailed: " after "}[e.State]+took))
	}
	if e.State == approvals.Claimed {
		spans = append(spans, blockkit.Say(" by "), blockkit.Styled(blockkit.Brief(e.By, 60), blockkit.Bold))
	}
	if !e.At.IsZero() {
		spans = append(spans, blockkit.Say(" ("), blockkit.DateSpan(e.At), blockkit.Say(")"))
	}
	words := e.Words
	switch e.State {
	case approvals.Ran:
		words = e.Excerpt
	case approvals.InDoubt:
		spans = append(spans, blockkit.Say(sayInDoubt))
	case approvals.AskedAgain:
		spans = append(spans, blockkit.Say(sayChangedSince))
	case approvals.Claimed:
		spans = append(spans, blockkit.Say(sayNotReported))
	case approvals.RanFailed, approvals.NotRun, approvals.Refused:
	}
	if e.By != "" && e.State != approvals.Claimed {
		spans = append(spans, blockkit.Say(sayReportedBy), blockkit.Styled(blockkit.Brief(e.By, 60), blockkit.Bold))
	}
	out := []blockkit.Para{blockkit.Line(spans...)}
	if strings.TrimSpace(words) != "" {
		last := len(spans) - 1
		if e.State == approvals.Ran {
			spans = append(spans, blockkit.Say(". Its result begins:"))
		} else if t, ok := spans[last].(*slack.RichTextSectionTextElement); !ok || !strings.HasSuffix(t.Text, ".") {
			spans = append(spans, blockkit.Say(":"))
		}
		out = []blockkit.Para{blockkit.Line(spans...), quote(approvals.Quote{Text: words}, quoted(r.detail))}
	}
	return out
}

// soon is for how long after the last decision a call without an outcome is
// taken to be running. Calls that ran before outcomes were stored never get one.
const soon = 10 * time.Minute

// notYet is what an approved call waits for, or that its outcome isn't known.
func (r row) notYet() string {
	until := r.Batch.UsableUntil(r.a)
	switch {
	case r.Batch.Executor != "" && !until.IsZero() && !r.now.Before(until):
		return sayNotUsedInTime
	case r.undecided():
		return sayNotRunUntil + everyCall(len(r.Batch.Approvals)) + " are decided."
	case r.Fulfillers.Left(r.Batch) != "":
		return sayNotRunElsewhere
	case !r.Batch.Settled():
		return sayNotRun
	case r.Batch.Executor != "":
		return sayNotUsedYet
	case r.now.Sub(r.settledAt()) < soon:
		return sayRunning
	}
	return sayNoRecord
}

// Unused reports whether an approval of the batch that its agent has not used has lapsed,
// and when the next one lapses; zero if none does.
func Unused(b approvals.Batch, now time.Time) (lapsed bool, next time.Time) {
	for _, a := range b.Approvals {
		if b.Executor == "" || !b.Settled() || a.Status != approvals.Approved || a.Execution.State != "" {
			continue
		}
		switch until := b.UsableUntil(a); {
		case !now.Before(until):
			lapsed = true
		case next.IsZero() || until.Before(next):
			next = until
		}
	}
	return lapsed, next
}

// took is how long the calls of a row ran.
func (r row) took() string {
	var all []time.Duration
	for _, i := range r.calls {
		if t := r.OnCard()[i].Execution.Took; t > 0 {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return ""
	}
	least, most := blockkit.Duration(slices.Min(all)), blockkit.Duration(slices.Max(all))
	if least == most {
		return most
	}
	return least + " to " + most
}

// settledAt is when the last call of the batch was decided.
func (d *drawing) settledAt() time.Time {
	var last time.Time
	for _, a := range d.Batch.Approvals {
		if a.Ending.At.After(last) {
			last = a.Ending.At
		}
	}
	for _, x := range d.Batch.Calls {
		if x.Ending.At.After(last) {
			last = x.Ending.At
		}
	}
	return last
}
