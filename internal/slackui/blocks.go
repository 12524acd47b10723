package slackui

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
)

const (
	callsPerCard = 8
	maxCardText  = 12_000
)

// A Card is one message about a batch: its Part-th eight calls.
type Card struct {
	Batch approvals.Batch
	Part  int                                         // from 0
	Calls map[approvals.ToolCallID]approvals.ToolCall // with the arguments that the digests are of
	// Earlier are the calls as they were before and between amendments.
	Earlier map[approvals.Digest]approvals.ToolCall
	// Tools are what is known of the tools, by name. A call of one that is not
	// in it is approved with a confirmation and cannot be edited.
	Tools map[string]agentrun.Spec
	// Place is where it is shown, if not in the thread; Link leads back there,
	// if it is known.
	Place  Place
	Link   string
	Person approvals.UserID // whose direct messages it is in
	Missed []Missed
	// Others are the parts of the batch that are posted nowhere there, if this
	// card is the one to say so.
	Others []int
	// Sheets is whether several calls can be decided together.
	Sheets bool

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

// Missed is a channel in which an escalation was to show the card and could
// not, by Slack's word for why.
type Missed struct{ Channel, Code string }

// parts returns how many messages the batch needs.
func parts(b approvals.Batch) int {
	return (len(b.Approvals) + callsPerCard - 1) / callsPerCard
}

// Render returns what the card shows. It is pure, and stays within Slack's
// limits by cutting values shorter, never by leaving out that it did.
func Render(c Card, now time.Time) []slack.Block {
	blocks, _ := c.fit(now)
	return blocks
}

// fit returns the card with as much detail as there is room for.
func (c Card) fit(now time.Time) ([]slack.Block, detail) {
	c.rows = c.gather(now)
	for _, d := range details {
		if blocks := c.render(d, now); textLength(blocks) <= maxCardText {
			return blocks, d
		}
	}
	least := details[len(details)-1]
	return c.render(least, now), least
}

// shows reports whether the card shows everything of the call: only then is it
// approved by the button on the card.
func (c Card) shows(a approvals.Approval, now time.Time) bool {
	call, known := c.Calls[a.Call.ID]
	if !known {
		return false
	}
	_, d := c.fit(now)
	return d.shows(a, call)
}

// shows reports whether everything of the call is shown with this detail.
// Values that nobody may read are shown as their length, everywhere.
func (d detail) shows(a approvals.Approval, call approvals.ToolCall) bool {
	_, incomplete := draw(arguments(call.Args, a.WriteOnly), d)
	return !incomplete
}

// A detail says how much of each thing is shown.
type detail struct {
	value int  // runes of one argument
	keys  int  // arguments of one call
	words int  // runes of a reason, for asking or for denying
	uncut bool // keys are shown whole, however long
}

// A value of more runes than the first detail shows would be folded away by
// Slack, and its end with it.
var details = []detail{
	{value: 600, keys: 60, words: 1000},
	{value: 600, keys: 60, words: 400},
	{value: 300, keys: 20, words: 250},
	{value: 120, keys: 10, words: 150},
	{value: 60, keys: 5, words: 80},
}

func (c Card) calls() []approvals.Approval {
	from := min(c.Part*callsPerCard, len(c.Batch.Approvals))
	return c.Batch.Approvals[from:min(from+callsPerCard, len(c.Batch.Approvals))]
}

func (c Card) render(d detail, now time.Time) []slack.Block {
	blocks := []slack.Block{
		slack.NewHeaderBlock(literal(c.title(now))),
		richText(c.asker()...),
	}
	for i, r := range c.rows {
		if i > 0 {
			blocks = append(blocks, slack.NewDividerBlock())
		}
		blocks = append(blocks, c.row(r, d, now)...)
	}
	if more := c.others(); more != nil {
		blocks = append(blocks, more)
	}
	return blocks
}

// title is what will happen, in a line.
func (c Card) title(now time.Time) string {
	calls := c.calls()
	if len(calls) == 1 {
		return brief(calls[0].Call.Name, 80) + " " + titles[shown(calls[0], now)]
	}
	by := map[approvals.Status]int{}
	for _, a := range calls {
		by[shown(a, now)]++
	}
	if open := by[approvals.Pending]; open == len(calls) {
		return count(open, "call") + " waiting for signatures"
	}
	var said []string
	for _, s := range []approvals.Status{approvals.Pending, approvals.Approved, approvals.Denied, approvals.Expired, approvals.Withdrawn} {
		if by[s] > 0 {
			said = append(said, fmt.Sprintf("%d %s", by[s], counted[s]))
		}
	}
	return fmt.Sprintf("%d calls: %s", len(calls), strings.Join(said, ", "))
}

var (
	titles = map[approvals.Status]string{
		approvals.Pending: "is waiting for a signature", approvals.Approved: "was approved",
		approvals.Denied: "was denied", approvals.Expired: "expired", approvals.Withdrawn: "was withdrawn",
	}
	counted = map[approvals.Status]string{
		approvals.Pending: "waiting", approvals.Approved: "approved",
		approvals.Denied: "denied", approvals.Expired: "expired", approvals.Withdrawn: "withdrawn",
	}
)

// shown is the status as people see it: past its deadline a call is expired,
// whether or not somebody has written that down yet.
func shown(a approvals.Approval, now time.Time) approvals.Status {
	deadline := a.Requirement.Deadline
	if a.Status == approvals.Pending && !deadline.IsZero() && !now.Before(deadline) {
		return approvals.Expired
	}
	return a.Status
}

func (c Card) asker() []para {
	spans := []span{named(c.Batch.Requester), say(" asked the agent "), styled(brief(c.Batch.Agent, 60), bold), say(". ")}
	n := len(c.Batch.Approvals)
	switch {
	case n > callsPerCard:
		from := c.Part * callsPerCard
		spans = append(spans, say(fmt.Sprintf("Calls %d to %d of %d. It goes on when all %d are decided.", from+1, from+len(c.calls()), n, n)))
	case n > 1:
		spans = append(spans, say(fmt.Sprintf("It goes on when all %d calls are decided.", n)))
	default:
		spans = append(spans, say("It has stopped until this is decided."))
	}
	if c.Batch.Settled() {
		spans[len(spans)-1] = say("Everything is settled, and the agent goes on in " + c.itsThread() + ".")
	}
	if ext := len(c.Batch.Calls); ext > 0 && !c.Batch.Settled() {
		spans = append(spans, say(fmt.Sprintf(" It also waits for %s that run elsewhere.", count(ext, "call"))))
	}
	paras := append([]para{line(spans...)}, c.participants()...)
	paras = append(paras, c.whence()...)
	for _, m := range c.Missed {
		paras = append(paras, line(say("It was to be shown in "), grouped(m.Channel), say(" too, but "+whyMissed(m.Code)+". Ask the people there to come here.")))
	}
	return paras
}

// whence says where it was asked, outside of its thread.
func (c Card) whence() []para {
	why := ""
	switch c.Place {
	case PlaceThread:
		return nil
	case PlaceEscalation:
		why = ", and is shown here too because it was not settled in time"
	case PlaceDirect:
		why = ", and is shown to you because you can sign it"
		if c.Person != "" && !slices.ContainsFunc(c.calls(), func(a approvals.Approval) bool {
			return a.Status == approvals.Pending && !bars(c.Batch, a, c.Person)
		}) {
			why = ", and was shown to you when you could sign it"
		}
	case PlaceReview:
	}
	spans := []span{say("It was asked in "), grouped(c.Batch.Channel), say(why + ".")}
	if strings.HasPrefix(c.Batch.Channel, "D") {
		spans = []span{say("It was asked in a direct message" + why + ".")}
	}
	if c.Link != "" {
		spans = append(spans, say(" "), slack.NewRichTextSectionLinkElement(c.Link, "Open the thread", nil))
	}
	return []para{line(spans...)}
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
		return "that channel is archived"
	case "restricted_action":
		return "the app may not post there"
	}
	return "the app is not in that channel"
}

// row draws one call, or several that are the same.
func (c Card) row(r row, d detail, now time.Time) []slack.Block {
	var text []para
	r, between := c.apart(r)
	a := r.a
	if len(c.Batch.Approvals) > 1 {
		text = append(text, c.which(r))
	}
	call, known := c.Calls[a.Call.ID]
	if !known {
		text = append(text, line(styled("The arguments cannot be shown, so this cannot be signed here.", bold)))
	}
	list, incomplete := draw(arguments(call.Args, a.WriteOnly), d)
	if known && len(list) == 0 {
		text = append(text, line(styled("No arguments.", italic)))
	}
	status := shown(a, now)
	var below [][]para
	if said := c.cutWords(r, incomplete); said != "" && status == approvals.Pending {
		below = append(below, []para{line(styled(said, bold))})
	}
	below = append(below, c.verdict(a, status, d)...)
	below = append(below, nonempty(between)...)
	// Slack folds a long block away behind "Show more": what must be seen
	// before a button is pressed stands with nothing long in one block.
	var blocks []slack.Block
	for room := c.room(); len(list) > 0; room-- {
		first := list
		if room > 1 {
			first = list[:1]
		}
		list = list[len(first):]
		text = append(text, boxes(first)...)
		if len(list) > 0 || len(first) > 1 || !short(first[0].text) {
			blocks, text = append(blocks, richText(text...)), nil
		}
	}
	for _, groups := range [][][]para{c.amendments(a, d), below} {
		more := c.gathered(text, groups)
		if blocks = append(blocks, more...); len(more) > 0 {
			text = nil
		}
	}
	if status == approvals.Pending && known {
		buttons := c.buttons(r.calls[0], a, !incomplete)
		if r.several() {
			buttons = c.together(r)
		}
		blocks = append(blocks, c.fine(r), buttons)
	}
	return blocks
}

// cutWords says where what is missing of a row can be read, and where it is
// signed then.
func (c Card) cutWords(r row, incomplete bool) string {
	switch {
	case r.several() && len(r.a.Requirement.Quorums) > 0 && !c.onSheet(r):
		return "These are too long to be approved together: Review one by one opens each."
	case !incomplete:
		return ""
	case len(r.a.Requirement.Quorums) == 0:
		return "Not everything is shown. View full shows the rest."
	}
	return "Not everything is shown. Approve opens all of it, and you sign there."
}

// gathered puts groups of paragraphs in blocks of their own, or in one if there
// is no room for that; first is in front of them.
func (c Card) gathered(first []para, groups [][]para) []slack.Block {
	var blocks []slack.Block
	text := first
	for i, g := range groups {
		text = append(text, g...)
		if len(text) > 0 && (c.roomy() || i == len(groups)-1) {
			blocks, text = append(blocks, richText(text...)), nil
		}
	}
	return blocks
}

// roomy is a card of few rows, on which what is said of each may take blocks
// of its own.
func (c Card) roomy() bool { return len(c.rows) <= 4 }

// room is how many blocks the arguments of one row may take.
func (c Card) room() int {
	const header = 2
	others := 5 // amendments, verdict, fine print, buttons, divider
	if c.roomy() {
		others += amendmentsShown + 2 // each amendment, what is incomplete, why, progress, reasons
	}
	n := len(c.rows)
	return min(10, (50-header-n*others)/n)
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

// sentence is the card for notifications and for those who cannot see blocks.
func (c Card) sentence(now time.Time) string {
	return escape(fmt.Sprintf("%s. Asked of the agent %s.", c.title(now), brief(c.Batch.Agent, 60)))
}
