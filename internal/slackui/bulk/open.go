package bulk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/slack-go/slack"
)

// sheetQuick is how long making a sheet may take before a form is opened that says
// that the list is being made. A trigger is valid for 3 s.
const sheetQuick = 700 * time.Millisecond

// A wordError is a refusal with the whole message for the person.
type wordError struct{ say blockkit.Message }

func (e *wordError) Error() string { return "told the person why not" }

// UniqueOf returns a name for one command or press of a person, so that a repeated
// delivery of it makes no second sheet.
func UniqueOf(user, trigger string) string {
	sum := sha256.Sum256([]byte(user + " " + trigger))
	return hex.EncodeToString(sum[:12])
}

// PressedSheet opens the sheet of a button. If there is none, it opens a modal that
// says why.
func (s *Service) PressedSheet(ctx context.Context, p inbound.Interaction, value string) error {
	var w ref.SheetButton
	if len(value) > ref.MaxPointer || json.Unmarshal([]byte(value), &w) != nil || (w.Verdict != approvals.Approve && w.Verdict != approvals.Deny) {
		return ref.ErrPointer
	}
	said, err := s.OpenSheet(ctx, p.Trigger, SheetOrder{
		User: p.User, Team: p.UserTeam, Channel: p.Channel, Verdict: w.Verdict, Filter: w.Filter,
		Unique: UniqueOf(p.User, p.Trigger.ID),
	})
	if err == nil && said != nil {
		_, err = s.show(ctx, p.Trigger, said.View())
	}
	return err
}

// show opens a view and returns its id.
func (s *Service) show(ctx context.Context, t inbound.Trigger, v slack.ModalViewRequest) (id string, err error) {
	id, err = s.API.ShowView(ctx, t.ID, t.Over, v)
	if err != nil {
		return "", fmt.Errorf("%w: %w", respond.ErrForm, err)
	}
	return id, nil
}

// A made sheet is its view, or the message in its place.
type made struct {
	view slack.ModalViewRequest
	said *blockkit.Message
	err  error
}

// OpenSheet makes the sheet of the order, stores it and opens it as a form. If there
// is nothing to show, it opens none and returns what to say. A sheet that takes
// longer than sheetQuick is shown in a form that is already open.
func (s *Service) OpenSheet(ctx context.Context, trigger inbound.Trigger, o SheetOrder) (*blockkit.Message, error) {
	if s.Cfg.Bulk == nil {
		m := blockkit.MessageOf(blockkit.Ours(cannotList))
		return &m, nil
	}
	ready, late := make(chan made), make(chan string, 1)
	err := s.Respond.After(ctx, s.Respond.Words, "make a sheet", func(ctx context.Context) error {
		m := s.makeSheet(ctx, o)
		select {
		case ready <- m:
			return nil
		case id := <-late:
			return s.showLate(ctx, id, m)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", respond.ErrTryAgain, err)
	}
	patient := time.NewTimer(sheetQuick)
	defer patient.Stop()
	select {
	case m := <-ready:
		if m.said != nil || m.err != nil {
			return m.said, m.err
		}
		_, err := s.show(ctx, trigger, m.view)
		return nil, err
	case <-patient.C:
	}
	id, err := s.show(ctx, trigger, blockkit.Notice(blockkit.Ours(collecting)))
	late <- id // empty: no form is open
	return nil, err
}

// showLate shows the sheet in the form that is already open.
func (s *Service) showLate(ctx context.Context, id string, m made) error {
	if id == "" {
		return nil
	}
	view := m.view
	switch {
	case m.said != nil:
		view = m.said.View()
	case m.err != nil:
		words, known := respond.Explain(m.err, respond.Subject{})
		if !known {
			words = blockkit.Ours(notCollected)
			s.Cfg.Log.ErrorContext(ctx, "sheet not made", slog.Any("err", m.err))
		}
		view = blockkit.Notice(words)
	}
	return s.API.UpdateView(ctx, id, "", view)
}

// makeSheet collects the calls, stores the sheet and draws it.
func (s *Service) makeSheet(ctx context.Context, o SheetOrder) made {
	d, err := s.draft(ctx, o)
	if worded, ok := errors.AsType[*wordError](err); ok {
		return made{said: &worded.say}
	}
	if err != nil {
		return made{err: err}
	}
	if len(d.lines) == 0 {
		m := d.nothing(o)
		return made{said: &m}
	}
	sheet, err := d.sheet(s.Cfg.Team, o)
	if err == nil {
		sheet, err = s.Cfg.Bulk.Show(ctx, sheet)
	}
	if err != nil {
		return made{err: fmt.Errorf("show a sheet: %w", err)}
	}
	s.Cfg.Log.InfoContext(ctx, "sheet shown", slog.String("sheet", string(sheet.ID)), slog.String("user", o.User),
		slog.String("verdict", string(o.Verdict)), slog.Int("lines", len(sheet.Lines)))
	view, err := s.sheetView(ctx, sheet, sheetMemo{Sheet: sheet.ID}, blockkit.Mrkdwn{})
	return made{view: view, err: err}
}

// nothing says that the filter found nothing to decide, and which calls were left
// out and why.
func (d draft) nothing(o SheetOrder) blockkit.Message {
	verb := map[approvals.Verdict]string{approvals.Approve: "approve", approvals.Deny: "deny"}[o.Verdict]
	words := nothingMatches + verb + "."
	if len(d.Left) > 0 {
		words = "You can't " + verb + noneThatMatch
	}
	if len(o.Filter.Drawn) > 0 {
		words = "You can't " + verb + noneNow
	}
	m := blockkit.Message{Text: blockkit.Escape(words), Blocks: []slack.Block{blockkit.RichText(append([]blockkit.Para{blockkit.Line(blockkit.Styled(words, blockkit.Bold))}, d.paras()...)...)}}
	if reviews := d.reviews(); reviews != nil {
		m.Blocks = append(m.Blocks, reviews)
	}
	m.Blocks = append(m.Blocks, blockkit.Section(blockkit.Ours(seeLists)))
	return m
}

// ApproveSeveral opens a sheet of all calls that wait for the person.
func (s *Service) ApproveSeveral(ctx context.Context, p inbound.Interaction) error {
	all, err := json.Marshal(ref.SheetButton{Verdict: approvals.Approve, Filter: ref.Filter{All: true}})
	if err != nil {
		return fmt.Errorf("ask for a sheet: %w", err)
	}
	return s.PressedSheet(ctx, p, string(all))
}
