package interact

import (
	"context"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/delivery"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// openDigest opens, of what a digest lists, the oldest card that waits for the
// person.
func (s *reviews) openDigest(ctx context.Context, who directory.Who, trigger inbound.Trigger, value string) (respond.Subject, error) {
	at := respond.Subject{User: who.User, Now: s.cfg.Now()}
	id, err := delivery.ParseDigest(value)
	if err != nil {
		return at, err
	}
	n, _, err := s.digests.Notes().Load(ctx, id)
	if err != nil {
		return at, err
	}
	r, words, found := s.oldest(ctx, who, n.Body)
	if !found {
		return at, s.respond.Open(ctx, trigger, blockkit.Notice(blockkit.Ours(allDecided)))
	}
	view, b, err := s.review(ctx, who, r, "", words)
	at.Batch = b
	if err != nil {
		return at, err
	}
	return at, s.respond.Open(ctx, trigger, view)
}

// oldest is the oldest card of the digest that waits for the person, else the
// oldest of all that waits, with words that say so.
func (s *reviews) oldest(ctx context.Context, person directory.Who, d delivery.Digest) (ref.Card, blockkit.Mrkdwn, bool) {
	ids := d.ByAge()
	if len(ids) == 0 {
		return ref.Card{}, blockkit.Mrkdwn{}, false
	}
	first := ref.Card{Batch: ids[0]}
	who, err := s.people.Viewer(ctx, person.User, person.Team)
	if err != nil {
		return first, blockkit.Mrkdwn{}, true // the card says who it waits for
	}
	if piles, _, err := directory.Waits(ctx, s.cfg.Lists, who, "", s.cfg.Now()); err == nil {
		mine := map[approvals.BatchID]card.OpenCalls{}
		for _, x := range piles {
			mine[x.Batch.ID] = x
		}
		for _, id := range ids {
			if x, ok := mine[id]; ok {
				return x.FirstCard(), blockkit.Mrkdwn{}, true
			}
		}
	}
	// The lists were read only so far.
	for _, id := range ids[:min(card.DigestTries, len(ids))] {
		b, err := s.cfg.Desk.Batch(ctx, id)
		if err != nil {
			continue
		}
		if x := who.Helpful(b, s.cfg.Now()); len(x.Calls) > 0 {
			return x.FirstCard(), blockkit.Mrkdwn{}, true
		}
	}
	return first, card.NoneWaitsFor, true
}
