package slackui

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// asking says who can still make a difference to a call of a batch.
type asking func(ctx context.Context, b approvals.Batch, call int, rungs []approvals.Rung) (audience, error)

// directly draws the batch in a direct message to each of those who can help
// with a call whose rule says so, and keeps these copies like all others: they
// stay right, whoever signs where. When more than [mostTold] people could help,
// only the cards in channels ask them. Who can help later, because an
// escalation or an earlier quorum brings it to them, gets theirs then.
func (c *Cards) directly(ctx context.Context, h *held[anchors], b approvals.Batch) error {
	targets, err := c.recipients(ctx, b)
	if err != nil {
		return err
	}
	for _, a := range h.body.Anchors {
		if a.Direct != "" {
			t := targets[a.Direct]
			t.channel, t.direct = a.Channel, a.Direct
			targets[a.Direct] = t
		}
	}
	var late soonest // the others need not wait for one
	for _, user := range slices.Sorted(maps.Keys(targets)) {
		late.add(c.toPerson(ctx, h, b, targets[user]))
	}
	return late.err()
}

// recipients are those who are asked by a message of their own now, and the
// parts of the batch that they can help with.
func (c *Cards) recipients(ctx context.Context, b approvals.Batch) (map[approvals.UserID]target, error) {
	targets := map[approvals.UserID]target{}
	for i, a := range b.Approvals {
		if !a.Requirement.Direct || shown(a, c.now()) != approvals.Pending || c.asked == nil {
			continue
		}
		who, err := c.asked(ctx, b, i, []approvals.Rung{{Kind: approvals.Remind}})
		if err != nil {
			return nil, err
		}
		if who.many {
			continue
		}
		for user := range who.who {
			t := targets[user]
			t.direct = user
			if part := i / callsPerCard; !slices.Contains(t.parts, part) {
				t.parts = append(t.parts, part)
			}
			targets[user] = t
		}
	}
	if len(targets) > mostTold {
		clear(targets)
	}
	return targets, nil
}

// toPerson draws the parts that a person has or needs. Who cannot be written to
// is not tried again.
func (c *Cards) toPerson(ctx context.Context, h *held[anchors], b approvals.Batch, t target) error {
	for part := range parts(b) {
		at := t
		at.left = !slices.Contains(t.parts, part)
		has := slices.ContainsFunc(h.body.Anchors, func(a Anchor) bool { return a.Part == part && at.has(a) })
		if (at.left && !has) || slices.Contains(h.body.Unreached, t.direct) {
			continue
		}
		var err error
		if at.channel = h.body.directly(at); at.channel == "" {
			at.channel, err = c.api.openDirect(ctx, string(t.direct))
		}
		if err == nil {
			var r Room
			if r, err = c.room(ctx, h, b, at); err == nil {
				err = c.part(ctx, h, b, part, at, r)
			}
		}
		if hasCode(err, unreachable...) {
			c.log.WarnContext(ctx, "somebody cannot be asked directly", slog.String("batch", string(b.ID)),
				slog.String("user", string(t.direct)), slog.Any("error", err))
			if err := h.save(ctx, func(n *anchors) { n.unreached(t.direct) }); err != nil {
				return fmt.Errorf("remember that %s cannot be asked: %w", t.direct, err)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *anchors) unreached(user approvals.UserID) {
	if !slices.Contains(a.Unreached, user) {
		a.Unreached = append(a.Unreached, user)
	}
}
