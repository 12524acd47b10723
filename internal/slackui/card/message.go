package card

import (
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// Message is the card as a message.
func (c Card) Message(now time.Time) blockkit.Message {
	drawn := c.draw(now)
	return blockkit.Message{
		Text:   drawn.sentence(),
		Blocks: drawn.blocks,
		Whole:  c.Waits() && !drawn.cut,
		Marker: &slack.SlackMetadata{EventType: ref.MarkerType, EventPayload: map[string]any{
			"batch": string(c.Batch.ID), "part": c.Part,
		}},
	}
}

// Revoked replaces a copy of the card that its reader may not read any more. It
// has no arguments and no buttons.
func (c Card) Revoked() blockkit.Message {
	who := c.Batch.Requester
	return blockkit.Message{
		Text: blockkit.Escape(sayGone + "."),
		Blocks: []slack.Block{blockkit.RichText(blockkit.Line(blockkit.Styled(sayGone, blockkit.Bold),
			blockkit.Say(sayGoneWhy), blockkit.PersonSpan(who), blockkit.Say(sayGoneAsk)))},
	}
}
