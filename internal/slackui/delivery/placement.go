package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// cardsPerBatch is how many messages one batch gets in one place. Review shows the
// parts that have none.
const cardsPerBatch = 2

// placement returns how the batch is shown at the target. It decides that for the
// parts for which it is not decided yet.
func (c *Cards) placement(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch, t target) (Placement, error) {
	r, known := h.Body.placement(t)
	fresh := slices.DeleteFunc(t.wants(b), func(part int) bool { return slices.Contains(r.Asked, part) })
	if !known {
		for _, a := range h.Body.Anchors { // posted by a version without a budget
			if t.has(a) && !slices.Contains(r.Parts, a.Part) {
				r.Parts = append(r.Parts, a.Part)
			}
		}
		if len(r.Parts) > 0 {
			return r, nil
		}
	}
	if r.Digest != "" || len(fresh) == 0 {
		return r, nil
	}
	var names []string
	for _, part := range fresh[:min(len(fresh), cardsPerBatch-min(len(r.Parts), cardsPerBatch))] {
		names = append(names, fmt.Sprintf("%s %s %d", b.ID, r.Place, part))
	}
	granted, err := c.Budget.take(ctx, t.channel, names...)
	if err != nil {
		return r, err
	}
	r.Parts, r.Asked = append(slices.Clone(r.Parts), fresh[:granted]...), append(slices.Clone(r.Asked), fresh...)
	if len(r.Parts) == 0 {
		if r.Digest, err = c.Digests.current(ctx, t.channel); err != nil {
			return r, err
		}
	}
	return r, h.Save(ctx, func(n *anchors) { n.setPlacement(r) })
}

// at updates and posts the cards of the batch at the target.
func (c *Cards) at(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch, t target) error {
	r, _ := h.Body.placement(t)
	if !t.left && (!t.further || !b.Settled()) {
		var err error
		if r, err = c.placement(ctx, h, b, t); err != nil {
			return err
		}
	}
	for part := range card.Parts(b) {
		if err := c.part(ctx, h, b, part, t, r); err != nil {
			return err
		}
	}
	return nil
}

// inDigests makes the digests that list the batch show its state. A digest that has
// to wait does not delay the others.
func (c *Cards) inDigests(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch) error {
	var late soonest
	for _, r := range h.Body.Placements {
		if r.Digest == "" || (r.Place == card.PlaceEscalation && h.Body.missed(r.Channel)) || slices.Contains(h.Body.Unreached, r.Direct) {
			continue
		}
		err := c.Digests.show(ctx, r.Digest, r.Channel, b)
		code, shut := slackapi.CodeOf(err, append(slices.Clone(slackapi.Closed), slackapi.Unreachable...)...)
		if shut && r.Place != card.PlaceThread {
			c.Log.WarnContext(ctx, "digest not shown", slog.String("batch", string(b.ID)), slog.String("channel", r.Channel), slog.Any("err", err))
			err = h.Save(ctx, func(n *anchors) {
				if r.Direct != "" {
					n.unreached(r.Direct)
					return
				}
				n.miss(card.Missed{Channel: r.Channel, Code: code})
			})
		}
		late.add(err)
	}
	return late.err()
}
