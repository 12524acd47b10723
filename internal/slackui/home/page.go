package home

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// draw publishes the Home of a person, with these pages or those that it shows.
// It claims the Home first, so that nothing older is drawn over it.
func (h *Homes) draw(ctx context.Context, user approvals.UserID, turn *card.Pages) error {
	l, id := h.Page(user)
	held, err := l.Claim(ctx, id)
	if err != nil {
		return err
	}
	return held.Draw(ctx, func(ctx context.Context, held *memo.Claim[homePage]) (int64, error) {
		return 0, h.show(ctx, held, user, turn)
	})
}

// show publishes the Home under the claim. If the claim is lost while this process stands
// still, Slack refuses the publication, because the hash has changed.
func (h *Homes) show(ctx context.Context, held *memo.Claim[homePage], user approvals.UserID, turn *card.Pages) error {
	begun := h.Now()
	if turn != nil {
		held.Body.Pages = *turn
	}
	hash, err := h.publish(ctx, user, held.Body, turn != nil)
	if slackapi.HasCode(err, "hash_conflict") { // what Slack has is not what we remember: read again, and replace it
		begun = h.Now()
		held.Body.Hash = ""
		hash, err = h.publish(ctx, user, held.Body, turn != nil)
	}
	if err != nil {
		return fmt.Errorf("draw the Home of %s: %w", user, err)
	}
	shown := homePage{Hash: hash, Pages: held.Body.Pages, Begun: begun}
	return held.Save(ctx, func(p *homePage) { *p = shown })
}

func (h *Homes) publish(ctx context.Context, user approvals.UserID, p homePage, awaited bool) (string, error) {
	v, err := h.gather(ctx, user, p.Pages, awaited)
	if err != nil {
		return "", err
	}
	return h.API.PublishView(ctx, string(user), p.Hash, awaited, card.HomeView(v))
}

// gather reads what the Home of a person shows. If the person waits for it, it
// leaves out what Slack cannot answer now.
func (h *Homes) gather(ctx context.Context, user approvals.UserID, at card.Pages, awaited bool) (card.Home, error) {
	now := h.Now()
	v := card.Home{Pages: at, Now: now, Several: h.Several}
	who, err := h.People.Viewer(ctx, string(user), "")
	if errors.Is(err, directory.ErrLookup) && awaited {
		who, err = h.People.Unknown(ctx, user), nil
	}
	if err != nil {
		return card.Home{}, err
	}
	v.Person, v.Unsure = who.User, who.Unsure
	piles, more, err := directory.Waits(ctx, h.Lists, who, at.Waiting.Cursor, now)
	if err != nil {
		return card.Home{}, err
	}
	v.Waiting = card.NewPage(piles, at.Waiting.Offset, card.WaitingRows)
	v.Waiting.Next = more
	asked, _, err := h.Lists.Inbox(ctx, []approvals.ListKey{approvals.AskedBy(who.User)}, "", directory.WindowSize)
	if err != nil {
		return card.Home{}, fmt.Errorf("read what %s asked for: %w", user, err)
	}
	decided, err := h.Lists.Decided(ctx, who.User, decidedShown)
	if err != nil {
		return card.Home{}, err
	}
	others, done := who.Involved(asked, decided, now)
	v.Others, v.Decided = card.NewPage(others, at.Others, card.OtherRows), card.NewPage(done, at.Decided, card.DecidedRows)
	if !v.Unsure { // Slack is not answering, and the person has waited for it once
		h.People.Summarize(ctx, directory.Who{User: string(who.User)}, slices.Concat(v.Waiting.Rows(), v.Others.Rows(), v.Decided.Rows()))
	}
	v.Away, v.IsAway = who.Away.Of(who.User, now)
	v.StandsFor = who.Away.DelegationsTo(who.User, now)
	return v, nil
}

// Soon draws a Home for a person who waits for it.
func (h *Homes) Soon(ctx context.Context, user approvals.UserID, turn card.Pages) error {
	for {
		err := h.draw(ctx, user, &turn)
		later, is := errors.AsType[*slackapi.LaterError](err)
		if !is || !errors.Is(err, memo.ErrBusy) {
			return err
		}
		wait := time.NewTimer(later.After)
		select {
		case <-ctx.Done():
			wait.Stop()
			return err
		case <-wait.C:
		}
	}
}
