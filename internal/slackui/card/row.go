package card

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/form"
)

// A row of a drawing is one call, or several that do the same and have the same
// status.
type row struct {
	*drawing

	calls []int              // of the card's, from 0
	a     approvals.Approval // the first of them
}

func (r row) several() bool { return len(r.calls) > 1 }

// blocks draws one call, or several that are the same.
func (r row) blocks() []slack.Block {
	var text []blockkit.Para
	r, between := r.settledSpan()
	a := r.a
	status := a.StatusAt(r.now)
	if len(r.Batch.Approvals) > 1 {
		text = append(text, r.which())
		if status == approvals.Pending && len(r.OnCard()) > 1 {
			text = append(text, blockkit.Line(blockkit.Styled(r.rated(a), blockkit.Bold)))
		}
	}
	// Slack folds a long block away behind "Show more". What people must read
	// before they press a button is never in one block with a long text.
	var blocks []slack.Block
	if doubt := r.doubtful(); len(doubt) > 0 {
		text = append(text, doubt...)
		if r.roomy() {
			blocks, text = blocksOf(text), nil
		}
	}
	text = append(text, says(a, r.detail)...)
	text = append(text, changes(a, r.detail)...)
	call, known := r.Calls[a.Call.ID]
	if known {
		text = append(append(text, form.Where(a, call.Args)...), form.Unplaced(r.Batch, a, call.Args)...)
	}
	list, incomplete := blockkit.DrawArguments(blockkit.Arguments(call.Args, a.WriteOnly), r.detail)
	text = append(text, exactly(a, known, len(list), incomplete))
	r.cut = r.cut || incomplete || !known || r.several()
	var below [][]blockkit.Para
	if said := r.cutWords(incomplete); said != "" && status == approvals.Pending {
		below = append(below, []blockkit.Para{blockkit.Line(blockkit.Styled(said, blockkit.Bold))})
	}
	below = append(below, r.verdict()...)
	below = append(below, blockkit.Nonempty(between, r.choices())...)
	for room := r.room(); len(list) > 0; room-- {
		first := list
		if room > 1 {
			first = list[:1]
		}
		list = list[len(first):]
		r.tall = r.tall || len(first) > 1 && status == approvals.Pending && blockkit.Lines(first) > Details[0].Lines
		text = append(text, blockkit.BoxParas(first)...)
		if len(list) > 0 || len(first) > 1 || !blockkit.NeverFolded(first[0].Text) {
			blocks, text = append(blocks, blockkit.RichText(text...)), nil
		}
	}
	for _, groups := range [][][]blockkit.Para{r.amendments(), below} {
		more := r.gathered(text, groups)
		if blocks = append(blocks, more...); len(more) > 0 {
			text = nil
		}
	}
	if status == approvals.Pending && known {
		buttons := r.buttons(!incomplete)
		if r.several() {
			buttons = r.groupButtons()
		}
		blocks = append(blocks, r.footer(), buttons)
	}
	return blocks
}

// which says which calls a row is, and what they do.
func (r row) which() blockkit.Para {
	numbers := make([]string, 0, len(r.calls))
	for _, i := range r.calls {
		numbers = append(numbers, strconv.Itoa(r.Part*CallsPerCard+i+1))
	}
	spans := []blockkit.Span{
		blockkit.Styled(fmt.Sprintf("%s of %d: ", blockkit.List(numbers), len(r.Batch.Approvals)), nil),
		blockkit.Styled(r.Summary(r.a), blockkit.Bold),
	}
	if r.several() {
		spans = append(spans, blockkit.Say(", "), blockkit.Styled("the same call "+blockkit.Number(len(r.calls))+" times", blockkit.Bold))
	}
	return blockkit.Line(spans...)
}

// settledSpan returns the row without the time of its ending, and a paragraph
// with the first and the last time, if its calls did not end at the same
// moment.
func (r row) settledSpan() (row, []blockkit.Para) {
	var ends []time.Time
	for _, i := range r.calls {
		ends = append(ends, r.OnCard()[i].Ending.At)
	}
	first, last := slices.MinFunc(ends, time.Time.Compare), slices.MaxFunc(ends, time.Time.Compare)
	if first.IsZero() || sameMoment(first, last) {
		return r, nil
	}
	r.a.Ending.At = time.Time{}
	return r, []blockkit.Para{blockkit.Line(blockkit.Say(sayOneByOne), blockkit.DateSpan(first), blockkit.Say(" to "), blockkit.DateSpan(last), blockkit.Say("."))}
}

// cutWords says where people can read and approve a call that a row does not
// show whole.
func (r row) cutWords(incomplete bool) string {
	switch {
	case r.several() && len(r.a.Requirement.Quorums) > 0 && !r.onSheet():
		return sayTooLongTogether
	case !incomplete:
		return ""
	case len(r.a.Requirement.Quorums) == 0:
		return sayViewFullShows
	}
	if r.a.InDoubt() {
		return sayAgainOpens
	}
	return sayApproveOpens
}

// exactly leads to the exact arguments: they, and not the summary, are what
// people approve.
func exactly(a approvals.Approval, known bool, arguments int, incomplete bool) blockkit.Para {
	tool := blockkit.Styled(blockkit.Brief(a.Call.Name, 80), blockkit.Code)
	switch {
	case !known:
		return blockkit.Line(tool, blockkit.Styled(sayNoArgumentsShown, blockkit.Bold))
	case arguments == 0:
		return blockkit.Line(tool, blockkit.Say(" without arguments."))
	case incomplete:
		return blockkit.Line(tool, blockkit.Say(sayCutArguments))
	}
	return blockkit.Line(tool, blockkit.Say(sayExactly))
}

// gathered puts groups of paragraphs in blocks of their own, or in one if there
// is no room for that; first is in front of them.
func (r row) gathered(first []blockkit.Para, groups [][]blockkit.Para) []slack.Block {
	var blocks []slack.Block
	text := first
	for i, g := range groups {
		text = append(text, g...)
		if len(text) > 0 && (r.roomy() || i == len(groups)-1) {
			blocks, text = append(blocks, blockkit.RichText(text...)), nil
		}
	}
	return blocks
}
