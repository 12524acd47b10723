package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// cardIn is the part of the batch that the message was posted for, if it was
// posted as a card.
func cardIn(m Marked) (reviewing, bool) {
	var said struct {
		Batch string `json:"batch"`
		Part  int    `json:"part"`
	}
	if m.Metadata.Type != markerType || json.Unmarshal(m.Metadata.Payload, &said) != nil {
		return reviewing{}, false
	}
	r, err := parseReviewing(reviewing{batch: approvals.BatchID(said.Batch), part: said.Part}.String())
	return r, err == nil
}

// chosen handles a message shortcut.
func (s *shortcuts) chosen(ctx context.Context, p Interaction) (reply, error) {
	if p.Callback != callbackHere {
		s.cfg.Log.WarnContext(ctx, "unknown shortcut", slog.String("callback", brief(p.Callback, 64)))
		return reply{}, s.tellHere(ctx, p, "This shortcut is from another version of Countersign and does nothing any more.")
	}
	about, err := s.here(ctx, p)
	if err == nil {
		return reply{}, nil
	}
	words, known := explain(err, about)
	if !known {
		return reply{}, err
	}
	s.cfg.Log.InfoContext(ctx, "shortcut refused", slog.String("user", p.User), slog.Any("reason", err))
	return reply{}, s.tellHere(ctx, p, words)
}

// tellHere tells the person in a modal: the shortcut asks for one. If it does
// not open any more, they are told where they are.
func (s *shortcuts) tellHere(ctx context.Context, p Interaction, words string) error {
	err := s.respond.open(ctx, p, notice(words))
	if errors.Is(err, errForm) {
		at := whereOf(p)
		at.thread = p.Message.Thread
		return s.respond.tell(ctx, at, words)
	}
	return err
}

// here opens the review of what waits for signatures in the thread, or says
// that nothing does. With more than one request they are listed.
func (s *shortcuts) here(ctx context.Context, p Interaction) (about, error) {
	at := about{user: p.User, now: s.cfg.Now(), deed: reading}
	found, err := s.inThread(ctx, p)
	if err != nil {
		return at, err
	}
	switch len(found) {
	case 0:
		return at, s.respond.open(ctx, p, notice("Nothing waits for signatures in this thread. What waits for you anywhere is on the Home tab of this app, and in `/countersign list`."))
	case 1:
		return s.reviews.openReview(ctx, p, found[0].reviewing().String())
	}
	var may []pile
	var refused error
	for _, f := range found {
		err := s.people.mayLook(ctx, p.User, p.UserTeam, f.batch)
		if err == nil {
			may = append(may, f)
		} else if refused == nil {
			at.batch, refused = f.batch, err
		}
	}
	if len(may) == 0 {
		return at, refused
	}
	return at, s.respond.open(ctx, p, hereView(may, len(found)-len(may), at.now))
}

// inThread finds the requests that are open in the thread of the message, and
// the one of which the message itself is a card.
func (s *shortcuts) inThread(ctx context.Context, p Interaction) ([]pile, error) {
	channel, root := p.Channel, p.Message.Thread
	if root == "" {
		root = p.Message.TS
	}
	if !idForm.MatchString(channel) || !validTS(root) {
		return nil, errPointer
	}
	var found []pile
	add := func(id approvals.BatchID, part int) error {
		b, err := s.cfg.Desk.Batch(ctx, id)
		if errors.Is(err, approvals.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("load batch %s: %w", id, err)
		}
		all := pile{batch: b}
		for i, a := range b.Approvals {
			if shown(a, s.cfg.Now()) == approvals.Pending && i/callsPerCard >= part {
				all.calls = append(all.calls, i)
			}
		}
		for _, f := range found {
			if f.batch.ID == b.ID {
				return nil
			}
		}
		if len(all.calls) > 0 {
			found = append(found, all)
		}
		return nil
	}
	if r, is := cardIn(p.Message); is {
		if err := add(r.batch, r.part); err != nil {
			return nil, err
		}
	}
	for _, team := range teamsOf(p, s.cfg) {
		t, err := s.cfg.Runs.Thread(ctx, agentrun.ThreadIDOf(agentrun.Origin{Surface: surface, Team: team, Channel: channel, Root: root}))
		if errors.Is(err, approvals.ErrNotFound) || (err == nil && t.Active == "") {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for the thread of a message: %w", err)
		}
		run, err := s.cfg.Runs.Run(ctx, t.Active)
		if err != nil {
			return nil, fmt.Errorf("load run %s: %w", t.Active, err)
		}
		if run.Deferred == "" {
			continue
		}
		if err := add(run.Deferred, 0); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// teams are those under which a thread may be stored: the workspace of the
// payload, and the one that installed the app.
func teamsOf(p Interaction, c interactConfig) []string {
	teams := []string{c.Team}
	for _, team := range []string{p.UserTeam, p.Team} {
		if team != "" && !slices.Contains(teams, team) {
			teams = append(teams, team)
		}
	}
	return teams
}

// hereView lists the requests of a thread, each with its way to the review, and
// says how many are left out.
func hereView(found []pile, hidden int, now time.Time) slack.ModalViewRequest {
	h := Home{Now: now}
	blocks := []slack.Block{slack.NewSectionBlock(ours(count(len(found), "request")+" "+verb(len(found), "waits")+" for signatures in this thread."), nil, nil)}
	for _, p := range found {
		blocks = append(blocks, h.row(p, ours("Asked by "+person(p.batch.Requester)+" · "+h.ends(p)), h.progress(p))...)
	}
	if hidden > 0 {
		blocks = append(blocks, small(count(hidden, "more request")+" "+verb(hidden, "waits")+" here that you may not read, or of which Slack did not say whether you may."))
	}
	v := notice("")
	v.Blocks = slack.Blocks{BlockSet: blocks}
	return v
}
