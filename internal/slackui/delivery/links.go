package delivery

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
)

// Link returns the address of the card of this call, or nothing if there is none.
func (c *Cards) Link(ctx context.Context, b approvals.Batch, call int) string {
	at, drawn := c.Anchor(ctx, b, call)
	if !drawn {
		return ""
	}
	return c.Api.Permalink(ctx, at.Channel, at.TS, at.Thread)
}

// Placed sets what of the card depends on its place as it is in this message.
func (c *Cards) Placed(ctx context.Context, card *card.Card, channel, ts string) error {
	n, _, err := c.notes().Load(ctx, string(card.Batch.ID))
	if err != nil {
		return fmt.Errorf("look for the card of batch %s: %w", card.Batch.ID, err)
	}
	card.Missed = n.Body.Missed
	i := n.Body.find(channel, ts)
	if i < 0 {
		return nil
	}
	x := n.Body.Anchors[i]
	t := target{channel: channel, further: x.Further, direct: x.Direct}
	card.Place, card.Person = t.place(), x.Direct
	if r, known := n.Body.placement(t); known {
		card.Unposted = r.others(card.Part, t.wants(card.Batch))
	}
	return nil
}
