package slackui

import (
	"context"
	"errors"
	"log/slog"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

// lost takes the buttons off a card whose batch is not in the store: nobody can
// decide there, and it must not look as if they could. It is called after a
// press that ended with cause. Only a message that Slack says was posted as a
// card is drawn over, and only when the store says that its batch is not there.
func (s *verdicts) lost(ctx context.Context, p Interaction, cause error) {
	channel, ts := p.Channel, p.MessageTS
	card, marked := cardIn(p.Message)
	if !errors.Is(cause, approvals.ErrNotFound) || !marked || !idForm.MatchString(channel) || !validTS(ts) {
		return
	}
	if _, err := s.cfg.Desk.Batch(ctx, card.batch); !errors.Is(err, approvals.ErrNotFound) {
		return // the call is gone, or the answer
	}
	s.cfg.Log.WarnContext(ctx, "a card was pressed whose batch is not in the store", slog.String("batch", brief(string(card.batch), 128)))
	err := s.respond.after(ctx, s.respond.copies, "take the buttons off a card", func(ctx context.Context) error {
		return s.api.update(ctx, channel, ts, lostCard())
	})
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "card of a lost batch left as it is", slog.Any("error", err))
	}
}

// lostCard is what such a card says. What became of the calls is not known: the
// journal went with the batch.
func lostCard() message {
	const said = "This request is not known to Countersign any more"
	return message{
		text: escape(said + "."),
		blocks: []slack.Block{richText(line(styled(said, bold),
			say(": its record is gone from the store. Nothing can be decided here. If it is still wanted, ask the agent again. "+
				"Whoever runs Countersign finds more in its log.")))},
	}
}
