package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

func screenOf(p inbound.Interaction) ref.Screen {
	if p.View.Callback != ref.CallbackReview || p.View.Type != string(slack.VTModal) {
		return ref.Screen{}
	}
	return ref.Screen{View: p.View.ID, Hash: p.View.Hash, Memo: p.View.Metadata}
}

// showOrOpen shows a card in the review that the person is in, or opens one.
func (s *reviews) showOrOpen(ctx context.Context, p inbound.Interaction, value string) (respond.Subject, error) {
	if screenOf(p).View != "" {
		return s.show(ctx, p.Who(), screenOf(p), value)
	}
	return s.openReview(ctx, p.Who(), p.Trigger, value)
}

// openReview opens the card of a batch in a modal, for those who may read it.
func (s *reviews) openReview(ctx context.Context, who directory.Who, trigger inbound.Trigger, value string) (respond.Subject, error) {
	at := respond.Subject{User: who.User, Now: s.cfg.Now()}
	r, err := ref.ParseCard(value)
	if err != nil {
		return at, err
	}
	view, b, err := s.review(ctx, who, r, "", blockkit.Mrkdwn{})
	at.Batch = b
	if err != nil {
		return at, err
	}
	return at, s.respond.Open(ctx, trigger, view)
}

// review draws the modal. words go on top of it.
func (s *reviews) review(ctx context.Context, who directory.Who, r ref.Card, urgency string, words blockkit.Mrkdwn) (slack.ModalViewRequest, approvals.Batch, error) {
	none := slack.ModalViewRequest{}
	b, err := s.cfg.Desk.Batch(ctx, r.Batch)
	if err != nil {
		return none, b, err
	}
	reader, err := s.people.MayRead(ctx, who, b)
	if err != nil {
		return none, b, err
	}
	r.Part = min(r.Part, max(0, card.Parts(b)-1))
	shown, err := s.cards.Load(ctx, reader, b, r.Part)
	if err != nil {
		return none, b, err
	}
	shown.Place, shown.Viewer = card.PlaceReview, approvals.UserID(who.User)
	shown.Link = s.placements.ThreadLink(ctx, b, r.Part*card.CallsPerCard, shown.Viewer)
	shown.Last = s.noneWaits(ctx, who, r)
	if urgency == "" {
		urgency = card.OpenCalls{Batch: b, Calls: card.PendingOf(b, r.Part)}.Urgency()
	}
	memo, err := json.Marshal(ref.Review{At: r.String(), Urgency: urgency})
	if err != nil {
		return none, b, fmt.Errorf("write the review: %w", err)
	}
	return card.ReviewView(shown, s.cfg.Now(), words, string(memo)), b, nil
}

// nextLimit is how long a review waits for what else there is. It is opened
// within the time of a trigger.
const nextLimit = 500 * time.Millisecond

// noneWaits reports whether it is known that no other card waits for the person.
// If it cannot be looked up in a moment, it is not known.
func (s *reviews) noneWaits(ctx context.Context, who directory.Who, but ref.Card) bool {
	ctx, cancel := context.WithTimeout(ctx, nextLimit)
	defer cancel()
	viewer, err := s.people.Viewer(ctx, who.User, who.Team)
	if err != nil {
		return false
	}
	none, err := directory.NoneWaits(ctx, s.cfg.Lists, viewer, but, s.cfg.Now())
	return err == nil && none
}

// next shows the next card that waits for the person, in the same modal.
func (s *reviews) next(ctx context.Context, p inbound.Interaction) error {
	memo := ref.ReadReview(p.View.Metadata)
	now, err := ref.ParseCard(memo.At)
	if err != nil {
		return err
	}
	return s.respond.After(ctx, s.respond.Screens, "show the next card", func(ctx context.Context) error {
		who, err := s.people.Viewer(ctx, p.User, p.UserTeam)
		if err != nil {
			return s.redraw(ctx, p.Who(), screenOf(p), now, memo.Urgency, blockkit.Ours(nextUnknown), err)
		}
		to, found, looked, err := directory.NextAfter(ctx, s.cfg.Lists, who, memo.Urgency, now, s.cfg.Now())
		switch {
		case err != nil:
			return s.redraw(ctx, p.Who(), screenOf(p), now, memo.Urgency, blockkit.Ours(nextUnknown), err)
		case !found:
			return s.redraw(ctx, p.Who(), screenOf(p), now, memo.Urgency, directory.NoneElse(who.Unsure, looked), nil)
		}
		return s.redraw(ctx, p.Who(), screenOf(p), to.FirstCard(), to.Urgency(), blockkit.Mrkdwn{}, nil)
	})
}

// show turns to another card of the same batch.
func (s *reviews) show(ctx context.Context, who directory.Who, on ref.Screen, value string) (respond.Subject, error) {
	at := respond.Subject{User: who.User, Now: s.cfg.Now()}
	r, err := ref.ParseCard(value)
	if err != nil {
		return at, err
	}
	return at, s.respond.After(ctx, s.respond.Screens, "turn to another card", func(ctx context.Context) error {
		return s.redraw(ctx, who, on, r, "", blockkit.Mrkdwn{}, nil)
	})
}

// reviewAgain redraws a review once the request is answered, with words on
// top if there are any. What it shows is read after everything that was
// committed before.
func (s *reviews) reviewAgain(ctx context.Context, who directory.Who, on ref.Screen, words blockkit.Mrkdwn) error {
	memo := ref.ReadReview(on.Memo)
	if on.View == "" {
		return nil
	}
	r, err := ref.ParseCard(memo.At)
	if err != nil {
		return err
	}
	return s.respond.After(ctx, s.respond.Screens, "draw a review anew", func(ctx context.Context) error {
		return s.redraw(ctx, who, on, r, memo.Urgency, words, nil)
	})
}

// redraw replaces what the modal shows. If something else was drawn there since
// the person pressed, both may have been drawn before the other was committed:
// it is loaded once more, and drawn over that. cause is returned if it worked.
func (s *reviews) redraw(ctx context.Context, who directory.Who, on ref.Screen, r ref.Card, urgency string, words blockkit.Mrkdwn, cause error) error {
	for _, hash := range []string{on.Hash, ""} {
		view, b, err := s.review(ctx, who, r, urgency, words)
		if err != nil {
			said, known := respond.Explain(err, respond.Subject{User: who.User, Batch: b, Now: s.cfg.Now()})
			if !known {
				said, cause = blockkit.Ours(reviewNotLoaded), err
			}
			view = blockkit.Notice(said)
		}
		err = s.api.UpdateView(ctx, on.View, hash, view)
		if slackapi.HasCode(err, "hash_conflict") && hash != "" {
			continue
		}
		if slackapi.HasCode(err, "not_found", "view_not_found") {
			return cause // the person has closed it
		}
		return errors.Join(cause, err)
	}
	return cause
}

// answer tells the person who pressed a button: on top of the review if that is
// where they are, in a modal if they are at their Home or in another form, and
// to them alone if it was in a message.
func (s *Handler) answer(ctx context.Context, p inbound.Interaction, words blockkit.Mrkdwn) error {
	if on := screenOf(p); on.View != "" {
		return s.reviews.reviewAgain(ctx, p.Who(), on, words)
	}
	if p.View.ID == "" {
		return s.respond.Tell(ctx, p.Place(), words)
	}
	err := s.respond.Open(ctx, p.Trigger, blockkit.Notice(words))
	if errors.Is(err, respond.ErrForm) {
		s.cfg.Log.WarnContext(ctx, "person not told", slog.String("user", p.User), slog.Any("err", err))
	}
	return err
}

// followed does what follows from a press that worked: in a review, it shows
// what was decided.
func (s *Handler) followed(ctx context.Context, p inbound.Interaction, decided bool) {
	if !decided {
		return
	}
	if err := s.reviews.reviewAgain(ctx, p.Who(), screenOf(p), blockkit.Mrkdwn{}); err != nil {
		s.cfg.Log.WarnContext(ctx, "review left as it is", slog.Any("err", err)) // what was decided counts
	}
}

// redrawReview shows what a form has changed in the review under it, unless the form has
// taken the place of the review.
func (s *reviews) redrawReview(ctx context.Context, p inbound.Interaction) {
	under := readOrigin(p).Review
	if under.View == p.View.ID {
		return
	}
	if err := s.reviewAgain(ctx, p.Who(), under, blockkit.Mrkdwn{}); err != nil {
		s.cfg.Log.WarnContext(ctx, "review left as it is", slog.Any("err", err)) // what was decided counts
	}
}
