package card

import (
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// ReviewView is a card in a modal: the blocks of the message, words above them
// if there are any, and buttons that lead to other cards. memo is the private
// metadata of the view.
func ReviewView(c Card, now time.Time, words blockkit.Mrkdwn, memo string) slack.ModalViewRequest {
	var blocks []slack.Block
	if !words.IsZero() {
		blocks = append(blocks, blockkit.Section(blockkit.Ours("*Note:* %s", words)), slack.NewDividerBlock())
	}
	blocks = append(blocks, Render(c, now)...)
	if turn := c.cardButtons(); turn != nil {
		blocks = append(blocks, turn)
	}
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: ref.CallbackReview, PrivateMetadata: memo,
		Title: blockkit.Literal("Review"), Close: blockkit.Literal("Close"),
		Blocks: slack.Blocks{BlockSet: blocks},
	}
}

// partOf says which calls of the batch a card has; call is that word.
func partOf(b approvals.Batch, call string, part int) string {
	n := len(b.Approvals)
	first, last := part*CallsPerCard+1, min(n, (part+1)*CallsPerCard)
	if first == last {
		return fmt.Sprintf("%s %d of %d", call, last, n)
	}
	return fmt.Sprintf("%ss %d to %d of %d", call, first, last, n)
}

// cardButtons are the buttons that lead to other cards, or nil if there is none.
func (c Card) cardButtons() slack.Block {
	elements := blockkit.Turns(c.Part, Parts(c.Batch), "Calls before these", "Calls after these", func(to int, label string) *blockkit.ButtonElement {
		return blockkit.Button(ref.ActionReview.ID(to), ref.Card{Batch: c.Batch.ID, Part: to}.String(), label, label+": "+partOf(c.Batch, "call", to))
	})
	if !c.Last {
		elements = append(elements, blockkit.Button(string(ref.ActionNext), "next", sayNext, sayNextSpoken))
	}
	if len(elements) == 0 {
		return nil
	}
	return slack.NewActionBlock("", elements...)
}
