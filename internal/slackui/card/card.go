package card

import (
	"slices"
	"time"

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
	// Fulfillers are the agents that may give the results of external calls.
	Fulfillers blockkit.Fulfillers
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
}

// Place is where a card is shown.
type Place string

// The places.
const (
	PlaceThread     Place = ""
	PlaceEscalation Place = "escalation" // the channel of an escalation
	PlaceDirect     Place = "direct"     // a direct message to someone who can approve
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
	return c.draw(now).blocks
}

// Shows reports whether the card shows the whole call. Only then does the button
// on the card approve it.
func (c Card) Shows(a approvals.Approval, now time.Time) bool {
	call, known := c.Calls[a.Call.ID]
	if !known {
		return false
	}
	return c.draw(now).detail.Shows(a, call)
}

// Details are the amounts that a card shows, from the most to the least. Slack
// would fold away a value that is longer than the first allows, or has more lines.
var Details = []blockkit.Detail{
	{Value: 600, Lines: 20, Keys: 60, Words: 1000},
	{Value: 600, Lines: 20, Keys: 60, Words: 400},
	{Value: 300, Lines: 10, Keys: 20, Words: 250},
	{Value: 120, Lines: 6, Keys: 10, Words: 150},
	{Value: 60, Lines: 4, Keys: 5, Words: 80},
}

// OnCard are the calls of this card.
func (c Card) OnCard() []approvals.Approval {
	from := min(c.Part*CallsPerCard, len(c.Batch.Approvals))
	return c.Batch.Approvals[from:min(from+CallsPerCard, len(c.Batch.Approvals))]
}

// Waits reports whether a call on the card waits for people.
func (c Card) Waits() bool {
	return slices.ContainsFunc(c.OnCard(), func(a approvals.Approval) bool { return a.Status == approvals.Pending })
}
