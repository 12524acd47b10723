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
	batch approvals.Batch
	index int
	mine  bool
}

func (w waiting) approval() approvals.Approval { return w.batch.Approvals[w.index] }

// list answers with what is open, the oldest first.
func (s *Handler) list(ctx context.Context, c inbound.Command) (inbound.Reply, error) {
	l := ref.List{Scope: ref.ScopeAll}
	if len(c.Words) > 0 {
		l.Scope = ref.Scope(strings.ToLower(c.Words[0]))
	}
	if len(c.Words) > 1 || !slices.Contains([]ref.Scope{ref.ScopeMine, ref.ScopeAll, ref.ScopeChannel}, l.Scope) {
		return inbound.AnswerWith(blockkit.MessageAbout("There is no list ", blockkit.Unescape(c.Rest), ".", blockkit.Ours("Write `%s list`, or with `mine`, `all` or `channel` behind it.", blockkit.CodeWord(c.Name)))), nil
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
	return s.listMessage(ctx, rows, l, next, who.Unsure), nil
}

// rows are the calls of the page, and where the next one begins, if there is
// one. It never reads more than listLooks batches.
func (s *Handler) rows(ctx context.Context, who directory.Viewer, channel string, l ref.List) (rows []waiting, next *ref.List, err error) {
	now, cursor := s.Cfg.Now(), l.Cursor
	at := ref.List{Scope: l.Scope, Before: l.Before}
	for looked := 0; looked < listLooks; {
		batches, following, err := s.Cfg.Lists.Inbox(ctx, directory.ListKeys(l, who, channel), cursor, listWindow)
		if err != nil {
			return nil, nil, fmt.Errorf("read an inbox: %w", err)
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
				rows = append(rows, waiting{batch: b, index: i, mine: mine})
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
	ref.ScopeMine:    blockkit.Ours("Nothing waits for you."),
	ref.ScopeAll:     blockkit.Ours("Nothing waits for signatures in this channel, and nothing waits for you anywhere."),
	ref.ScopeChannel: blockkit.Ours("Nothing waits for signatures in this channel."),
}

var listHeads = map[ref.Scope]string{
	ref.ScopeMine: "waiting for you", ref.ScopeAll: "waiting", ref.ScopeChannel: "waiting in this channel",
}

func (s *Handler) listMessage(ctx context.Context, rows []waiting, l ref.List, next *ref.List, unsure bool) blockkit.Message {
	const doubt = "Slack did not say which groups you are in, so what waits for your groups elsewhere may be missing. Try again in a moment."
	if len(rows) == 0 && next == nil {
		words := nothingListed[l.Scope]
		if l.Before > 0 {
			words = blockkit.Ours("There is nothing more.")
		}
		if unsure {
			words = blockkit.Ours("%s "+doubt, words)
		}
		return blockkit.MessageOf(words)
	}
	now := s.Cfg.Now()
	head := blockkit.Count(len(rows), "call") + " " + listHeads[l.Scope] + ", the oldest first"
	if next != nil || l.Before > 0 {
		head = fmt.Sprintf("Calls %d to %d of those %s, the oldest first", l.Before+1, l.Before+len(rows), listHeads[l.Scope])
	}
	if len(rows) == 0 {
		head = "No call is " + listHeads[l.Scope] + " among the " + blockkit.Count(listLooks, "request") + " that were looked at, but there are more behind them"
	}
	m := blockkit.Message{Text: blockkit.Escape(head + "."), Blocks: []slack.Block{blockkit.RichText(blockkit.Line(blockkit.Styled(head, blockkit.Bold)))}}
	for i, r := range rows {
		m.Blocks = append(m.Blocks, blockkit.RichText(s.row(ctx, r, now)...))
		if value := s.reviewOf(ctx, r); value != "" {
			m.Blocks = append(m.Blocks, slack.NewActionBlock("",
				slack.NewButtonBlockElement(ref.ActionReview.ID(i), value, blockkit.Literal("Review"))))
		}
	}
	if next != nil {
		if value, err := json.Marshal(next); err == nil {
			m.Blocks = append(m.Blocks, slack.NewActionBlock("",
				slack.NewButtonBlockElement(ref.ActionList.ID(0), string(value), blockkit.Literal("Show the next"))))
		}
	}
	if unsure {
		m.Blocks = append(m.Blocks, blockkit.RichText(blockkit.Line(blockkit.Say(doubt))))
	}
	return m
}

// row says of a call what it is, who wants it, how long it waits and until when.
func (s *Handler) row(ctx context.Context, r waiting, now time.Time) []blockkit.Para {
	a := r.approval()
	spans := []blockkit.Span{
		blockkit.Styled(ref.ShortID(a.Call.Digest), blockkit.Code), blockkit.Say(" "), blockkit.Styled(blockkit.Brief(a.Call.Name, 60), blockkit.Bold),
		blockkit.Say(", agent " + blockkit.Brief(r.batch.Agent, 40) + ", asked by "), blockkit.PersonSpan(r.batch.Requester), blockkit.Say(" " + blockkit.Ago(now.Sub(r.batch.OpenedAt))),
	}
	if d := a.Requirement.Deadline; !d.IsZero() {
		spans = append(spans, blockkit.Say(", expires "), blockkit.DateSpan(d))
	}
	if r.mine {
		spans = append(spans, blockkit.Styled(", waits for you", blockkit.Bold))
	}
	if link := s.Cards.Link(ctx, r.batch, r.index); link != "" {
		spans = append(spans, blockkit.Say(". "), slack.NewRichTextSectionLinkElement(link, "Open the card", nil))
	}
	return []blockkit.Para{blockkit.Line(spans...)}
}

// reviewOf is where a call without a card of its own can be read and signed.
func (s *Handler) reviewOf(ctx context.Context, r waiting) string {
	if _, drawn := s.Cards.Anchor(ctx, r.batch, r.index); drawn {
		return ""
	}
	return ref.Card{Batch: r.batch.ID, Part: r.index / card.CallsPerCard}.String()
}
