package slackui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	digestTools  = 8 // tools and agents that a digest names
	digestTries  = 20
	noneWaitsFor = "None of these waits for you now. This is the oldest of them."
)

// sums is what a digest says of all its requests.
type sums struct {
	requests, calls, decided int
	again                    int            // requests that ask again
	tools, agents            map[string]int // calls
	oldest, deadline         time.Time
}

func (d digest) sums() sums {
	s := sums{decided: d.Decided, tools: map[string]int{}, agents: map[string]int{}}
	for _, r := range d.Requests {
		s.decided += r.Decided
		if !r.open() {
			continue
		}
		s.requests++
		if r.Reminded {
			s.again++
		}
		for tool, n := range r.Tools {
			s.calls += n
			s.tools[tool] += n
			s.agents[r.Agent] += n
		}
		if s.oldest.IsZero() || r.Opened.Before(s.oldest) {
			s.oldest = r.Opened
		}
		if !r.Deadline.IsZero() && (s.deadline.IsZero() || r.Deadline.Before(s.deadline)) {
			s.deadline = r.Deadline
		}
	}
	return s
}

// most are the names with their numbers, the greatest first.
func most(of map[string]int) []span {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	spans := make([]span, len(names))
	for i, n := range names {
		spans[i] = styled(fmt.Sprintf("%s ×%s", brief(n, 60), number(of[n])), code)
	}
	return several(spans, digestTools)
}

// digestMessage is what a digest shows: what waits, and never an argument.
func digestMessage(id string, s sums, several bool) message {
	m := message{marker: &slack.SlackMetadata{EventType: "countersign_digest", EventPayload: map[string]any{"digest": id}}}
	if s.calls == 0 {
		head := "All of these are decided"
		said := count(s.decided, "call") + " " + were(s.decided) + " listed here, and none of them waits any more."
		m.text = head + ": " + said
		m.blocks = []slack.Block{title(head), richText(line(say(said + " What became of each stands in the thread where it was asked.")))}
		return m
	}
	head := count(s.requests, "request") + " " + verb(s.requests, "waits") + " for signatures"
	m.text = escape(fmt.Sprintf("%s, with %s. They came too fast for a card each, so they are listed together.", head, count(s.calls, "call")))
	paras := []para{
		line(say(fmt.Sprintf("%s of %s %s. They came too fast for a card each, so they are listed here together.",
			count(s.calls, "call"), count(s.requests, "request"), verb(s.calls, "waits")))),
		line(append([]span{styled("Tools: ", bold)}, most(s.tools)...)...),
		line(append([]span{styled("Agents: ", bold)}, most(s.agents)...)...),
		line(styled("The oldest was asked ", bold), dated(s.oldest), say(".")),
	}
	if !s.deadline.IsZero() {
		paras = append(paras, line(styled("The first expires ", bold), dated(s.deadline), say(", and then does not run.")))
	}
	if s.again > 0 {
		paras = append(paras, line(styled("Reminder", bold), say(": "+count(s.again, "request")+" of these "+verb(s.again, "asks")+" again, because nobody has decided.")))
	}
	if s.decided > 0 {
		paras = append(paras, line(say(count(s.decided, "call")+" that "+were(s.decided)+" listed here "+isAre(s.decided)+" decided already.")))
	}
	review := slack.NewButtonBlockElement(actionDigest.id(0), id, literal("Review"))
	review.Style = slack.StylePrimary
	buttons := []slack.BlockElement{review}
	if several {
		buttons = append(buttons, slack.NewButtonBlockElement(actionSeveral.id(0), "mine", literal("Approve several…")))
	}
	m.blocks = []slack.Block{
		title(head), richText(paras...), slack.NewActionBlock("", buttons...),
		small("Review opens the oldest that waits for you. Nothing is approved or dropped because it is many. `/countersign list` shows it too, and so does the Home tab of this app."),
	}
	return m
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// openDigest opens, of what a digest lists, the oldest card that waits for the
// person.
func (s *reviews) openDigest(ctx context.Context, p Interaction, value string) (about, error) {
	at := about{user: p.User, now: s.cfg.Now(), deed: reading}
	id, err := parseDigest(value)
	if err != nil {
		return at, err
	}
	n, _, err := s.cards.digests.ledger().load(ctx, id)
	if err != nil {
		return at, err
	}
	r, words, found := s.oldest(ctx, p, n.Body)
	if !found {
		return at, s.respond.open(ctx, p, notice("All of these are decided. Nothing of them waits any more."))
	}
	view, b, err := s.review(ctx, p, r, "", words)
	at.batch = b
	if err != nil {
		return at, err
	}
	return at, s.respond.open(ctx, p, view)
}

// oldest is the oldest card of the digest that waits for the person, else the
// oldest of all that waits, with words that say so.
func (s *reviews) oldest(ctx context.Context, p Interaction, d digest) (reviewing, string, bool) {
	ids := slices.SortedFunc(maps.Keys(d.Requests), func(a, b approvals.BatchID) int {
		return cmp.Or(d.Requests[a].Opened.Compare(d.Requests[b].Opened), cmp.Compare(a, b))
	})
	ids = slices.DeleteFunc(ids, func(id approvals.BatchID) bool { return !d.Requests[id].open() })
	if len(ids) == 0 {
		return reviewing{}, "", false
	}
	first := reviewing{batch: ids[0]}
	who, err := s.people.seeker(ctx, p.User, p.UserTeam)
	if err != nil {
		return first, "", true // the card says who it waits for
	}
	if piles, _, err := waits(ctx, s.cfg.Lists, who, "", s.cfg.Now()); err == nil {
		mine := map[approvals.BatchID]pile{}
		for _, x := range piles {
			mine[x.batch.ID] = x
		}
		for _, id := range ids {
			if x, ok := mine[id]; ok {
				return x.reviewing(), "", true
			}
		}
	}
	// The lists were read only so far.
	for _, id := range ids[:min(digestTries, len(ids))] {
		b, err := s.cfg.Desk.Batch(ctx, id)
		if err != nil {
			continue
		}
		if x := who.helpful(b, s.cfg.Now()); len(x.calls) > 0 {
			return x.reviewing(), "", true
		}
	}
	return first, noneWaitsFor, true
}
