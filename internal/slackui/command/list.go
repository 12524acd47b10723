package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
)

const (
	listShows  = 10  // calls of a page
	listWindow = 50  // batches that are read at once
	listLooks  = 600 // batches that are read for one page
)

// waiting is one open call, as the list shows it.
type waiting struct {
	card.OpenCalls // this one

	mine bool
}

func (w waiting) index() int { return w.Calls[0] }

// list answers with what is open, the oldest first.
func (s *Handler) list(ctx context.Context, c inbound.Command) (inbound.Reply, error) {
	l := ref.List{Scope: ref.ScopeAll}
	if len(c.Words) > 0 {
		l.Scope = ref.Scope(strings.ToLower(c.Words[0]))
	}
	if len(c.Words) > 1 || !slices.Contains([]ref.Scope{ref.ScopeMine, ref.ScopeAll, ref.ScopeChannel}, l.Scope) {
		return inbound.AnswerWith(blockkit.MessageAbout(listUnknown, blockkit.Unescape(c.Rest), ".", blockkit.Ours(listUsage, blockkit.CodeWord(c.Name)))), nil
	}
	m, err := s.Listed(ctx, c.User, c.Team, c.Channel, l)
	if err != nil {
		return inbound.Reply{}, err
	}
	return inbound.AnswerWith(m), nil
}

// Listed is a page of the list. Why there is none is said in it.
func (s *Handler) Listed(ctx context.Context, user, team, channel string, l ref.List) (blockkit.Message, error) {
	who, err := s.People.Viewer(ctx, user, team)
	if errors.Is(err, directory.ErrLookup) && l.Scope != ref.ScopeMine {
		who, err = s.People.Unknown(ctx, approvals.UserID(user)), nil
	}
	if words, known := respond.Explain(err, respond.Subject{}); err != nil && known {
		return blockkit.MessageOf(words), nil
	}
	if err != nil {
		return blockkit.Message{}, err
	}
	rows, next, err := s.rows(ctx, who, channel, l)
	if err != nil {
		return blockkit.Message{}, err
	}
	named := make([]*card.OpenCalls, len(rows))
	for i := range rows {
		named[i] = &rows[i].OpenCalls
	}
	if !who.Unsure { // Slack is not answering, and the person has waited for it once
		s.People.Summarize(ctx, directory.Who{User: user, Team: team}, named)
	}
	return s.listMessage(ctx, rows, l, next, who), nil
}

// rows are the calls of the page, and where the next one begins, if there is
// one. It never reads more than listLooks batches.
func (s *Handler) rows(ctx context.Context, who directory.Viewer, channel string, l ref.List) (rows []waiting, next *ref.List, err error) {
	now, cursor := s.Cfg.Now(), l.Cursor
	at := ref.List{Scope: l.Scope, Before: l.Before}
	for looked := 0; looked < listLooks; {
		batches, following, err := s.Cfg.Lists.Inbox(ctx, directory.ListKeys(l, who, channel), cursor, listWindow)
		if err != nil {
			return nil, nil, err
		}
		looked += listWindow
		for _, b := range batches {
			opened := b.OpenedAt.UnixMicro() | 1 // as the lists have it
			if opened < l.Opened || (opened == l.Opened && string(b.ID) < l.Batch) {
				continue
			}
			for i, a := range b.Approvals {
				if string(b.ID) == l.Batch && i < l.Call || !a.OpenAt(now) {
					continue
				}
				mine := b.Helps(a, who.Principal)
				if !directory.Within(l, who, b, a, channel, mine, now) {
					continue
				}
				if len(rows) == listShows {
					at.Before += len(rows)
					return rows, &at, nil
				}
				rows = append(rows, waiting{OpenCalls: card.OpenCalls{Batch: b, Calls: []int{i}}, mine: mine})
				at.Cursor, at.Opened, at.Batch, at.Call = cursor, opened, string(b.ID), i+1
			}
		}
		if cursor = following; cursor == "" {
			return rows, nil, nil
		}
	}
	return rows, &ref.List{Scope: l.Scope, Cursor: cursor, Before: l.Before + len(rows)}, nil
}

var nothingListed = map[ref.Scope]blockkit.Mrkdwn{
	ref.ScopeMine:    blockkit.Ours(listNothingMine),
	ref.ScopeAll:     blockkit.Ours(listNothingAll),
	ref.ScopeChannel: blockkit.Ours(listNothingHere),
}

var listHeads = map[ref.Scope]string{
	ref.ScopeMine: listMine, ref.ScopeAll: "waiting", ref.ScopeChannel: listHere,
}

func (s *Handler) listMessage(ctx context.Context, rows []waiting, l ref.List, next *ref.List, who directory.Viewer) blockkit.Message {
	if len(rows) == 0 && next == nil {
		words := nothingListed[l.Scope]
		if l.Before > 0 {
			words = blockkit.Ours(listNoMore)
		}
		if who.Unsure {
			words = blockkit.Ours("%s "+listUnsure, words)
		}
		return blockkit.MessageOf(words)
	}
	now := s.Cfg.Now()
	head := blockkit.Count(len(rows), "call") + " " + listHeads[l.Scope] + listOldest
	if next != nil || l.Before > 0 {
		head = fmt.Sprintf(listRange, l.Before+1, l.Before+len(rows), listHeads[l.Scope])
	}
	if len(rows) == 0 {
		head = listNone + listHeads[l.Scope] + listAmong + blockkit.Count(listLooks, "request") + listChecked
	}
	m := blockkit.Message{Text: blockkit.Escape(head + "."), Blocks: []slack.Block{blockkit.RichText(blockkit.Line(blockkit.Styled(head, blockkit.Bold)))}}
	for i, r := range rows {
		m.Blocks = append(m.Blocks, blockkit.RichText(s.row(ctx, r, now, who.User)...))
		if _, drawn := s.Placements.Anchor(ctx, r.Batch, r.index(), who.User); !drawn { // the person can read and decide it nowhere else
			m.Blocks = append(m.Blocks, slack.NewActionBlock("",
				r.Review(i)))
		}
	}
	if next != nil {
		if value, err := json.Marshal(next); err == nil {
			m.Blocks = append(m.Blocks, slack.NewActionBlock("",
				blockkit.Button(ref.ActionList.ID(0), string(value), listMore, listMoreSpoken+listHeads[l.Scope])))
		}
	}
	if who.Unsure {
		m.Blocks = append(m.Blocks, blockkit.RichText(blockkit.Line(blockkit.Say(listUnsure))))
	}
	return m
}

// row says what a call does, how bad it is, who asked, how far it is and until
// when it waits.
func (s *Handler) row(ctx context.Context, r waiting, now time.Time, person approvals.UserID) []blockkit.Para {
	a := r.Leading()
	spans := []blockkit.Span{
		blockkit.Styled(r.Title(160), blockkit.Bold), blockkit.Say(" · " + blockkit.Risk(a.Severity) + " · requested by "), blockkit.PersonSpan(r.Batch.Requester),
		blockkit.Say(" " + blockkit.Ago(now.Sub(r.Batch.OpenedAt)) + " · agent " + blockkit.Brief(r.Batch.Agent, 40) + " · " + r.Progress()),
	}
	if d := a.Requirement.Deadline; !d.IsZero() {
		spans = append(spans, blockkit.Say(" · expires "), blockkit.DateSpan(d))
	}
	if r.mine {
		spans = append(spans, blockkit.Say(" · "), blockkit.Styled(listWaits, blockkit.Bold))
	}
	spans = append(spans, blockkit.Say(" · "), blockkit.Styled(ref.ShortID(a.Call.Digest), blockkit.Code))
	if link := s.Placements.Link(ctx, r.Batch, r.index(), person); link != "" {
		spans = append(spans, blockkit.Say(" · "), slack.NewRichTextSectionLinkElement(link, listOpen, nil))
	}
	return []blockkit.Para{blockkit.Line(spans...)}
}
