package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// cardIn is the part of the batch that the message was posted for, if it was
// posted as a card.
func cardIn(m inbound.Metadata) (ref.Card, bool) {
	var said struct {
		Batch string `json:"batch"`
		Part  int    `json:"part"`
	}
	if m.Type != ref.MarkerType || json.Unmarshal(m.Payload, &said) != nil {
		return ref.Card{}, false
	}
	r, err := ref.ParseCard(ref.Card{Batch: approvals.BatchID(said.Batch), Part: said.Part}.String())
	return r, err == nil
}

// chosen handles a message shortcut.
func (s *shortcuts) chosen(ctx context.Context, p inbound.Interaction) (inbound.Reply, error) {
	if p.Callback != ref.CallbackHere {
		s.cfg.Log.WarnContext(ctx, "unknown shortcut", slog.String("callback", blockkit.Brief(p.Callback, 64)))
		return inbound.Reply{}, s.tellHere(ctx, p, blockkit.Ours(oldShortcut))
	}
	about, err := s.here(ctx, p)
	if err == nil {
		return inbound.Reply{}, nil
	}
	words, known := respond.Explain(err, about)
	if !known {
		return inbound.Reply{}, err
	}
	s.cfg.Log.InfoContext(ctx, "shortcut refused", slog.String("user", p.User), slog.Any("reason", err))
	return inbound.Reply{}, s.tellHere(ctx, p, words)
}

// tellHere tells the person in a modal: the shortcut asks for one. If the
// modal does not open, they get a message in the conversation.
func (s *shortcuts) tellHere(ctx context.Context, p inbound.Interaction, words blockkit.Mrkdwn) error {
	err := s.respond.Open(ctx, p.Trigger, blockkit.Notice(words))
	if errors.Is(err, respond.ErrForm) {
		at := p.Place()
		at.Thread = p.Message.Thread
		return s.respond.Tell(ctx, at, words)
	}
	return err
}

// here opens the review of what waits for approval in the thread, or says
// that nothing does. With more than one request they are listed.
func (s *shortcuts) here(ctx context.Context, p inbound.Interaction) (respond.Subject, error) {
	at := respond.Subject{User: p.User, Now: s.cfg.Now()}
	found, ours, err := s.inThread(ctx, p)
	if err != nil {
		return at, err
	}
	switch len(found) {
	case 0:
		words := blockkit.Ours(nothingHere)
		if !ours {
			words = blockkit.Ours(nothingFound)
		}
		return at, s.respond.Open(ctx, p.Trigger, blockkit.Notice(words))
	case 1:
		return s.reviews.openReview(ctx, p.Who(), p.Trigger, found[0].FirstCard().String())
	}
	var may []card.OpenCalls
	var refused error
	for _, f := range found {
		_, err := s.people.MayRead(ctx, p.Who(), f.Batch)
		if err == nil {
			may = append(may, f)
		} else if refused == nil {
			at.Batch, refused = f.Batch, err
		}
	}
	if len(may) == 0 {
		return at, refused
	}
	rows := make([]*card.OpenCalls, len(may))
	for i := range may {
		rows[i] = &may[i]
	}
	s.people.Summarize(ctx, p.Who(), rows)
	return at, s.respond.Open(ctx, p.Trigger, card.ThreadView(may, len(found)-len(may), at.Now))
}

// inThread finds the requests that are open in the thread of the message, and
// the one of which the message itself is a card. ours reports whether anything
// is known of the thread: it is not below the card of an agent that runs
// elsewhere, which has no thread in Slack.
func (s *shortcuts) inThread(ctx context.Context, p inbound.Interaction) (found []card.OpenCalls, ours bool, err error) {
	channel, root := p.Channel, p.Message.Thread
	if root == "" {
		root = p.Message.TS
	}
	if !blockkit.IDForm.MatchString(channel) || !blockkit.ValidTS(root) {
		return nil, false, ref.ErrPointer
	}
	add := func(id approvals.BatchID, part int) error {
		c, err := s.openCalls(ctx, id, part)
		if len(c.Calls) > 0 && !slices.ContainsFunc(found, func(f card.OpenCalls) bool { return f.Batch.ID == id }) {
			found = append(found, c)
		}
		return err
	}
	if r, is := cardIn(p.Message.Metadata); is {
		ours = true
		if err := add(r.Batch, r.Part); err != nil {
			return nil, false, err
		}
	}
	for _, team := range teamsOf(p, s.cfg) {
		t, err := s.cfg.Runs.Thread(ctx, agentrun.ThreadIDOf(agentrun.Origin{Surface: ref.Surface, Team: team, Channel: channel, Root: root}))
		if errors.Is(err, approvals.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, false, fmt.Errorf("look for the thread of a message: %w", err)
		}
		ours = true
		if t.Active == "" {
			continue
		}
		run, err := s.cfg.Runs.Run(ctx, t.Active)
		if err != nil {
			return nil, false, err
		}
		if run.Deferred == "" {
			continue
		}
		if err := add(run.Deferred, 0); err != nil {
			return nil, false, err
		}
	}
	return found, ours, nil
}

// openCalls returns the calls of a batch that are open, from a part on. A batch that is not
// stored any more has none.
func (s *shortcuts) openCalls(ctx context.Context, id approvals.BatchID, part int) (card.OpenCalls, error) {
	b, err := s.cfg.Desk.Batch(ctx, id)
	if errors.Is(err, approvals.ErrNotFound) {
		return card.OpenCalls{}, nil
	}
	if err != nil {
		return card.OpenCalls{}, err
	}
	c := card.OpenCalls{Batch: b}
	for i, a := range b.Approvals {
		if a.OpenAt(s.cfg.Now()) && i/card.CallsPerCard >= part {
			c.Calls = append(c.Calls, i)
		}
	}
	return c, nil
}

// teamsOf returns the workspaces under which a thread may be stored: that of the payload,
// and the one that installed the app.
func teamsOf(p inbound.Interaction, c Config) []string {
	teams := []string{c.Team}
	for _, team := range []string{p.UserTeam, p.Team} {
		if team != "" && !slices.Contains(teams, team) {
			teams = append(teams, team)
		}
	}
	return teams
}
