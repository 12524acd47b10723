package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	listShows  = 10  // calls of a page
	listWindow = 50  // batches that are read at once
	listLooks  = 600 // batches that are read for one page
)

// A scope says which of the open calls that a person may see are listed.
type scope string

const (
	scopeMine    scope = "mine"
	scopeAll     scope = "all"
	scopeChannel scope = "channel"
)

// A listing is a page of a list: what is listed, and what was shown last. It is
// the value of the button that leads to the page, and carries no authority.
type listing struct {
	Scope  scope            `json:"s"`
	Cursor approvals.Cursor `json:"c,omitempty"` // from here batches are read
	Opened int64            `json:"o,omitempty"` // of the last batch that was shown, in microseconds
	Batch  string           `json:"b,omitempty"`
	Call   int              `json:"n,omitempty"` // so many calls of it were shown
	Before int              `json:"p,omitempty"` // calls on earlier pages
}

// waiting is one open call, as the list shows it.
type waiting struct {
	batch approvals.Batch
	index int
	mine  bool
}

func (w waiting) approval() approvals.Approval { return w.batch.Approvals[w.index] }

// list answers with what is open, the oldest first.
func (s *commander) list(ctx context.Context, c Command) (reply, error) {
	l := listing{Scope: scopeAll}
	if len(c.Words) > 0 {
		l.Scope = scope(strings.ToLower(c.Words[0]))
	}
	if len(c.Words) > 1 || !slices.Contains([]scope{scopeMine, scopeAll, scopeChannel}, l.Scope) {
		return answerWith(toldOf("There is no list ", unescape(c.Rest), ".", "Write `"+c.Name+" list`, or with `mine`, `all` or `channel` behind it.")), nil
	}
	m, err := s.listed(ctx, c.User, c.Team, c.Channel, l)
	if err != nil {
		return reply{}, err
	}
	return answerWith(m), nil
}

// turnList shows another page of a list in the place of the one that is shown.
func (s *handler) turnList(ctx context.Context, p Interaction, value string) error {
	var l listing
	if len(value) > maxPointer || json.Unmarshal([]byte(value), &l) != nil || p.ResponseURL == "" {
		return errPointer
	}
	m, err := s.commands_.listed(ctx, p.User, p.UserTeam, p.Channel, l)
	if err != nil {
		return err
	}
	return s.respond.after(ctx, s.respond.words, "turn the page of a list", func(ctx context.Context) error {
		return s.api.replace(ctx, p.ResponseURL, m)
	})
}

// replace puts a message in the place of the one that was pressed, which only
// one person sees.
func (*api) replace(ctx context.Context, response string, m message) error {
	err := slack.PostWebhookCustomHTTPContext(ctx, response, &http.Client{Timeout: callTimeout}, &slack.WebhookMessage{
		ResponseType: slack.ResponseTypeEphemeral, ReplaceOriginal: true, Text: m.text, Blocks: &slack.Blocks{BlockSet: m.blocks},
	})
	return classify("response_url", err)
}

// sees reports whether the person may see this call in a list: what they may
// sign, what they asked for, and what is shown in the channel where they are.
func (w seeker) sees(b approvals.Batch, a approvals.Approval, channel string, now time.Time) bool {
	return b.Requester == w.User || shownIn(b, a, channel) || w.maySay(b, a, approvals.Approve, now) == nil
}

// maySay is nil if this verdict of the person on the call would be taken now.
func (w seeker) maySay(b approvals.Batch, a approvals.Approval, v approvals.Verdict, now time.Time) error {
	return taken(b, a, w.Principal, v, now)
}

// within reports whether the call is on this list of the person.
func within(l listing, who seeker, b approvals.Batch, a approvals.Approval, channel string, mine bool, now time.Time) bool {
	switch l.Scope {
	case scopeMine:
		return mine
	case scopeChannel:
		return shownIn(b, a, channel)
	case scopeAll:
		return mine || who.sees(b, a, channel, now)
	}
	return false
}

func listKeys(l listing, who seeker, channel string) []approvals.ListKey {
	here := approvals.ShownIn(channel)
	switch l.Scope {
	case scopeMine:
		return who.keys
	case scopeChannel:
		return []approvals.ListKey{here}
	case scopeAll:
	}
	return append(slices.Clone(who.keys), here, approvals.AskedBy(who.User))
}

// listed is a page of the list. Why there is none is said in it.
func (s *commander) listed(ctx context.Context, user, team, channel string, l listing) (message, error) {
	who, err := s.people.seeker(ctx, user, team)
	if errors.Is(err, errLookup) && l.Scope != scopeMine {
		who, err = s.people.unknown(ctx, approvals.UserID(user)), nil
	}
	if words, known := explain(err, about{}); err != nil && known {
		return told(words), nil
	}
	if err != nil {
		return message{}, err
	}
	rows, next, err := s.rows(ctx, who, channel, l)
	if err != nil {
		return message{}, err
	}
	return s.listMessage(ctx, rows, l, next, who.unsure), nil
}

// rows are the calls of the page, and where the next one begins, if there is
// one. It never reads more than listLooks batches.
func (s *commander) rows(ctx context.Context, who seeker, channel string, l listing) (rows []waiting, next *listing, err error) {
	now, cursor := s.cfg.Now(), l.Cursor
	at := listing{Scope: l.Scope, Before: l.Before}
	for looked := 0; looked < listLooks; {
		batches, following, err := s.cfg.Lists.Inbox(ctx, listKeys(l, who, channel), cursor, listWindow)
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
				if string(b.ID) == l.Batch && i < l.Call || shown(a, now) != approvals.Pending {
					continue
				}
				mine := b.Helps(a, who.Principal)
				if !within(l, who, b, a, channel, mine, now) {
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
	return rows, &listing{Scope: l.Scope, Cursor: cursor, Before: l.Before + len(rows)}, nil
}

var nothingListed = map[scope]string{
	scopeMine:    "Nothing waits for you.",
	scopeAll:     "Nothing waits for signatures in this channel, and nothing waits for you anywhere.",
	scopeChannel: "Nothing waits for signatures in this channel.",
}

var listHeads = map[scope]string{
	scopeMine: "waiting for you", scopeAll: "waiting", scopeChannel: "waiting in this channel",
}

func (s *commander) listMessage(ctx context.Context, rows []waiting, l listing, next *listing, unsure bool) message {
	const doubt = "Slack did not say which groups you are in, so what waits for your groups elsewhere may be missing. Try again in a moment."
	if len(rows) == 0 && next == nil {
		words := nothingListed[l.Scope]
		if l.Before > 0 {
			words = "There is nothing more."
		}
		if unsure {
			words += " " + doubt
		}
		return told(words)
	}
	now := s.cfg.Now()
	head := count(len(rows), "call") + " " + listHeads[l.Scope] + ", the oldest first"
	if next != nil || l.Before > 0 {
		head = fmt.Sprintf("Calls %d to %d of those %s, the oldest first", l.Before+1, l.Before+len(rows), listHeads[l.Scope])
	}
	if len(rows) == 0 {
		head = "No call is " + listHeads[l.Scope] + " among the " + count(listLooks, "request") + " that were looked at, but there are more behind them"
	}
	m := message{text: head + ".", blocks: []slack.Block{richText(line(styled(head, bold)))}}
	for i, r := range rows {
		m.blocks = append(m.blocks, richText(s.row(ctx, r, now)...))
		if value := s.reviewOf(ctx, r); value != "" {
			m.blocks = append(m.blocks, slack.NewActionBlock("",
				slack.NewButtonBlockElement(actionReview.id(i), value, literal("Review"))))
		}
	}
	if next != nil {
		if value, err := json.Marshal(next); err == nil {
			m.blocks = append(m.blocks, slack.NewActionBlock("",
				slack.NewButtonBlockElement(actionList.id(0), string(value), literal("Show the next"))))
		}
	}
	if unsure {
		m.blocks = append(m.blocks, richText(line(say(doubt))))
	}
	return m
}

// row says of a call what it is, who wants it, how long it waits and until when.
func (s *commander) row(ctx context.Context, r waiting, now time.Time) []para {
	a := r.approval()
	spans := []span{
		styled(shortID(a.Call.Digest), code), say(" "), styled(brief(a.Call.Name, 60), bold),
		say(", agent " + brief(r.batch.Agent, 40) + ", asked by "), named(r.batch.Requester), say(" " + ago(now.Sub(r.batch.OpenedAt))),
	}
	if d := a.Requirement.Deadline; !d.IsZero() {
		spans = append(spans, say(", expires "), dated(d))
	}
	if r.mine {
		spans = append(spans, styled(", waits for you", bold))
	}
	if link := s.cards.link(ctx, r.batch, r.index); link != "" {
		spans = append(spans, say(". "), slack.NewRichTextSectionLinkElement(link, "Open the card", nil))
	}
	return []para{line(spans...)}
}

// cardLink is the address of the card of this call, if it is drawn.
func (c *Cards) link(ctx context.Context, b approvals.Batch, call int) string {
	at, drawn := c.anchor(ctx, b, call)
	if !drawn {
		return ""
	}
	return c.api.permalink(ctx, at.Channel, at.TS, at.Thread)
}

// reviewOf is where a call without a card of its own can be read and signed.
func (s *commander) reviewOf(ctx context.Context, r waiting) string {
	if _, drawn := s.cards.anchor(ctx, r.batch, r.index); drawn {
		return ""
	}
	return reviewing{batch: r.batch.ID, part: r.index / callsPerCard}.String()
}

// ago says roughly how long something waits.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return count(int(d.Minutes()), "minute") + " ago"
	case d < 48*time.Hour:
		return count(int(d.Hours()), "hour") + " ago"
	}
	return count(int(d.Hours()/24), "day") + " ago"
}
