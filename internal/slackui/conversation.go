package slackui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A manner is how a message came to us. It says who is told what when it is
// not taken.
type manner string

const (
	spokenTo manner = "" // somebody mentioned us, or wrote to us alone
	// overheard is a reply in a thread of ours that mentions nobody. Who may not
	// ask the agent is not told so: they may well have spoken to somebody else.
	overheard manner = "overheard"
	// echoed is a mention that comes once more, as a message that we overhear. It
	// counts once, and what is to be told is told of the mention.
	echoed manner = "echoed"
)

// direct is the type of a channel that only a person and the bot are in.
const direct = "im"

// heard takes a message event: all that is written to us in a direct message,
// and in a channel what answers in a thread that the agent is in already, if
// that agent overhears.
func (s *listener) heard(ctx context.Context, e Event, m mention) error {
	bot, err := s.botOf(ctx, e)
	if err != nil || m.User == bot {
		return err
	}
	if m.ChannelType == direct {
		m.manner = spokenTo
		return s.mentioned(ctx, e, m)
	}
	agent := s.agentIn(m.Channel)
	if m.Thread == "" || m.Thread == m.TS || !s.cfg.Overhear[agent] {
		return nil
	}
	m.manner = overheard
	switch {
	case mentions(m.Text, bot):
		m.manner = echoed
	case called.MatchString(m.Text):
		return nil // somebody else is spoken to
	}
	thread, err := s.cfg.Runs.Thread(ctx, agentrun.ThreadIDOf(m.origin(e.Team)))
	if errors.Is(err, approvals.ErrNotFound) || err == nil && thread.ID == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("load the thread of a reply: %w", err)
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
	return agentrun.Origin{Surface: surface, Team: team, Channel: m.Channel, Root: root}
}

// event names the message. Slack delivers it as a mention and as a message,
// each with an event id of its own.
func (m mention) event() string { return "message:" + m.Channel + ":" + m.TS }

// agentIn is the agent that answers in a channel, or nobody.
func (s *listener) agentIn(channel string) string {
	if a, ok := s.cfg.Agents[channel]; ok {
		return a
	}
	return s.cfg.Agent
}

// tellWriter tells whoever wrote the message something of ours, to them alone.
func (s *listener) tellWriter(ctx context.Context, m mention, words string) error {
	if m.manner == echoed {
		return nil
	}
	return s.respond.tell(ctx, place{channel: m.Channel, thread: m.Thread, user: m.User}, words)
}

// busy tells whoever wrote the message what must be settled before the agent
// takes another one.
func (s *listener) busy(ctx context.Context, m mention, b approvals.Batch) error {
	if m.manner == echoed {
		return nil
	}
	what, tools := pending(b)
	head := "Not taken: this agent takes nothing new while calls of its thread wait. "
	spans := append([]span{styled("Not taken: ", bold), say("this agent takes nothing new while calls of its thread wait. " + what + " still " + verb(pendingCalls(b), "waits") + ": ")}, tools...)
	tail := " Write again when everything is settled."
	return s.respond.after(ctx, s.respond.words, "tell a person", func(ctx context.Context) error {
		spans = append(append(spans, say(".")), s.cards.leadTo(ctx, b)...)
		return s.api.whisper(ctx, m.Channel, m.Thread, m.User, plainly(head+what+" still "+verb(pendingCalls(b), "waits")+"."+tail, append(spans, say(tail))...))
	})
}

// leadTo is a link to the card of what is pending, if it is posted.
func (c *Cards) leadTo(ctx context.Context, b approvals.Batch) []span {
	first := max(0, slices.IndexFunc(b.Approvals, func(a approvals.Approval) bool { return a.Status == approvals.Pending }))
	at, drawn := c.anchor(ctx, b, first)
	if !drawn {
		return nil
	}
	link := c.api.permalink(ctx, at.Channel, at.TS, at.Thread)
	if link == "" {
		return nil
	}
	return []span{say(" "), slack.NewRichTextSectionLinkElement(link, "Open the card", nil), say(".")}
}

// pendingCalls is how many calls of the batch are pending.
func pendingCalls(b approvals.Batch) int {
	n := 0
	for _, a := range b.Approvals {
		if a.Status == approvals.Pending {
			n++
		}
	}
	for _, c := range b.Calls {
		if c.Result == nil {
			n++
		}
	}
	return n
}

// pending says how many calls of the batch wait, and names their tools.
func pending(b approvals.Batch) (what string, tools []span) {
	var names []string
	for _, a := range b.Approvals {
		if a.Status == approvals.Pending {
			names = append(names, a.Call.Name)
		}
	}
	for _, c := range b.Calls {
		if c.Result == nil {
			names = append(names, c.Call.Name)
		}
	}
	return count(len(names), "call"), activity(names)
}

// An outcomeOf is what a newer message has made of a batch, by tools.
type outcomeOf struct{ ended, unknown, signed []string }

func superseded(b approvals.Batch) outcomeOf {
	var o outcomeOf
	for _, a := range b.Approvals {
		switch {
		case a.Superseded():
			o.ended = append(o.ended, a.Call.Name)
		case a.Status == approvals.Approved:
			o.signed = append(o.signed, a.Call.Name)
		}
	}
	for _, c := range b.Calls {
		if c.Superseded() {
			o.unknown = append(o.unknown, c.Call.Name)
		}
	}
	return o
}

func (o outcomeOf) any() bool { return len(o.ended)+len(o.unknown) > 0 }

// words says what became of the calls, as text and with the names of the tools.
func (o outcomeOf) words() (text string, spans []span) {
	add := func(words string, tools []string) {
		text += " " + words + "."
		spans = append(append(append(spans, say(" "+words+": ")), activity(tools)...), say("."))
	}
	if n := len(o.ended); n > 0 {
		add(count(n, "call")+" that waited for signatures ended and "+oneOr(n, "does", "do")+" not run", o.ended)
	}
	if n := len(o.unknown); n > 0 {
		add("The "+oneOr(n, "result", "results")+" of "+count(n, "call")+" that "+verb(n, "runs")+" elsewhere "+oneOr(n, "is", "are")+" not waited for any more, and whether "+oneOr(n, "it", "they")+" ran is not known", o.unknown)
	}
	if n := len(o.signed); n > 0 {
		add(count(n, "call")+" had been signed before that and "+verb(n, "runs")+", unless the policy refuses now", o.signed)
	}
	return text, spans
}

// superseding is what the thread says of a message that ended what was pending.
func (r *Replies) superseding(ctx context.Context, run agentrun.Run) ([]message, error) {
	b, err := r.desk.Batch(ctx, run.Supersedes)
	if err != nil && !errors.Is(err, approvals.ErrNotFound) {
		return nil, fmt.Errorf("load batch %s: %w", run.Supersedes, err)
	}
	text, spans := superseded(b).words()
	head, tail := " wrote something new.", " The agent goes on with it below."
	all := append([]span{named(run.Requester), say(head)}, spans...)
	return []message{plainly("A newer message takes the place of what was pending."+text+tail, append(all, say(tail))...)}, nil
}

// behind brings what waits in the thread of a run up to date: it says what it
// waits for.
func (r *Replies) behind(ctx context.Context, run agentrun.Run) error {
	if run.Status != agentrun.RunDeferred {
		return nil
	}
	t, err := r.runs.Thread(ctx, run.Thread)
	if err != nil {
		return fmt.Errorf("load thread %s: %w", run.Thread, err)
	}
	if t.Active != run.ID {
		return nil
	}
	for _, id := range t.Queue {
		if err := r.refresh(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// checkOverhear says what is wrong with the agents that overhear.
func (c Config) checkOverhear() []error {
	var problems []error
	for _, agent := range slices.Sorted(maps.Keys(c.Overhear)) {
		if agent == "" || agent != c.Agent && !slices.Contains(slices.Collect(maps.Values(c.Agents)), agent) {
			problems = append(problems, fmt.Errorf("slackui: %q is to overhear replies, and no such agent answers mentions", agent))
		}
	}
	return problems
}

// oneOr is the word for one, or for several.
func oneOr(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}
