package slackui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Health is what `status` asks of the rest of the bot. What is nil is left out.
type Health struct {
	Store   func(ctx context.Context) error        // whether it answers
	Looking func() bool                            // whether the reconcilers look
	Parked  func(ctx context.Context) (int, error) // work that was given up
	Policy  func() string                          // the version of the policy in force
}

const (
	statusLooks    = 1000
	statusPatience = time.Second
)

// status says whether the bot is well, and how much waits.
func (s *commander) status(ctx context.Context, c Command) reply {
	said := s.wellness(ctx)
	said = append(said, s.waitingWords(ctx, c)...)
	return ephemeral(strings.Join(said, "\n"))
}

func (s *commander) wellness(ctx context.Context) []string {
	h := s.cfg.Health
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	var ill []string
	if h.Store != nil && h.Store(ctx) != nil {
		ill = append(ill, "The store does not answer: nothing can be decided until it does.")
	}
	if h.Looking != nil && !h.Looking() {
		ill = append(ill, "The reconcilers of this process are not looking: cards and runs stand still until another one takes over.")
	}
	if s.linked != nil && s.linked() != nil {
		ill = append(ill, "No connection to Slack is open.")
	}
	if h.Parked != nil {
		n, err := h.Parked(ctx)
		switch {
		case err != nil:
			ill = append(ill, "It could not be looked up whether work was given up.")
		case n > 0:
			ill = append(ill, count(n, "piece")+" of work failed again and again and was given up: whoever runs Countersign must look (`bot admin parked`).")
		}
	}
	head := "*Countersign is well.*"
	if len(ill) > 0 {
		head = "*Countersign is not well.* Ask whoever runs it to look."
	}
	said := append([]string{head}, ill...)
	if h.Policy != nil {
		if v := h.Policy(); v != "" && strings.Trim(v, "0123456789abcdef") == "" {
			said = append(said, "The policy in force is version `"+clip(v, 16)+"`.")
		}
	}
	return said
}

// waitingWords says how much waits for the person and in the channel, as far as
// statusLooks batches tell.
func (s *commander) waitingWords(ctx context.Context, c Command) []string {
	who, err := s.people.seeker(ctx, c.User, c.Team)
	if errors.Is(err, errLookup) {
		words, _ := explain(err, about{})
		return []string{"What waits for you is not known now. " + words}
	}
	if err != nil {
		who = seeker{Principal: approvals.Principal{User: approvals.UserID(c.User)}} // may sign nothing
	}
	var mine, here int
	var oldest time.Time
	more, now := false, s.cfg.Now()
	keys := listKeys(listing{Scope: scopeAll}, who, c.Channel)
	err = eachListed(ctx, s.cfg.Lists, keys, statusLooks, func(b approvals.Batch) bool {
		for _, a := range b.Approvals {
			if shown(a, now) != approvals.Pending {
				continue
			}
			if shownIn(b, a, c.Channel) {
				here++
			}
			if b.Helps(a, who.Principal) {
				mine++
				if oldest.IsZero() || b.OpenedAt.Before(oldest) {
					oldest = b.OpenedAt
				}
			}
		}
		return true
	}, &more)
	if err != nil {
		return []string{"What waits for you is not known now: the store does not answer. Try again in a moment."}
	}
	least := ""
	if more {
		least = "at least "
	}
	said := []string{fmt.Sprintf("Waiting for you: %s%s.", least, count(mine, "call"))}
	if mine > 0 {
		said[0] = fmt.Sprintf("Waiting for you: %s%s, the oldest since %s. `%s list mine` shows them.", least, count(mine, "call"), when(oldest), c.Name)
	}
	said = append(said, fmt.Sprintf("Waiting in this channel: %s%s.", least, count(here, "call")))
	if who.unsure {
		said = append(said, "Slack did not say of every group who is in it, so there may be more.")
	}
	return said
}

// eachListed hands out the batches of these lists, the oldest first, until f
// wants no more or so many were read; more says that there are others.
func eachListed(ctx context.Context, from lists, keys []approvals.ListKey, most int, f func(approvals.Batch) bool, more *bool) error {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	var cursor approvals.Cursor
	for looked := 0; ; {
		batches, next, err := from.Inbox(ctx, keys, cursor, windowSize)
		if err != nil {
			return fmt.Errorf("read an inbox: %w", err)
		}
		for _, b := range batches {
			if !f(b) {
				*more = true
				return nil
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
		if looked += windowSize; looked >= most {
			*more = true
			return nil
		}
	}
}
