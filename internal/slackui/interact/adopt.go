package interact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/delivery"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// adopt records a card that has no record: a copy that was posted when Slack's answer
// to the first post was lost. From then on it is drawn like the others. A card with a
// record that shows an older state is drawn again, as its drawing may have been given up.
// If adopt fails, the next click on the message tries again.
//
// A message is drawn over only if Slack says that it was posted as a card of
// this batch, and only after a click of someone who can decide the call.
// Of an ephemeral message, and of a modal, Slack says nothing.
func (s *verdicts) adopt(ctx context.Context, who directory.Who, on inbound.Marked, at respond.Subject, decided bool) {
	if at.OnCard {
		return
	}
	channel, ts := on.Channel, on.TS
	b, a := at.Batch, at.Approval
	shown, marked := cardIn(on.Metadata)
	if !marked || shown.Batch != b.ID || shown.Part >= card.Parts(b) || a.Call.ID == "" {
		return
	}
	version := b.Version
	if decided { // so the cards that have a record are due
		version = 0
	}
	if !blockkit.IDForm.MatchString(channel) || !blockkit.ValidTS(ts) || s.placements.Shows(ctx, b.ID, version, channel, ts) {
		return
	}
	adopt := func(ctx context.Context) error {
		may, err := s.mayDecide(ctx, who, b, a)
		if err != nil || !may {
			return err
		}
		found := delivery.Anchor{Part: shown.Part, Channel: channel, TS: ts}
		elsewhere := channel != b.Channel
		if elsewhere && strings.HasPrefix(channel, "D") {
			found.Direct = approvals.UserID(who.User)
		} else {
			// Also a channel that an escalation has left: what is there is redacted.
			// Old batches don't say where they were asked.
			found.Further = elsewhere && (b.Channel != "" || slices.Contains(b.Channels(), channel))
		}
		return s.placements.Adopt(ctx, b.ID, found)
	}
	err := s.respond.After(ctx, s.respond.Copies, "adopt a copy of a card", adopt)
	if errors.Is(err, respond.ErrNoPlace) {
		err = adopt(ctx) // the person waits for it
	}
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "copy of a card left as it is", slog.Any("err", err))
	}
}

// mayDecide reports whether the person may approve or deny the call, or might
// have, had it not ended.
func (s *verdicts) mayDecide(ctx context.Context, who directory.Who, b approvals.Batch, a approvals.Approval) (bool, error) {
	b = b.Reopened(a)
	principal, err := s.people.Principal(ctx, who.User, who.Team, directory.SoughtFor(b))
	if err != nil {
		return false, fmt.Errorf("ask whether %s may decide: %w", who.User, err)
	}
	may := func(v approvals.Verdict) bool {
		return directory.Viewer{Principal: principal}.MayDecide(b, a, v, s.cfg.Now()) == nil
	}
	return may(a.Yes()) || may(a.No()), nil
}
