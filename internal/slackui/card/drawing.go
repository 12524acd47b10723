package card

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/verdict"
)

// A drawing is a card at one time, with as much detail as fits into a message.
type drawing struct {
	Card
	now    time.Time
	rows   []row
	detail blockkit.Detail
	cut    bool // it leaves out something of a call
	tall   bool // a block of several arguments has more lines than Slack shows
	blocks []slack.Block

	summaries map[approvals.ToolCallID]string
}

// draw draws the card with the most detail for which there is room.
func (c Card) draw(now time.Time) *drawing {
	d := &drawing{Card: c, now: now, summaries: make(map[approvals.ToolCallID]string)}
	d.rows = d.groupRows()
	for _, d.detail = range Details {
		d.cut, d.tall = false, false
		if d.blocks = d.render(); !d.tall && fits(d.blocks) {
			break
		}
	}
	return d
}

// Summary is [Card.Summary], computed once for each call: several texts of the card use it.
func (d *drawing) Summary(a approvals.Approval) string {
	said, ok := d.summaries[a.Call.ID]
	if !ok {
		said = d.Card.Summary(a)
		d.summaries[a.Call.ID] = said
	}
	return said
}

// render draws the card with its detail.
func (d *drawing) render() []slack.Block {
	blocks := append([]slack.Block{slack.NewHeaderBlock(blockkit.Literal(d.title()))}, opening{d}.blocks()...)
	for i, r := range d.rows {
		if i > 0 && len(d.rows) <= dividedRows {
			blocks = append(blocks, slack.NewDividerBlock())
		}
		blocks = append(blocks, r.blocks()...)
	}
	if all := d.approveAll(); all != nil {
		blocks = append(blocks, all)
	}
	if more := d.unposted(); more != nil {
		blocks = append(blocks, more)
	}
	return blocks
}

// dividedRows is how many rows have lines between them. With more, Slack's limit
// of 50 blocks leaves no room for them.
const dividedRows = 6

// title is the headline of the card: what the call does, or the number of calls,
// and how they stand. The headline of an open call has no status, so that it
// cannot be taken for an outcome: the line below it says that it waits.
func (d *drawing) title() string {
	calls := d.OnCard()
	if len(calls) == 1 {
		a := calls[0]
		if a.OpenAt(d.now) && a.InDoubt() {
			return sayDoubtRow + d.Summary(a)
		}
		if a.OpenAt(d.now) {
			return d.Summary(a)
		}
		return ended(a.Outcome(d.now)) + ": " + d.Summary(a)
	}
	standing := d.standing()
	if d.allOpen() {
		return standing
	}
	return fmt.Sprintf("%d calls: %s", len(calls), standing)
}

// allOpen reports whether every call of the card is open.
func (d *drawing) allOpen() bool {
	return !slices.ContainsFunc(d.OnCard(), func(a approvals.Approval) bool { return !a.OpenAt(d.now) })
}

// standing counts the calls of the card by their status.
func (d *drawing) standing() string {
	by := map[approvals.Status]int{}
	for _, a := range d.OnCard() {
		by[a.StatusAt(d.now)]++
	}
	if d.allOpen() {
		if d.anyDoubt() {
			return blockkit.Count(by[approvals.Pending], "call") + " need a decision"
		}
		return blockkit.Count(by[approvals.Pending], "call") + " need approval"
	}
	var said []string
	for _, s := range []approvals.Status{approvals.Pending, approvals.Approved, approvals.Denied, approvals.Expired, approvals.Withdrawn, approvals.Confirmed} {
		if by[s] > 0 {
			said = append(said, fmt.Sprintf("%d %s", by[s], strings.ToLower(statuses[s])))
		}
	}
	return strings.Join(said, ", ")
}

// risk says the worst severity of the open calls of the card, and how many of them have
// it if not all do. open is how many are open.
func (d *drawing) risk() (said string, open int) {
	var s approvals.Severity
	n, unknown := 0, false
	for _, a := range d.OnCard() {
		if !a.OpenAt(d.now) {
			continue
		}
		open++
		unknown = unknown || d.rated(a) == sayLowUnknownTool
		switch order := approvals.CompareSeverity(a.Severity, s); {
		case n == 0 || order < 0:
			s, n = a.Severity, 1
		case order == 0:
			n++
		}
	}
	switch low := s == approvals.SeverityLow && unknown; {
	case n < open:
		return fmt.Sprintf("%s: %d of %d calls.", blockkit.Risk(s), n, open), open
	case low && open > 1:
		return sayLowUnknownTools + ".", open
	case low:
		return sayLowUnknownTool + ".", open
	}
	return blockkit.Risk(s) + ".", open
}

// rated is [Rated] of the call.
func (d *drawing) rated(a approvals.Approval) string {
	_, known := d.Tools[a.Call.Name]
	return Rated(a.Severity, known)
}

// ended is how a call ended, in one word.
func ended(o approvals.Outcome) string {
	if o.Superseded {
		return verdict.Superseded
	}
	if word, other := doubtStatuses[o.Status]; other && o.InDoubt {
		return word
	}
	return statuses[o.Status]
}

// unposted counts the calls that have no card in this place, and leads to the
// first open one. It is nil if there are none.
func (d *drawing) unposted() slack.Block {
	calls, open, first := 0, 0, -1
	for i, a := range d.Batch.Approvals {
		if !slices.Contains(d.Unposted, i/CallsPerCard) {
			continue
		}
		calls++
		if a.Status == approvals.Pending {
			open++
			if first < 0 {
				first = i / CallsPerCard
			}
		}
	}
	if calls == 0 {
		return nil
	}
	said := blockkit.Ours(sayNoCardHere, blockkit.Counted(calls, "more call"), blockkit.Plural(calls, "has", "have"))
	if open == 0 {
		return blockkit.Section(blockkit.Ours("%s, and %s already decided.", said, blockkit.Plural(calls, "is", "are")))
	}
	button := blockkit.Button(ref.ActionReview.ID(first), ref.Card{Batch: d.Batch.ID, Part: first}.String(), "Review the others",
		"Review the others: "+blockkit.Count(open, "call")+" of this request")
	if open == calls {
		said = blockkit.Ours("%s and %s for a decision.", said, blockkit.Plural(open, "waits", "wait"))
	} else {
		said = blockkit.Ours("%s; %s of them %s.", said, blockkit.Num(open), blockkit.Plural(open, "waits", "wait"))
	}
	return slack.NewSectionBlock(said.Object(), nil, slack.NewAccessory(button))
}

// roomy reports whether the card has so few rows that what is said of each may
// take blocks of its own.
func (d *drawing) roomy() bool { return len(d.rows) <= 4 }

// room is how many blocks the arguments of one row may take.
func (d *drawing) room() int {
	const header = 6 // the headline, who asks with two quotations, Approve all, and what is not posted
	others := 5      // amendments, verdict, fine print, buttons, divider
	if d.roomy() {
		others += AmendmentsShown + 2 // each amendment, what is incomplete, why, progress, reasons
	}
	n := len(d.rows)
	return min(10, max(1, (50-header-n*others)/n))
}

// fits reports whether a card may have these blocks. Their texts are a part of what is
// sent, so they are counted only if the whole is longer than the limit.
func fits(blocks []slack.Block) bool {
	raw, err := json.Marshal(blocks)
	return err == nil && (len(raw) <= maxCardText || textLength(raw) <= maxCardText)
}

// textLength counts the characters of every text in encoded blocks.
func textLength(raw []byte) int {
	var tree any
	if json.Unmarshal(raw, &tree) != nil {
		return maxCardText + 1
	}
	return sumText(tree)
}

func sumText(v any) int {
	n := 0
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += sumText(e)
		}
	case map[string]any:
		for key, e := range v {
			if s, ok := e.(string); ok && key == "text" {
				n += utf8.RuneCountInString(s)
				continue
			}
			n += sumText(e)
		}
	}
	return n
}
