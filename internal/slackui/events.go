package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// envelope is what we read of a delivery of the Events API. It is our own
// type: slack-go's rejects a whole event for one block that it does not know.
type envelope struct {
	Type           string `json:"type"`
	Challenge      string `json:"challenge"`
	Team           string `json:"team_id"`
	ID             string `json:"event_id"`
	Authorizations []struct {
		Enterprise string `json:"enterprise_id"`
		User       string `json:"user_id"`
		Bot        bool   `json:"is_bot"`
	} `json:"authorizations"`
	Event json.RawMessage `json:"event"`
}

// of reports whether the event is for our installation, which one of an
// organisation has for all the workspaces of it.
func (e envelope) of(c Config) bool {
	enterprise := ""
	if len(e.Authorizations) > 0 {
		enterprise = e.Authorizations[0].Enterprise
	}
	return c.serves(e.Team, enterprise)
}

type mention struct {
	Subtype  string `json:"subtype"`
	User     string `json:"user"`
	Bot      string `json:"bot_id"`
	UserTeam string `json:"user_team"`
	Text     string `json:"text"`
	Channel  string `json:"channel"`
	TS       string `json:"ts"`
	Thread   string `json:"thread_ts"`

	ChannelType string `json:"channel_type"` // of a message event
	manner      manner
}

// events takes a delivery of the Events API. A repeated delivery of a message
// is known by the message where it is committed, not by Slack's retry headers.
func (s *Server) events(ctx context.Context, body []byte) (reply, error) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return reply{}, fmt.Errorf("%w: event: %w", errBody, err)
	}
	switch e.Type {
	case "url_verification":
		return reply{map[string]string{"challenge": e.Challenge}}, nil
	case "event_callback":
	default:
		s.cfg.Log.WarnContext(ctx, "delivery of an unknown type", slog.String("type", brief(e.Type, 64)))
		return reply{}, nil
	}
	var inner struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(e.Event, &inner); err != nil {
		return reply{}, fmt.Errorf("%w: inner event: %w", errBody, err)
	}
	if inner.Type == "app_home_opened" {
		return reply{}, s.opensHome(ctx, e)
	}
	if inner.Type != "app_mention" && inner.Type != "message" {
		return reply{}, s.changed(ctx, e, inner.Type)
	}
	var m mention
	if err := json.Unmarshal(e.Event, &m); err != nil {
		return reply{}, fmt.Errorf("%w: %s: %w", errBody, inner.Type, err)
	}
	if !e.of(s.cfg) {
		s.cfg.Log.WarnContext(ctx, "event of another workspace", slog.String("team", brief(e.Team, 64)))
		return reply{}, nil
	}
	if m.Bot != "" || m.User == "" || !slices.Contains(subtypes, m.Subtype) {
		return reply{}, nil // a bot's word, our own perhaps, is never a request
	}
	if e.ID == "" || !idForm.MatchString(m.User) || !idForm.MatchString(m.Channel) || !validTS(m.TS) || (m.Thread != "" && !validTS(m.Thread)) {
		return reply{}, fmt.Errorf("%w: a mention without id, user, channel or ts", errBody)
	}
	if inner.Type == "message" {
		return reply{}, s.heard(ctx, e, m)
	}
	return reply{}, s.mentioned(ctx, e, m)
}

func (s *Server) mentioned(ctx context.Context, e envelope, m mention) error {
	if err := s.people.admit(ctx, m.User, m.UserTeam); err != nil {
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
		return s.tellWriter(ctx, m, "Write what you need in words: nothing else of a message is read.")
	case text == "":
		return s.tellWriter(ctx, m, "Write what you need in the same message that mentions me.")
	}
	agent := s.agentIn(m.Channel)
	if agent == "" && m.ChannelType == direct {
		return s.tellWriter(ctx, m, "No agent answers direct messages. Mention me in a channel where one works; whoever runs Countersign knows them.")
	}
	if agent == "" {
		return s.tellWriter(ctx, m, "No agent works in this channel. Ask whoever runs Countersign, or mention me elsewhere.")
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
		return s.tellWriter(ctx, m, fmt.Sprintf("%d requests already wait in this thread, so this one was not taken. Ask again when some are done, or start a new thread.", agentrun.MaxQueue))
	}
	if errors.Is(err, agentrun.ErrThreadClosed) {
		return s.tellWriter(ctx, m, "This thread cannot go on, so nothing was started. To ask again, start a new thread: mention me in a message of its own.")
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

// botOf is the user id of the bot that the delivery is for.
func (s *Server) botOf(ctx context.Context, e envelope) (string, error) {
	for _, a := range e.Authorizations {
		if a.Bot && a.User != "" {
			return a.User, nil
		}
	}
	self, err := s.api.whoami(ctx)
	if err != nil {
		return "", err
	}
	return self.UserID, nil
}

// mayAsk refuses those who may not start the agent. A group that cannot be
// looked up lets nobody in; Slack delivers the mention again.
func (s *Server) mayAsk(ctx context.Context, agent string, m mention) error {
	from, some := s.cfg.MayAsk[agent]
	if !some || slices.Contains(from.Users, approvals.UserID(m.User)) {
		return nil
	}
	p, err := s.people.principal(ctx, m.User, m.UserTeam, sought{groups: from.Groups})
	if err != nil {
		return err
	}
	if len(p.Groups) == 0 {
		return &notAllowedError{agent: agent, from: from}
	}
	return nil
}

// turnAway tells the person why they are not heard. What may be otherwise in a
// moment is returned, so that Slack delivers the mention again.
func (s *Server) turnAway(ctx context.Context, m mention, err error) error {
	words, known := explain(err, about{})
	if !known || isTryAgain(err) {
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
	return strings.TrimSpace(unescape(text))
}
