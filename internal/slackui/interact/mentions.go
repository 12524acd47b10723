package interact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// Event does what an event asks for.
func (s *Handler) Event(ctx context.Context, e inbound.Event) error {
	switch {
	case e.Home != nil:
		return s.homeTabs.opensHome(ctx, approvals.UserID(e.Home.User))
	case e.Change != nil:
		return s.homeTabs.changed(ctx, *e.Change)
	case e.Message != nil && e.Message.Mention:
		return s.listener.mentioned(ctx, e, mention{Message: *e.Message})
	case e.Message != nil:
		return s.listener.heard(ctx, e, mention{Message: *e.Message})
	}
	return nil
}

// A mention is a message, and how it came to us.
type mention struct {
	inbound.Message
	manner manner
}

func (s *listener) mentioned(ctx context.Context, e inbound.Event, m mention) error {
	if err := s.people.Admit(ctx, m.User, m.UserTeam); err != nil {
		return s.turnAway(ctx, m, err)
	}
	bot, err := s.botOf(ctx, e)
	if err != nil || m.User == bot {
		return err
	}
	text := spoken(m.Text, bot)
	switch {
	case text == "" && m.manner == overheard:
		return nil
	case text == "" && m.ChannelType == direct:
		return s.tellWriter(ctx, m, blockkit.Ours(mentionOnlyFiles))
	case text == "":
		return s.tellWriter(ctx, m, blockkit.Ours(mentionEmpty))
	}
	agent := s.cfg.AgentIn(m.Channel)
	if s.cfg.Agent == "" && len(s.cfg.Agents) == 0 {
		return s.tellWriter(ctx, m, blockkit.Ours(mentionElsewhere))
	}
	if agent == "" && m.ChannelType == direct {
		return s.tellWriter(ctx, m, blockkit.Ours(mentionNoDirect))
	}
	if agent == "" {
		return s.tellWriter(ctx, m, blockkit.Ours(mentionNoAgent))
	}
	if err := s.mayAsk(ctx, agent, m); err != nil {
		return s.turnAway(ctx, m, err)
	}
	run, err := s.cfg.Runner.Mention(ctx, agentrun.Mention{
		Event:     m.event(),
		Origin:    m.origin(e.Team),
		Agent:     agent,
		Requester: approvals.UserID(m.User),
		Text:      text,
	})
	if errors.Is(err, agentrun.ErrQueueFull) {
		return s.tellWriter(ctx, m, blockkit.Ours(mentionTooMany, blockkit.Num(agentrun.MaxQueue)))
	}
	if errors.Is(err, agentrun.ErrThreadClosed) {
		return s.tellWriter(ctx, m, blockkit.Ours(mentionEnded))
	}
	if waits, ok := errors.AsType[*agentrun.PendingError](err); ok {
		return s.busy(ctx, m, waits.Batch)
	}
	if err != nil {
		return fmt.Errorf("commit mention: %w", err)
	}
	s.cfg.Log.InfoContext(ctx, "mention taken", slog.String("run", string(run.ID)), slog.String("user", m.User))
	return nil
}

// botOf is the user id of the bot that the event is for.
func (s *listener) botOf(ctx context.Context, e inbound.Event) (string, error) {
	if e.Bot != "" {
		return e.Bot, nil
	}
	self, err := s.api.Whoami(ctx)
	if err != nil {
		return "", err
	}
	return self.UserID, nil
}

// mayAsk refuses those who may not start the agent. If a group cannot
// be looked up, nobody may; Slack delivers the mention again.
func (s *listener) mayAsk(ctx context.Context, agent string, m mention) error {
	from, some := s.cfg.MayAsk[agent]
	if !some || slices.Contains(from.Users, approvals.UserID(m.User)) {
		return nil
	}
	p, err := s.people.Principal(ctx, m.User, m.UserTeam, directory.Sought{Groups: from.Groups})
	if err != nil {
		return err
	}
	if len(p.Groups) == 0 {
		return &directory.NotAllowedError{Agent: agent, From: from}
	}
	return nil
}

// turnAway tells the person why the agent does not answer them. It returns an error
// that may pass, so that Slack delivers the mention again.
func (s *listener) turnAway(ctx context.Context, m mention, err error) error {
	words, known := respond.Explain(err, respond.Subject{})
	if !known || respond.IsTryAgain(err) {
		return fmt.Errorf("look up who asks: %w", err)
	}
	if m.manner == overheard {
		return nil
	}
	return s.tellWriter(ctx, m, words)
}

// spoken is what the person wrote: without the mention of the bot, and with
// Slack's escaping undone once.
func spoken(text, bot string) string {
	for {
		before, rest, ok := strings.Cut(text, "<@"+bot)
		if !ok {
			break
		}
		label, after, closed := strings.Cut(rest, ">")
		if !closed || (label != "" && label[0] != '|') {
			break // another id that begins like ours
		}
		text = before + after
	}
	return strings.TrimSpace(blockkit.Unescape(text))
}
