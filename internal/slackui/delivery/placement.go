package delivery

import (
	"context"
	"errors"
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
	var late slackapi.Soonest
	for _, r := range h.Body.Placements {
		if !h.Body.inDigest(r) {
			continue
		}
		err := c.inDigest(ctx, h, b, r)
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
		late.Add(err)
	}
	return late.Err()
}

// inDigest makes the digest of a placement show the state of the batch. If that digest
// became full before it had the batch, the batch goes into the next one.
func (c *Cards) inDigest(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch, r Placement) error {
	for range memo.Attempts {
		err := c.Digests.show(ctx, r.Digest, r.Channel, b)
		if !errors.Is(err, errDigestFull) {
			return err
		}
		if r.Digest, err = c.Digests.current(ctx, r.Channel); err != nil {
			return err
		}
		if err := h.Save(ctx, func(n *anchors) { n.setPlacement(r); n.Listed = false }); err != nil {
			return fmt.Errorf("list batch %s in %s: %w", b.ID, r.Digest, err)
		}
	}
	return lostRace(errDigestFull)
}

// restMustWait is mustWait for a batch of which only what needs lookups and digests is left.
func (c *Cards) restMustWait(ctx context.Context, b approvals.Batch, body *anchors) error {
	var late slackapi.Soonest
	if !body.Sought.IsZero() {
		limit := b.OpenedAt.Add(lookupLimit)
		if body.Sought.Before(limit) && !c.Now().Before(limit) {
			return nil // it is to be said that this is not known
		}
		_, err := c.asked(ctx, body, b, false)
		if _, later := errors.AsType[*slackapi.LaterError](err); !later {
			return nil
		}
		late.Add(err)
	}
	for _, r := range body.Placements {
		if !body.inDigest(r) {
			continue
		}
		n, err := c.Digests.look(ctx, r.Digest)
		if err != nil || n.Body.lacks(b) {
			return err
		}
		shown, err := c.Digests.shown(n, b.ID)
		if err == nil && !shown {
			return nil
		}
		late.Add(err)
	}
	return late.Err()
}
