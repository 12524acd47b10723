package card

import (
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/slack-go/slack"
)

// Message is the card as a message.
func (c Card) Message(now time.Time) blockkit.Message {
	return blockkit.Message{
		Text:   c.sentence(now),
		Blocks: Render(c, now),
		Marker: &slack.SlackMetadata{EventType: ref.MarkerType, EventPayload: map[string]any{
			"batch": string(c.Batch.ID), "part": c.Part,
		}},
	}
}

// Revoked replaces a copy of the card that its reader may not read any more. It
// has no arguments and no buttons.
func (c Card) Revoked() blockkit.Message {
	const said = "You no longer need to look at this request"
	who := c.Batch.Requester
	return blockkit.Message{
		Text: blockkit.Escape(said + "."),
		Blocks: []slack.Block{blockkit.RichText(blockkit.Line(blockkit.Styled(said, blockkit.Bold),
			blockkit.Say(": it was changed, or you are no longer one of those who can approve it. Ask "), blockkit.PersonSpan(who), blockkit.Say(" if you have questions.")))},
	}
}

// unposted counts the calls that have no card in this place, and leads to the
// first open one. It is nil if there are none.
func (c Card) unposted() slack.Block {
	calls, open, first := 0, 0, -1
	for i, a := range c.Batch.Approvals {
		if !slices.Contains(c.Unposted, i/CallsPerCard) {
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
	said := blockkit.Ours("*%s of this request* %s no card here", blockkit.Counted(calls, "more call"), blockkit.Plural(calls, "has", "have"))
	if open == 0 {
		return blockkit.Section(blockkit.Ours("%s, and %s already decided.", said, blockkit.Plural(calls, "is", "are")))
	}
	button := blockkit.Button(ref.ActionReview.ID(first), ref.Card{Batch: c.Batch.ID, Part: first}.String(), "Review the others",
		"Review the others: "+blockkit.Count(open, "call")+" of this request")
	said = blockkit.Ours("%s; %s of them %s.", said, blockkit.Num(open), blockkit.Plural(open, "waits", "wait"))
	return slack.NewSectionBlock(said.Object(), nil, slack.NewAccessory(button))
}
