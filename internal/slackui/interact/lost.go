package interact

import (
	"context"
	"errors"
	"log/slog"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/inbound"
)

// lost takes the buttons off a card whose batch is not in the store: nobody can
// decide there, and it must not look as if they could. It is called after a
// press that ended with cause. Only a message that Slack says was posted as a
// card is drawn over, and only when the store says that its batch is not there.
func (s *verdicts) lost(ctx context.Context, on inbound.Marked, cause error) {
	channel, ts := on.Channel, on.TS
	card, marked := cardIn(on.Metadata)
	if !errors.Is(cause, approvals.ErrNotFound) || !marked || !blockkit.IDForm.MatchString(channel) || !blockkit.ValidTS(ts) {
		return
	}
	if _, err := s.cfg.Desk.Batch(ctx, card.Batch); !errors.Is(err, approvals.ErrNotFound) {
		return // the call is gone, or the answer
	}
	s.cfg.Log.WarnContext(ctx, "a card was pressed whose batch is not in the store", slog.String("batch", blockkit.Brief(string(card.Batch), 128)))
	err := s.respond.After(ctx, s.respond.Copies, "take the buttons off a card", func(ctx context.Context) error {
		return s.api.Update(ctx, channel, ts, lostCard())
	})
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "card of a lost batch left as it is", slog.Any("err", err))
	}
}

// lostCard is what such a card says. What became of the calls is not known: the
// journal went with the batch.
func lostCard() blockkit.Message {
	return blockkit.Message{
		Text: blockkit.Escape(lostHead + "."),
		Blocks: []slack.Block{blockkit.RichText(blockkit.Line(blockkit.Styled(lostHead, blockkit.Bold),
			blockkit.Say(lostRest)))},
	}
}
