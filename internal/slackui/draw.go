package slackui

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// surface names Slack in an [agentrun.Origin].
const surface = "slack"

// Cards draws batches. It holds nothing; any number of replicas may draw.
type Cards struct {
	desk  desk
	runs  runs
	api   *api
	memos memos
	now   func() time.Time
}

// An Anchor is one message in which a part of a batch is drawn.
type Anchor struct {
	Part    int    `json:"part"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	Thread  string `json:"thread,omitempty"`
	Version int64  `json:"version"` // of the batch that it shows
	Copy    bool   `json:"copy,omitempty"`
}

// anchors is the memo of the cards of a batch.
type anchors struct {
	Anchors []Anchor `json:"anchors"`
}

func (a *anchors) find(channel, ts string) int {
	return slices.IndexFunc(a.Anchors, func(x Anchor) bool { return x.Channel == channel && x.TS == ts })
}

func (a *anchors) put(x Anchor) {
	if i := a.find(x.Channel, x.TS); i >= 0 {
		a.Anchors[i].Version = max(a.Anchors[i].Version, x.Version)
		return
	}
	a.Anchors = append(a.Anchors, x)
}

func (a *anchors) drop(x Anchor) {
	a.Anchors = slices.DeleteFunc(a.Anchors, func(y Anchor) bool { return y.Channel == x.Channel && y.TS == x.TS })
}

func (c *Cards) ledger() ledger[anchors] {
	return ledger[anchors]{memos: c.memos, surface: "cards", now: c.now}
}

// Reconcile makes the messages of the batch show its stored state. It is what
// the due index calls. A [*LaterError] says when to look again; any other
// error is a failure.
func (c *Cards) Reconcile(ctx context.Context, id string) error {
	h, err := c.ledger().claim(ctx, id)
	if err != nil {
		return err
	}
	version, err := c.draw(ctx, h, approvals.BatchID(id))
	if err != nil {
		return h.abandon(ctx, err)
	}
	return h.release(ctx, version)
}

// draw runs under the claim, so that what it loads is not older than anything
// that was drawn before.
func (c *Cards) draw(ctx context.Context, h *held[anchors], id approvals.BatchID) (int64, error) {
	b, err := c.desk.Batch(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("load batch %s: %w", id, err)
	}
	run, err := c.runs.Run(ctx, b.Run)
	if err != nil {
		return 0, fmt.Errorf("load run %s: %w", b.Run, err)
	}
	if run.Origin.Surface != surface {
		return b.Version, nil
	}
	for {
		for part := range parts(b) {
			if err := c.part(ctx, h, b, part, run.Origin); err != nil {
				return 0, err
			}
		}
		// A copy may have been found while this one drew.
		if !slices.ContainsFunc(h.body.Anchors, func(a Anchor) bool { return a.Version < b.Version && a.Part < parts(b) }) {
			return b.Version, nil
		}
	}
}

func (c *Cards) part(ctx context.Context, h *held[anchors], b approvals.Batch, part int, o agentrun.Origin) error {
	var here, old []Anchor
	for _, a := range h.body.Anchors {
		if a.Part != part {
			continue
		}
		here = append(here, a)
		if a.Version < b.Version {
			old = append(old, a)
		}
	}
	if len(here) > 0 && len(old) == 0 {
		return nil
	}
	card, err := c.load(ctx, b, part)
	if err != nil {
		return err
	}
	m := card.message(c.now())
	for _, a := range old {
		err := c.api.update(ctx, a.Channel, a.TS, m)
		switch {
		case err == nil:
			a.Version = b.Version
			err = h.save(ctx, func(n *anchors) { n.put(a) })
		case hasCode(err, gone...):
			here = slices.DeleteFunc(here, func(x Anchor) bool { return x == a })
			err = h.save(ctx, func(n *anchors) { n.drop(a) })
		}
		if err != nil {
			return fmt.Errorf("redraw part %d of batch %s: %w", part, b.ID, err)
		}
	}
	if len(here) > 0 || (len(old) > 0 && b.Settled()) {
		return nil // somebody removed the last card of a settled batch: leave it
	}
	ts, err := c.api.post(ctx, o.Channel, o.Root, m)
	if err != nil {
		return fmt.Errorf("post part %d of batch %s in %s: %w", part, b.ID, o.Channel, err)
	}
	posted := Anchor{Part: part, Channel: o.Channel, TS: ts, Thread: o.Root, Version: b.Version}
	if err := h.save(ctx, func(n *anchors) { n.put(posted) }); err != nil {
		return fmt.Errorf("remember part %d of batch %s: %w", part, b.ID, err)
	}
	return nil
}

// gone are Slack's words for a message that can never be updated again.
var gone = []string{"message_not_found", "cant_update_message", "edit_window_closed", "channel_not_found"}

// load collects what a card needs: the arguments are those of the digests.
func (c *Cards) load(ctx context.Context, b approvals.Batch, part int) (Card, error) {
	card := Card{Batch: b, Part: part, Calls: map[approvals.ToolCallID]approvals.ToolCall{}}
	for _, a := range card.calls() {
		call, err := c.desk.Call(ctx, b, a.Call.ID)
		if err != nil {
			return Card{}, fmt.Errorf("load call %s of batch %s: %w", a.Call.ID, b.ID, err)
		}
		card.Calls[a.Call.ID] = call
	}
	return card, nil
}

func (c Card) message(now time.Time) message {
	return message{
		text:   c.sentence(now),
		blocks: Render(c, now),
		marker: &slack.SlackMetadata{EventType: "countersign_batch", EventPayload: map[string]any{
			"batch": string(c.Batch.ID), "part": c.Part,
		}},
	}
}

// knows reports whether the message is one of the batch's cards. A memo that
// cannot be read says nothing against it.
func (c *Cards) knows(ctx context.Context, id approvals.BatchID, channel, ts string) bool {
	n, _, err := c.ledger().load(ctx, string(id))
	return err != nil || n.Body.find(channel, ts) >= 0
}

// adopt takes a message into care in which a click just happened: a copy that
// was posted when the answer to the first attempt was lost.
func (c *Cards) adopt(ctx context.Context, id approvals.BatchID, part int, channel, ts string) error {
	return c.ledger().edit(ctx, string(id), func(a *anchors) {
		a.put(Anchor{Part: part, Channel: channel, TS: ts, Copy: true})
	})
}

// anchor returns where the part of the batch with the call is drawn.
func (c *Cards) anchor(ctx context.Context, b approvals.Batch, call int) (Anchor, bool) {
	n, _, err := c.ledger().load(ctx, string(b.ID))
	if err != nil {
		return Anchor{}, false
	}
	for _, a := range n.Body.Anchors {
		if a.Part == call/callsPerCard {
			return a, true
		}
	}
	return Anchor{}, false
}
