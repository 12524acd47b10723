package slackui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

// sheetQuick is how long a person waits for a form before one is opened that
// says that the list is being made. A trigger lives 3 s.
const sheetQuick = 700 * time.Millisecond

// A wordError is a refusal that says all there is to say to the person.
type wordError struct{ say message }

func (e *wordError) Error() string { return "told the person why not" }

// noSheets is a bot without a store for sheets.
const noSheets = "This Countersign does not sign many calls at once. Use the buttons on the cards."

// bulk answers `approve` and `deny`: with the sheet in a form, or with why there
// is none.
func (s *commander) bulk(ctx context.Context, c Command, v approvals.Verdict) (reply, error) {
	name := string(v)
	f, rest, bad := typed{team: s.cfg.Team, channel: c.Channel}.filter(c.Words)
	example := "`" + c.Name + " help " + name + "` says more."
	onlyReason := v == approvals.Deny && len(rest) > 0 && strings.IndexAny(rest[0], quotes) == 0
	switch {
	case bad != nil:
		return answerWith(toldOf("It is not clear what ", bad.word, " means, so nothing was done.", bad.why+"\n"+filterHint)), nil
	case len(c.Words) == 0:
		return explainBulk(c, v), nil
	case f.empty() && !onlyReason, v == approvals.Approve && len(rest) > 0:
		return answerWith(toldOf("", unescape(rest[0]), " is no filter, so nothing was done.", filterHint+"\n"+example)), nil
	case f.empty():
		return explainBulk(c, v), nil
	}
	o := sheetOrder{
		user: c.User, team: c.Team, channel: c.Channel, verdict: v, filter: f,
		reason: trimReason(unquoted(unescape(strings.Join(rest, " ")))), unique: uniqueOf(c.User, c.Trigger),
	}
	said, err := s.sheets.openSheet(ctx, c.Trigger, o, s.api.openedView)
	if err != nil {
		words, known := explain(err, about{})
		if errors.Is(err, errForm) {
			words, known = "Slack did not open the form in time. Nothing was signed. Send the command again.", true
		}
		if !known {
			return reply{}, err
		}
		return ephemeral(words), nil
	}
	if said != nil {
		return answerWith(*said), nil
	}
	return reply{}, nil
}

// explainBulk says what is missing.
func explainBulk(c Command, v approvals.Verdict) reply {
	words := "Say which calls. "
	if v == approvals.Deny {
		words = "Say which calls, and why not. "
	}
	return ephemeral(words + "Nothing was done.\n" + strings.ReplaceAll(helpOf[string(v)], "/c ", c.Name+" "))
}

// quotes are what a reason may stand in, as keyboards write them.
const quotes = "\"'\u201c\u201d\u201e\u2018\u2019"

func unquoted(s string) string {
	if s = strings.TrimSpace(s); strings.IndexAny(s, quotes) != 0 {
		return s
	}
	return strings.Trim(s, quotes)
}

func uniqueOf(user, trigger string) string {
	sum := sha256.Sum256([]byte(user + " " + trigger))
	return hex.EncodeToString(sum[:12])
}

// A sheetWish is the value of a button that opens a sheet of what the filter
// means to whoever presses it.
type sheetWish struct {
	Verdict approvals.Verdict `json:"v"`
	Filter  filter            `json:"f"`
}

// pressedSheet opens the sheet of a button, in a modal that says why there is
// none if there is none.
func (s *Sheets) pressedSheet(ctx context.Context, p Interaction, value string) error {
	var w sheetWish
	if len(value) > maxPointer || json.Unmarshal([]byte(value), &w) != nil || (w.Verdict != approvals.Approve && w.Verdict != approvals.Deny) {
		return errPointer
	}
	show := s.api.openedView
	if p.View.Type == string(slack.VTModal) {
		show = s.api.pushedView
	}
	said, err := s.openSheet(ctx, p.Trigger, sheetOrder{
		user: p.User, team: p.UserTeam, channel: p.Channel, verdict: w.Verdict, filter: w.Filter,
		unique: uniqueOf(p.User, p.Trigger),
	}, show)
	if err == nil && said != nil {
		_, _, err = show(ctx, p.Trigger, said.view())
		if err != nil {
			err = fmt.Errorf("%w: %w", errForm, err)
		}
	}
	return err
}

// shower opens a view and returns its id and hash.
type shower func(ctx context.Context, trigger string, v slack.ModalViewRequest) (id, hash string, err error)

func (a *api) openedView(ctx context.Context, trigger string, v slack.ModalViewRequest) (id, hash string, err error) {
	r, err := a.client.OpenViewContext(ctx, trigger, v)
	return viewOf("views.open", r, err)
}

func (a *api) pushedView(ctx context.Context, trigger string, v slack.ModalViewRequest) (id, hash string, err error) {
	r, err := a.client.PushViewContext(ctx, trigger, v)
	return viewOf("views.push", r, err)
}

func viewOf(method string, r *slack.ViewResponse, err error) (id, hash string, _ error) {
	if err == nil && (r == nil || r.ID == "") {
		err = errNoAnswer
	}
	if err != nil {
		return "", "", classify(method, err)
	}
	return r.ID, r.Hash, nil
}

// view is a message as a form that only says it.
func (m message) view() slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: literal("Countersign"), Close: literal("Close"), Blocks: slack.Blocks{BlockSet: m.blocks},
	}
}

// A made sheet is its view, or what is said instead.
type made struct {
	view slack.ModalViewRequest
	said *message
	err  error
}

// openSheet stores what the order means as a sheet and opens it as a form. If
// there is nothing to show it opens none and returns what to say. What takes
// longer than sheetQuick is shown in a form that is already open.
func (s *Sheets) openSheet(ctx context.Context, trigger string, o sheetOrder, show shower) (*message, error) {
	if s.cfg.Bulk == nil {
		m := told(noSheets)
		return &m, nil
	}
	ready, late := make(chan made), make(chan string, 1)
	err := s.respond.after(ctx, s.respond.words, "make a sheet", func(ctx context.Context) error {
		m := s.makeSheet(ctx, o)
		select {
		case ready <- m:
			return nil
		case id := <-late:
			return s.showLate(ctx, id, m)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errTryAgain, err)
	}
	patient := time.NewTimer(sheetQuick)
	defer patient.Stop()
	select {
	case m := <-ready:
		if m.said != nil || m.err != nil {
			return m.said, m.err
		}
		if _, _, err := show(ctx, trigger, m.view); err != nil {
			return nil, fmt.Errorf("%w: %w", errForm, err)
		}
		return nil, nil
	case <-patient.C:
	}
	id, _, err := show(ctx, trigger, notice("Collecting the calls. This takes a moment."))
	late <- id // empty: nobody looks
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errForm, err)
	}
	return nil, nil
}

// showLate puts the sheet into the form that is open already.
func (s *Sheets) showLate(ctx context.Context, id string, m made) error {
	if id == "" {
		return nil
	}
	view := m.view
	switch {
	case m.said != nil:
		view = m.said.view()
	case m.err != nil:
		words, known := explain(m.err, about{})
		if !known {
			words = "The calls could not be collected just now. Nothing was signed. Close this and try again in a moment."
			s.cfg.Log.ErrorContext(ctx, "sheet not made", slog.Any("error", m.err))
		}
		view = notice(words)
	}
	return s.api.updateView(ctx, id, "", view)
}

// makeSheet collects, stores and draws.
func (s *Sheets) makeSheet(ctx context.Context, o sheetOrder) made {
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
	sheet, err := d.sheet(s.cfg.Team, o)
	if err == nil {
		sheet, err = s.cfg.Bulk.Show(ctx, sheet)
	}
	if err != nil {
		return made{err: fmt.Errorf("show a sheet: %w", err)}
	}
	s.cfg.Log.InfoContext(ctx, "sheet shown", slog.String("sheet", string(sheet.ID)), slog.String("user", o.user),
		slog.String("verdict", string(o.verdict)), slog.Int("lines", len(sheet.Lines)))
	view, err := s.sheetView(ctx, sheet, sheetMemo{Sheet: sheet.ID}, "")
	return made{view: view, err: err}
}

// nothing says that the filter found nothing to sign, and what there is.
func (d draft) nothing(o sheetOrder) message {
	verb := map[approvals.Verdict]string{approvals.Approve: "approve", approvals.Deny: "deny"}[o.verdict]
	words := "No open call that you can see fits this filter, so there is nothing to " + verb + "."
	if len(d.Left) > 0 {
		words = "Nothing that fits this filter is for you to " + verb + "."
	}
	if len(o.filter.Drawn) > 0 {
		words = "None of these calls is for you to " + verb + " now."
	}
	m := message{text: words, blocks: []slack.Block{richText(append([]para{line(styled(words, bold))}, d.paras()...)...)}}
	if reviews := d.reviews(); reviews != nil {
		m.blocks = append(m.blocks, reviews)
	}
	hint := "`/countersign list` shows what is open, and `/countersign list mine` what waits for you."
	m.blocks = append(m.blocks, slack.NewSectionBlock(ours(hint), nil, nil))
	return m
}
