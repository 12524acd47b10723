package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// cardsPerBatch is how many messages one batch gets in one place. Review shows the
// parts that have none.
const cardsPerBatch = 2

// A Placement is how a batch is shown in one place: these of its parts as cards, or
// a line in a digest. It depends on the budget of the place when the batch came, and
// is decided once, so that a batch in a digest is not posted later by itself.
type Placement struct {
	Place   card.Place       `json:"place,omitempty"`
	Channel string           `json:"channel"`
	Direct  approvals.UserID `json:"direct,omitempty"` // whose direct messages they are
	Parts   []int            `json:"parts,omitempty"`
	Asked   []int            `json:"asked,omitempty"` // the parts for which it is decided
	Digest  string           `json:"digest,omitempty"`
}

func (t target) placement() Placement {
	return Placement{Place: t.place(), Channel: t.channel, Direct: t.direct}
}

func (r Placement) same(x Placement) bool { return r.Place == x.Place && r.Channel == x.Channel }

func (a *anchors) placement(t target) (Placement, bool) {
	i := slices.IndexFunc(a.Placements, t.placement().same)
	if i < 0 {
		return t.placement(), false
	}
	return a.Placements[i], true
}

func (a *anchors) setPlacement(r Placement) {
	a.Placements = append(slices.DeleteFunc(a.Placements, r.same), r)
}

// digest is the digest that lists the batch instead of a card in its thread, or
// empty.
func (a *anchors) digest() string {
	i := slices.IndexFunc(a.Placements, func(r Placement) bool { return r.Digest != "" && r.Place == card.PlaceThread })
	if i < 0 {
		return ""
	}
	return a.Placements[i].Digest
}

// directly is the channel of direct messages to the person of the target, or empty
// if it is not known.
func (a *anchors) directly(t target) string {
	if t.channel != "" {
		return t.channel
	}
	if i := slices.IndexFunc(a.Placements, func(r Placement) bool { return r.Direct == t.direct }); i >= 0 {
		return a.Placements[i].Channel
	}
	return ""
}

// wants are the parts of the batch that belong to the target.
func (t target) wants(b approvals.Batch) []int {
	if t.direct != "" {
		return slices.Sorted(slices.Values(t.parts))
	}
	all := make([]int, card.Parts(b))
	for i := range all {
		all[i] = i
	}
	return all
}

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
			c.Log.WarnContext(ctx, "digest not shown", slog.String("batch", string(b.ID)), slog.String("channel", r.Channel), slog.Any("error", err))
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

// addToDigest puts the batch into the digest in a person's direct messages, in
// addition to the cards that they have of it.
func (c *Cards) addToDigest(ctx context.Context, b approvals.Batch, channel string, user approvals.UserID) error {
	t := target{channel: channel, direct: user}
	n, _, err := c.notes().Load(ctx, string(b.ID))
	if err != nil {
		return err
	}
	r, _ := n.Body.placement(t)
	if r.Digest == "" {
		id, err := c.Digests.current(ctx, channel)
		if err != nil {
			return err
		}
		err = c.notes().Edit(ctx, string(b.ID), func(a *anchors) {
			if r, _ = a.placement(t); r.Digest == "" {
				r.Digest = id
				a.setPlacement(r)
			}
		})
		if errors.Is(err, approvals.ErrConflict) {
			return lostRace(err)
		}
		if err != nil {
			return err
		}
	}
	return c.Digests.remind(ctx, r.Digest, channel, b)
}

// others are the parts of the batch that belong to the place and have no card there.
// The last card that is posted there names them.
func (r Placement) others(part int, wants []int) []int {
	if len(r.Parts) == 0 || part != slices.Max(r.Parts) {
		return nil
	}
	return slices.DeleteFunc(wants, func(p int) bool { return slices.Contains(r.Parts, p) })
}

// listing returns the message in the thread of a batch that a digest lists instead
// of a card.
func (c *Cards) listing(ctx context.Context, b approvals.Batch, text string) (blockkit.Message, bool) {
	n, _, err := c.notes().Load(ctx, string(b.ID))
	if err != nil || n.Body.digest() == "" {
		return blockkit.Message{}, false
	}
	text += " A list of waiting requests shows it instead of a card."
	spans := append([]blockkit.Span{blockkit.Say(text)}, c.digestLink(ctx, n.Body.digest())...)
	next := " " + continuesWhen(b)
	m := blockkit.ParagraphMessage(text+next, append(spans, blockkit.Say(next))...)
	m.Blocks = append(m.Blocks, slack.NewActionBlock("",
		blockkit.Button(ref.ActionReview.ID(0), ref.Card{Batch: b.ID}.String(), "Review", "Review the request of this thread")))
	return m, true
}

// linkToDigest links to the digest that lists the batch instead of a card in its
// thread, if one does.
func (c *Cards) linkToDigest(ctx context.Context, b approvals.Batch) []blockkit.Span {
	n, _, err := c.notes().Load(ctx, string(b.ID))
	if err != nil || n.Body.digest() == "" {
		return nil
	}
	return c.digestLink(ctx, n.Body.digest())
}

func (c *Cards) digestLink(ctx context.Context, id string) []blockkit.Span {
	at, posted := c.Digests.place(ctx, id)
	if !posted {
		return nil
	}
	link := c.Api.Permalink(ctx, at.Channel, at.TS, "")
	if link == "" {
		return nil
	}
	return []blockkit.Span{blockkit.Say(" "), slack.NewRichTextSectionLinkElement(link, "Open the list", nil), blockkit.Say(".")}
}
