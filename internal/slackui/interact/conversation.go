package interact

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/reply"
)

// A manner is how a message reached the agent. It decides who gets an answer when
// the message starts nothing.
type manner string

const (
	spokenTo manner = "" // a mention, or a direct message
	// overheard is a reply in a thread of the agent that mentions nobody. Its author
	// gets no refusal: they may have spoken to someone else.
	overheard manner = "overheard"
	// echoed is the second delivery of a mention, as a message of its thread. It
	// counts once, and only the mention is answered.
	echoed manner = "echoed"
)

// direct is the type of a channel that only a person and the bot are in.
const direct = "im"

// heard takes a message event: all that is written to us in a direct message,
// and in a channel what answers in a thread that the agent is in already, if
// that agent overhears.
func (s *listener) heard(ctx context.Context, e inbound.Event, m mention) error {
	bot, err := s.botOf(ctx, e)
	if err != nil || m.User == bot {
		return err
	}
	if m.ChannelType == direct {
		m.manner = spokenTo
		return s.mentioned(ctx, e, m)
	}
	agent := s.cfg.AgentIn(m.Channel)
	if m.Thread == "" || m.Thread == m.TS || !s.cfg.Overhear[agent] {
		return nil
	}
	m.manner = overheard
	switch {
	case mentions(m.Text, bot):
		m.manner = echoed
	case called.MatchString(m.Text):
		return nil // the message is for someone else
	}
	thread, err := s.cfg.Runs.Thread(ctx, agentrun.ThreadIDOf(m.origin(e.Team)))
	if errors.Is(err, approvals.ErrNotFound) || err == nil && thread.ID == "" {
		return nil
	}
	if err != nil {
		return err
	}
	return s.mentioned(ctx, e, m)
}

// called is that a person, a group or everybody is called.
var called = regexp.MustCompile(`<(@[A-Z]|!subteam\^|!here|!channel|!everyone)`)

func mentions(text, bot string) bool {
	return strings.Contains(text, "<@"+bot+">") || strings.Contains(text, "<@"+bot+"|")
}

// origin is the thread that the message is in, or begins.
func (m mention) origin(team string) agentrun.Origin {
	root := m.Thread
	if root == "" {
		root = m.TS
	}
	return agentrun.Origin{Surface: ref.Surface, Team: team, Channel: m.Channel, Root: root}
}

// event names the message. Slack delivers it as a mention and as a message,
// each with an event id of its own.
func (m mention) event() string { return "message:" + m.Channel + ":" + m.TS }

// AgentIn is the agent that answers in a channel; it is empty if there is none.
func (c Config) AgentIn(channel string) string {
	if a, ok := c.Agents[channel]; ok {
		return a
	}
	return c.Agent
}

// tellWriter sends words to the author of the message, who alone sees them.
func (s *listener) tellWriter(ctx context.Context, m mention, words blockkit.Mrkdwn) error {
	if m.manner == echoed {
		return nil
	}
	return s.respond.Tell(ctx, inbound.Place{Channel: m.Channel, Thread: m.Thread, User: m.User}, words)
}

// busy tells the author of the message which calls must be decided before the agent
// takes another one.
func (s *listener) busy(ctx context.Context, m mention, b approvals.Batch) error {
	if m.manner == echoed {
		return nil
	}
	what, tools := reply.Pending(b)
	waits := what + " still " + blockkit.Verb(len(b.OpenCalls()), "waits")
	spans := append([]blockkit.Span{blockkit.Styled(notStarted, blockkit.Bold), blockkit.Say(busyThread + waits + ": ")}, tools...)
	return s.respond.After(ctx, s.respond.Words, "tell a person", func(ctx context.Context) error {
		spans = append(append(spans, blockkit.Say(".")), s.placements.LeadTo(ctx, b)...)
		return s.api.Ephemeral(ctx, m.Channel, m.Thread, m.User, blockkit.ParagraphMessage(notStartedBusy+waits+"."+writeAgain, append(spans, blockkit.Say(writeAgain))...))
	})
}
