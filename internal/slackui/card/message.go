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
