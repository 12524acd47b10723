package card

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// CallsPerCard is how many calls of a batch one card shows.
const CallsPerCard = 8

// maxCardText is how many characters of text a card holds, below Slack's limit
// for a message.
const maxCardText = 12_000

// A Card is one message about a batch: its Part-th eight calls.
type Card struct {
	Batch approvals.Batch
	Part  int                                         // from 0
	Calls map[approvals.ToolCallID]approvals.ToolCall // with the arguments that have the digests of the batch
	// Earlier are the calls before and between amendments, by their digests.
	Earlier map[approvals.Digest]approvals.ToolCall
	// Tools are the known tools, by name. A call of another tool is approved
	// with a confirmation and cannot be edited.
	Tools map[string]agentrun.Spec
	// Place is where the card is shown. Link is the address of the thread, if it
	// is known.
	Place  Place
	Link   string
	Person approvals.UserID // whose direct messages it is in
	Missed []Missed
	// Unasked are the calls of the batch that nobody could be asked about.
	Unasked []Unasked
	// Others are the parts of the batch that have no card in this place. Only the
	// last card there has them.
	Unposted []int
	// Sheets is whether people can decide several calls together.
	Sheets bool
	// Viewer is the one person who looks at it, in a review. What they have
	// decided has no buttons to decide it.
	Viewer approvals.UserID
	// Last is whether it is known that nothing else waits for the viewer.
	Last bool

	rows []row
}

// Place is where a card is shown.
type Place string

// The places.
const (
	PlaceThread     Place = ""
	PlaceEscalation Place = "escalation" // the channel of an escalation
	PlaceDirect     Place = "direct"     // a direct message to somebody who can sign
	PlaceReview     Place = "review"     // a modal
)

// Missed is a channel in which an escalation could not show the card, with
// Slack's error code.
type Missed struct{ Channel, Code string }

// Parts returns how many messages the batch needs.
func Parts(b approvals.Batch) int {
	return (len(b.Approvals) + CallsPerCard - 1) / CallsPerCard
}

// Render returns the blocks of the card. It stays within Slack's limits by
// cutting values, and always says what it cut.
func Render(c Card, now time.Time) []slack.Block {
	blocks, _ := c.fit(now)
	return blocks
}

// fit draws the card with the most detail for which there is room.
func (c Card) fit(now time.Time) ([]slack.Block, blockkit.Detail) {
	c.rows = c.groupRows(now)
	for _, d := range Details {
		if blocks := c.render(d, now); textLength(blocks) <= maxCardText {
			return blocks, d
		}
	}
	least := Details[len(Details)-1]
	return c.render(least, now), least
}

// Shows reports whether the card shows the whole call. Only then does the button
// on the card approve it.
func (c Card) Shows(a approvals.Approval, now time.Time) bool {
	call, known := c.Calls[a.Call.ID]
	if !known {
		return false
	}
	_, d := c.fit(now)
	return d.Shows(a, call)
}

// Details are the amounts that a card shows, from the most to the least. Slack
// would fold away a value that is longer than the first allows.
var Details = []blockkit.Detail{
	{Value: 600, Keys: 60, Words: 1000},
	{Value: 600, Keys: 60, Words: 400},
	{Value: 300, Keys: 20, Words: 250},
	{Value: 120, Keys: 10, Words: 150},
	{Value: 60, Keys: 5, Words: 80},
}

// OnCard are the calls of this card.
func (c Card) OnCard() []approvals.Approval {
	from := min(c.Part*CallsPerCard, len(c.Batch.Approvals))
	return c.Batch.Approvals[from:min(from+CallsPerCard, len(c.Batch.Approvals))]
}

func (c Card) render(d blockkit.Detail, now time.Time) []slack.Block {
	blocks := append([]slack.Block{slack.NewHeaderBlock(blockkit.Literal(c.title(now)))}, blocksOf(c.intro(d, now))...)
	for i, r := range c.rows {
		if i > 0 && len(c.rows) <= dividedRows {
			blocks = append(blocks, slack.NewDividerBlock())
		}
		blocks = append(blocks, c.row(r, d, now)...)
	}
	if all := c.approveAll(d, now); all != nil {
		blocks = append(blocks, all)
	}
	if more := c.unposted(); more != nil {
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
func (c Card) title(now time.Time) string {
	calls := c.OnCard()
	if len(calls) == 1 {
		a := calls[0]
		if a.OpenAt(now) {
			return c.Summary(a)
		}
		return ended(a.Outcome(now)) + ": " + c.Summary(a)
	}
	standing := c.standing(now)
	if c.allOpen(now) {
		return standing
	}
	return fmt.Sprintf("%d calls: %s", len(calls), standing)
}

func (c Card) allOpen(now time.Time) bool {
	return !slices.ContainsFunc(c.OnCard(), func(a approvals.Approval) bool { return !a.OpenAt(now) })
}

// standing counts the calls of the card by their status.
func (c Card) standing(now time.Time) string {
	by := map[approvals.Status]int{}
	for _, a := range c.OnCard() {
		by[a.StatusAt(now)]++
	}
	if c.allOpen(now) {
		return blockkit.Count(by[approvals.Pending], "call") + " need approval"
	}
	var said []string
	for _, s := range []approvals.Status{approvals.Pending, approvals.Approved, approvals.Denied, approvals.Expired, approvals.Withdrawn} {
		if by[s] > 0 {
			said = append(said, fmt.Sprintf("%d %s", by[s], strings.ToLower(Statuses[s])))
		}
	}
	return strings.Join(said, ", ")
}

// ended is how a call ended, in one word.
func ended(o approvals.Outcome) string {
	if o.Superseded {
		return superseded
	}
	return Statuses[o.Status]
}

func (c Card) intro(d blockkit.Detail, now time.Time) []blockkit.Para {
	var paras []blockkit.Para
	if s, n, open := c.worst(now); open > 0 {
		paras = append(paras, blockkit.Line(blockkit.Styled(riskOf(s, n, open), blockkit.Bold), blockkit.Say(" "+waiting(open, len(c.OnCard())))))
	}
	paras = append(paras, c.asks(d)...)
	if said := c.waits(); said != "" {
		paras = append(paras, blockkit.Line(blockkit.Say(said)))
	}
	paras = append(paras, c.participants()...)
	paras = append(paras, c.origin()...)
	paras = append(paras, c.unasked()...)
	for _, m := range c.Missed {
		paras = append(paras, blockkit.Line(blockkit.Say("This couldn't be shown in "), blockkit.GroupSpan(m.Channel), blockkit.Say(": "+whyMissed(m.Code)+". Ask the people there to come here.")))
	}
	return paras
}

// origin says where the call was asked for, on a card outside of that thread.
func (c Card) origin() []blockkit.Para {
	why := ""
	switch c.Place {
	case PlaceThread:
		return nil
	case PlaceEscalation:
		why = ", and is shown here too because it wasn't decided in time"
	case PlaceDirect:
		why = ", and is shown to you because you can approve it"
		if c.Person != "" && !slices.ContainsFunc(c.OnCard(), func(a approvals.Approval) bool {
			return a.Status == approvals.Pending && !c.Batch.Barred(a, c.Person)
		}) {
			why = ", and was shown to you when you could approve it"
		}
	case PlaceReview:
	}
	asked := "Asked in "
	if c.Batch.Executor != "" {
		asked = "Shown in "
	}
	spans := []blockkit.Span{blockkit.Say(asked), blockkit.GroupSpan(c.Batch.Channel), blockkit.Say(why + ".")}
	if strings.HasPrefix(c.Batch.Channel, "D") {
		spans = []blockkit.Span{blockkit.Say("Asked in a direct message" + why + ".")}
	}
	if c.Link != "" {
		spans = append(spans, blockkit.Say(" "), slack.NewRichTextSectionLinkElement(c.Link, "Open the thread", nil))
	}
	return []blockkit.Para{blockkit.Line(spans...)}
}

func (c Card) itsThread() string {
	if c.Place != PlaceThread {
		return "its own thread"
	}
	return "this thread"
}

func whyMissed(code string) string {
	switch code {
	case "is_archived":
		return "the channel is archived"
	case "restricted_action":
		return "the app isn't allowed to post there"
	}
	return "the app isn't in the channel"
}

// row draws one call, or several that are the same.
func (c Card) row(r row, d blockkit.Detail, now time.Time) []slack.Block {
	var text []blockkit.Para
	r, between := c.settledSpan(r)
	a := r.a
	status := a.StatusAt(now)
	if len(c.Batch.Approvals) > 1 {
		text = append(text, c.which(r))
		if status == approvals.Pending && len(c.OnCard()) > 1 {
			text = append(text, blockkit.Line(blockkit.Styled(blockkit.Risk(a.Severity), blockkit.Bold)))
		}
	}
	text = append(text, says(a, d)...)
	text = append(text, changes(a, d)...)
	call, known := c.Calls[a.Call.ID]
	list, incomplete := blockkit.DrawArguments(blockkit.Arguments(call.Args, a.WriteOnly), d)
	text = append(text, exactly(a, known, len(list), incomplete))
	var below [][]blockkit.Para
	if said := c.cutWords(r, incomplete); said != "" && status == approvals.Pending {
		below = append(below, []blockkit.Para{blockkit.Line(blockkit.Styled(said, blockkit.Bold))})
	}
	below = append(below, c.verdict(r, d, now)...)
	below = append(below, blockkit.Nonempty(between)...)
	// Slack folds a long block away behind "Show more". What people must read
	// before they press a button is never in one block with a long text.
	var blocks []slack.Block
	for room := c.room(); len(list) > 0; room-- {
		first := list
		if room > 1 {
			first = list[:1]
		}
		list = list[len(first):]
		text = append(text, blockkit.BoxParas(first)...)
		if len(list) > 0 || len(first) > 1 || !blockkit.NeverFolded(first[0].Text) {
			blocks, text = append(blocks, blockkit.RichText(text...)), nil
		}
	}
	for _, groups := range [][][]blockkit.Para{c.amendments(a, d), below} {
		more := c.gathered(text, groups)
		if blocks = append(blocks, more...); len(more) > 0 {
			text = nil
		}
	}
	if status == approvals.Pending && known {
		buttons := c.buttons(r.calls[0], a, !incomplete)
		if r.several() {
			buttons = c.groupButtons(r)
		}
		blocks = append(blocks, c.footer(r), buttons)
	}
	return blocks
}

// cutWords says where people can read and sign a call that a row does not show
// whole.
func (c Card) cutWords(r row, incomplete bool) string {
	switch {
	case r.several() && len(r.a.Requirement.Quorums) > 0 && !c.onSheet(r):
		return "These are too long to approve together. Review one by one opens each."
	case !incomplete:
		return ""
	case len(r.a.Requirement.Quorums) == 0:
		return "Not everything is shown. View full shows the rest."
	}
	return "Not everything is shown. Approve opens all of it, and you approve there."
}

// exactly leads to the exact arguments: they, and not the summary, are what
// people approve.
func exactly(a approvals.Approval, known bool, arguments int, incomplete bool) blockkit.Para {
	tool := blockkit.Styled(blockkit.Brief(a.Call.Name, 80), blockkit.Code)
	switch {
	case !known:
		return blockkit.Line(tool, blockkit.Styled(": the arguments can't be shown, so this can't be approved here.", blockkit.Bold))
	case arguments == 0:
		return blockkit.Line(tool, blockkit.Say(" without arguments."))
	case incomplete:
		return blockkit.Line(tool, blockkit.Say(" with these arguments, which are cut here:"))
	}
	return blockkit.Line(tool, blockkit.Say(" with exactly these arguments:"))
}

// gathered puts groups of paragraphs in blocks of their own, or in one if there
// is no room for that; first is in front of them.
func (c Card) gathered(first []blockkit.Para, groups [][]blockkit.Para) []slack.Block {
	var blocks []slack.Block
	text := first
	for i, g := range groups {
		text = append(text, g...)
		if len(text) > 0 && (c.roomy() || i == len(groups)-1) {
			blocks, text = append(blocks, blockkit.RichText(text...)), nil
		}
	}
	return blocks
}

// roomy is a card of few rows, on which what is said of each may take blocks
// of its own.
func (c Card) roomy() bool { return len(c.rows) <= 4 }

// room is how many blocks the arguments of one row may take.
func (c Card) room() int {
	const header = 6 // the headline, who asks with two quotations, Approve all, and what is not posted
	others := 5      // amendments, verdict, fine print, buttons, divider
	if c.roomy() {
		others += AmendmentsShown + 2 // each amendment, what is incomplete, why, progress, reasons
	}
	n := len(c.rows)
	return min(10, max(1, (50-header-n*others)/n))
}

// textLength counts the characters of every text in the blocks.
func textLength(blocks []slack.Block) int {
	raw, err := json.Marshal(blocks)
	if err != nil {
		return maxCardText + 1
	}
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
