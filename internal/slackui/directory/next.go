package directory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// nextWindows is how many windows are read for the next card.
const nextWindows = 20

// NextAfter returns the next card with something for the person, in the order of
// urgency within each window. After the last card the first one is next. at is the
// urgency of the card before. It reads at most nextWindows windows: if they have no
// such card and there are more, looked says how many requests were read.
func NextAfter(ctx context.Context, from Lists, who Viewer, at string, skip ref.Card, now time.Time) (to card.OpenCalls, found bool, looked int, err error) {
	var cursor approvals.Cursor
	reached := at == ""
	for range nextWindows {
		batches, next, err := from.Inbox(ctx, who.keys, cursor, WindowSize)
		if err != nil {
			return card.OpenCalls{}, false, 0, err
		}
		behind := reached // all of this window is behind the card before
		if n := len(batches); n > 0 {
			reached = reached || card.OpenedIn(card.OpenCalls{Batch: batches[n-1]}.Urgency()) >= card.OpenedIn(at)
		}
		for _, p := range who.cards(batches, now) {
			if p.FirstCard() == skip {
				continue
			}
			if behind || reached && p.Urgency() > at {
				return p, true, 0, nil
			}
			if !found {
				to, found = p, true
			}
		}
		looked += len(batches)
		if cursor = next; next == "" {
			return to, found, 0, nil
		}
	}
	return to, found, looked, nil
}

// NoneWaits reports whether it is known that no other card waits for the person.
// It reads one window: where there are more, it is not known.
func NoneWaits(ctx context.Context, from Lists, who Viewer, but ref.Card, now time.Time) (bool, error) {
	batches, next, err := from.Inbox(ctx, who.keys, "", WindowSize)
	if err != nil {
		return false, err
	}
	other := slices.ContainsFunc(who.cards(batches, now), func(p card.OpenCalls) bool { return p.FirstCard() != but })
	return next == "" && !other && !who.Unsure, nil
}

// cards returns the cards of the batches that have something for the person, the
// most urgent first.
func (w Viewer) cards(batches []approvals.Batch, now time.Time) []card.OpenCalls {
	var all []card.OpenCalls
	for _, b := range batches {
		all = append(all, w.Helpful(b, now).Parts()...)
	}
	slices.SortFunc(all, func(a, b card.OpenCalls) int { return cmp.Compare(a.Urgency(), b.Urgency()) })
	return all
}

// NoneElse says that there is no next card for the person.
func NoneElse(unsure bool, looked int) blockkit.Mrkdwn {
	waits, doubt := blockkit.Ours("waits"), blockkit.Mrkdwn{}
	if unsure {
		waits = blockkit.Ours("is known to wait")
		doubt = blockkit.Ours(" Slack couldn't tell who is in some groups. Press the button again in a moment.")
	}
	if looked > 0 {
		return blockkit.Ours("Nothing else %s for you among the %s oldest requests. Newer ones weren't checked.%s", waits, blockkit.Num(looked), doubt)
	}
	return blockkit.Ours("Nothing else %s for you.%s", waits, doubt)
}
