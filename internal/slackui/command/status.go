package command

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// Health is what `status` asks of the rest of the bot. What is nil is left out.
type Health struct {
	Store   func(ctx context.Context) error        // whether it answers
	Looking func() bool                            // whether the reconcilers look
	Parked  func(ctx context.Context) (int, error) // work that was given up
	Policy  func() string                          // the version of the policy in force
}

const statusPatience = time.Second

// status says whether the bot is well, and how much waits.
func (s *Handler) status(ctx context.Context, c inbound.Command) inbound.Reply {
	said := s.wellness(ctx)
	said = append(said, s.waitingWords(ctx, c)...)
	return inbound.Ephemeral(blockkit.Join(said, "\n"))
}

func (s *Handler) wellness(ctx context.Context) []blockkit.Mrkdwn {
	h := s.Cfg.Health
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	var ill []blockkit.Mrkdwn
	if h.Store != nil && h.Store(ctx) != nil {
		ill = append(ill, blockkit.Ours(statusNoStore))
	}
	if h.Looking != nil && !h.Looking() {
		ill = append(ill, blockkit.Ours(statusStopped))
	}
	if s.Linked != nil && s.Linked() != nil {
		ill = append(ill, blockkit.Ours(statusNoSlack))
	}
	if s.People.API.Away() {
		ill = append(ill, blockkit.Ours(statusNoCalls))
	}
	if h.Parked != nil {
		n, err := h.Parked(ctx)
		switch {
		case err != nil:
			ill = append(ill, blockkit.Ours(statusUnchecked))
		case n > 0:
			ill = append(ill, blockkit.Ours(statusParked, blockkit.Counted(n, "piece")))
		}
	}
	head := blockkit.Ours(statusWell)
	if len(ill) > 0 {
		head = blockkit.Ours(statusProblem)
	}
	said := append([]blockkit.Mrkdwn{head}, ill...)
	if h.Policy != nil {
		if v := h.Policy(); v != "" && strings.Trim(v, "0123456789abcdef") == "" {
			said = append(said, blockkit.Ours(statusPolicy, blockkit.CodeWord(blockkit.Clip(v, 16))))
		}
	}
	return said
}

// waitingWords says how much waits for the person and in the channel.
func (s *Handler) waitingWords(ctx context.Context, c inbound.Command) []blockkit.Mrkdwn {
	who, err := s.People.Viewer(ctx, c.User, c.Team)
	if errors.Is(err, directory.ErrLookup) {
		words, _ := respond.Explain(err, respond.Subject{})
		return []blockkit.Mrkdwn{blockkit.Ours(statusUnknown, words)}
	}
	if err != nil {
		who = directory.Viewer{Principal: approvals.Principal{User: approvals.UserID(c.User)}} // may approve nothing
	}
	waits, err := directory.Counted(ctx, s.Cfg.Lists, who, c.Channel, s.Cfg.Now())
	if err != nil {
		return []blockkit.Mrkdwn{blockkit.Ours(statusUnknownStore)}
	}
	var most blockkit.Mrkdwn
	if waits.AtMost {
		most = blockkit.Ours("up to ")
	}
	mine := blockkit.Ours(statusMine, most, blockkit.Counted(waits.Mine, "request"))
	if !waits.Oldest.IsZero() {
		mine = blockkit.Ours(statusMineSince,
			most, blockkit.Counted(waits.Mine, "request"), blockkit.When(waits.Oldest), blockkit.CodeWord(c.Name))
	}
	said := []blockkit.Mrkdwn{mine, blockkit.Ours(statusHere, blockkit.Counted(waits.Channel, "request"))}
	if who.Unsure {
		said = append(said, blockkit.Ours(statusUnsure))
	}
	return said
}
