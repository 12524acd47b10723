package slackui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// nextWindows is how many windows are read for the next card.
const nextWindows = 20

// nextAfter is the next card with something for the person, in the order of
// urgency within each window, and round from the end to the beginning. at is
// the urgency of the card before it. It reads at most nextWindows windows: if
// there is no such card in them and more behind, looked says how many requests
// were read, else it is zero.
func nextAfter(ctx context.Context, from lists, who seeker, at string, skip reviewing, now time.Time) (to pile, found bool, looked int, err error) {
	var cursor approvals.Cursor
	reached := at == ""
	for range nextWindows {
		batches, next, err := from.Inbox(ctx, who.keys, cursor, windowSize)
		if err != nil {
			return pile{}, false, 0, fmt.Errorf("read an inbox: %w", err)
		}
		behind := reached // all of this window is behind the card before
		if n := len(batches); n > 0 {
			reached = reached || opening(pile{batch: batches[n-1]}.urgency()) >= opening(at)
		}
		for _, p := range who.cards(batches, now) {
			if p.reviewing() == skip {
				continue
			}
			if behind || reached && p.urgency() > at {
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

// opening is the part of an urgency by which windows are in order.
func opening(urgency string) string {
	_, rest, _ := strings.Cut(urgency, " ")
	return rest[:max(0, strings.LastIndexByte(rest, ' '))]
}

// cards are those of the batches with something for the person, the most urgent
// first.
func (w seeker) cards(batches []approvals.Batch, now time.Time) []pile {
	var all []pile
	for _, b := range batches {
		all = append(all, w.helpful(b, now).parts()...)
	}
	slices.SortFunc(all, func(a, b pile) int { return cmp.Compare(a.urgency(), b.urgency()) })
	return all
}

// noneElse says that there is no next card for the person.
func noneElse(unsure bool, looked int) string {
	said := "Nothing else waits for you."
	if looked > 0 {
		said = "Nothing else waits for you among the " + number(looked) + " oldest requests that were looked at. There are more behind them."
	}
	if unsure {
		said = strings.Replace(said, "waits", "is known to wait", 1) + " Slack did not say of all groups who is in them. Press the button again in a moment."
	}
	return said
}
