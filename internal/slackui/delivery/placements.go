package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/slack-go/slack"
)

// Placements tells where batches are shown: which messages are their cards, and
// which digests list them.
type Placements struct {
	Memos   memo.Store
	API     *slackapi.Client
	Digests *Digests
	Now     func() time.Time
	Lease   time.Duration // of a claim, see [memo.Notes]
}

func (p *Placements) notes() memo.Notes[anchors] {
	return memo.Notes[anchors]{Memos: p.Memos, Surface: "cards", Now: p.Now, Lease: p.Lease, Outdate: (*anchors).outdate, Due: "cards"}
}

// Key is the memo that says which messages show the batch.
func (p *Placements) Key(id approvals.BatchID) approvals.MemoKey {
	return approvals.MemoKey{ID: string(id), Surface: p.notes().Surface}
}

// Shows reports whether the message is one of the batch's cards, is kept up to date, and
// shows this version or a newer one. If the memo cannot be read, it returns true.
func (p *Placements) Shows(ctx context.Context, id approvals.BatchID, version int64, channel, ts string) bool {
	n, _, err := p.notes().Load(ctx, string(id))
	i := n.Body.find(channel, ts)
	return err != nil || i >= 0 && !n.Body.shut(n.Body.Anchors[i]) && n.Body.Anchors[i].Version >= version
}

// InThread reports whether a card of the batch is one of these messages, or is in a thread
// that begins with one.
func (p *Placements) InThread(ctx context.Context, id approvals.BatchID, roots []ref.Message) (bool, error) {
	n, _, err := p.notes().Load(ctx, string(id))
	return slices.ContainsFunc(n.Body.Anchors, func(a Anchor) bool {
		return slices.Contains(roots, ref.Message{Channel: a.Channel, TS: a.TS}) || slices.Contains(roots, ref.Message{Channel: a.Channel, TS: a.Thread})
	}), err
}

// ShowsWhole reports whether the message is a card that shows this version of the batch,
// with everything of the call. It is false where that is not noted, or cannot be read.
func (p *Placements) ShowsWhole(ctx context.Context, b approvals.Batch, call int, channel, ts string) bool {
	n, _, err := p.notes().Load(ctx, string(b.ID))
	i := n.Body.find(channel, ts)
	if err != nil || i < 0 {
		return false
	}
	x := n.Body.Anchors[i]
	return x.Whole && x.Version == b.Version && x.Part == call/card.CallsPerCard
}

// Adopt adds a message to the cards of the batch, if it is not among them: a copy that was
// posted although Slack's answer, or the claim of who posted it, was lost. The batch is due
// then, also if its drawing was given up, so that the message is drawn once Slack lets it be.
func (p *Placements) Adopt(ctx context.Context, id approvals.BatchID, x Anchor) error {
	return p.notes().EditDue(ctx, string(id), func(a *anchors) {
		x.Copy = true
		a.put(x)
	})
}

// Redraw makes the batch due so that every message that shows or lists it is redrawn,
// whatever the message shows now.
func (p *Placements) Redraw(ctx context.Context, id approvals.BatchID) error {
	n, _, err := p.notes().Load(ctx, string(id))
	if err != nil {
		return err
	}
	var problems []error
	for _, r := range n.Body.Placements {
		if r.Digest != "" {
			problems = append(problems, p.Digests.Notes().Redraw(ctx, r.Digest))
		}
	}
	return errors.Join(append(problems, p.notes().Redraw(ctx, string(id)))...) // it draws the digests, too
}

// AskAgain makes the batch due, so that it is worked out again who is asked directly. It is
// for when that changes though the batch does not.
func (p *Placements) AskAgain(ctx context.Context, id approvals.BatchID) error {
	l := p.notes()
	l.Outdate = func(a *anchors) { a.Waits = 0 }
	return l.Redraw(ctx, string(id))
}

// Anchor returns a message that shows the call, or another part of the batch if none
// does. It prefers the copy that the person has in their direct messages, then a message
// in the thread of the batch, and never returns one in the direct messages of somebody
// else. An empty person stands for those who are in the conversation of the batch.
func (p *Placements) Anchor(ctx context.Context, b approvals.Batch, call int, person approvals.UserID) (Anchor, bool) {
	n, _, err := p.notes().Load(ctx, string(b.ID))
	all := slices.DeleteFunc(n.Body.Anchors, func(a Anchor) bool { return person != "" && a.withSomebodyElse(b, person) })
	if err != nil || len(all) == 0 {
		return Anchor{}, false
	}
	if slices.ContainsFunc(all, func(a Anchor) bool { return a.Part == call/card.CallsPerCard }) {
		all = slices.DeleteFunc(all, func(a Anchor) bool { return a.Part != call/card.CallsPerCard })
	}
	if i := slices.IndexFunc(all, func(a Anchor) bool { return person != "" && a.Direct == person }); i >= 0 {
		return all[i], true
	}
	return all[max(0, slices.IndexFunc(all, func(a Anchor) bool { return !a.Further && a.Direct == "" }))], true
}

// Link returns the address of the card of this call for the person, see [Placements.Anchor].
func (p *Placements) Link(ctx context.Context, b approvals.Batch, call int, person approvals.UserID) string {
	at, drawn := p.Anchor(ctx, b, call, person)
	if !drawn {
		return ""
	}
	return p.API.Permalink(ctx, at.Channel, at.TS, at.Thread)
}

// ThreadLink returns the address of the card of this call in the thread of the batch, or
// nothing if that is in the direct messages of somebody else.
func (p *Placements) ThreadLink(ctx context.Context, b approvals.Batch, call int, person approvals.UserID) string {
	at, drawn := p.Anchor(ctx, b, call, "")
	if !drawn || at.withSomebodyElse(b, person) {
		return ""
	}
	return p.API.Permalink(ctx, at.Channel, at.TS, at.Thread)
}

// LeadTo links to the card of the first open call, if it is posted.
func (p *Placements) LeadTo(ctx context.Context, b approvals.Batch) []blockkit.Span {
	first := max(0, slices.IndexFunc(b.Approvals, func(a approvals.Approval) bool { return a.Status == approvals.Pending }))
	link := p.Link(ctx, b, first, "")
	if link == "" {
		return nil
	}
	return []blockkit.Span{blockkit.Say(" "), slack.NewRichTextSectionLinkElement(link, "Open the card", nil), blockkit.Say(".")}
}

// Placed sets what of the card depends on its place as it is in this message.
func (p *Placements) Placed(ctx context.Context, card *card.Card, channel, ts string) error {
	n, _, err := p.notes().Load(ctx, string(card.Batch.ID))
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

// Listing reports whether a digest lists the batch instead of a card in its thread,
// and links to the digest, if it is posted.
func (p *Placements) Listing(ctx context.Context, b approvals.Batch) (link []blockkit.Span, listed bool) {
	n, _, err := p.notes().Load(ctx, string(b.ID))
	if err != nil || n.Body.digest() == "" {
		return nil, false
	}
	return p.digestLink(ctx, n.Body.digest()), true
}

func (p *Placements) digestLink(ctx context.Context, id string) []blockkit.Span {
	at, posted := p.Digests.place(ctx, id)
	if !posted {
		return nil
	}
	link := p.API.Permalink(ctx, at.Channel, at.TS, "")
	if link == "" {
		return nil
	}
	return []blockkit.Span{blockkit.Say(" "), slack.NewRichTextSectionLinkElement(link, "Open the list", nil), blockkit.Say(".")}
}

// addToDigest puts the batch into the digest in a person's direct messages, in
// addition to the cards that they have of it.
func (p *Placements) addToDigest(ctx context.Context, b approvals.Batch, channel string, user approvals.UserID) error {
	t := target{channel: channel, direct: user}
	n, _, err := p.notes().Load(ctx, string(b.ID))
	if err != nil {
		return err
	}
	for range memo.Attempts {
		r, _ := n.Body.placement(t)
		if r.Digest != "" {
			if err := p.Digests.remind(ctx, r.Digest, channel, b); !errors.Is(err, errDigestFull) {
				return err
			}
		}
		id, err := p.Digests.current(ctx, channel)
		if err != nil {
			return err
		}
		err = p.notes().Edit(ctx, string(b.ID), func(a *anchors) {
			if x, _ := a.placement(t); x.Digest == r.Digest {
				x.Digest = id
				a.setPlacement(x)
			}
			n.Body = *a
		})
		if errors.Is(err, approvals.ErrConflict) {
			return lostRace(err)
		}
		if err != nil {
			return err
		}
	}
	return lostRace(errDigestFull)
}
