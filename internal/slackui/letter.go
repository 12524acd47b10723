package slackui

import (
	"context"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

// callsTold is how many calls a message names one by one.
const callsTold = 10

// letter is one person's message: which calls wait for them, and which of
// their signatures count no more.
func (n *Notices) letter(ctx context.Context, b approvals.Batch, l letter) message {
	var paras []para
	text := ""
	if len(l.waits) > 0 {
		text = count(len(l.waits), "call") + " of the agent " + brief(b.Agent, 60) + " " + verb(len(l.waits), "waits") + " for your signature."
		paras = append(paras, line(
			styled(count(len(l.waits), "call")+" "+verb(len(l.waits), "waits")+" for your signature", bold),
			say(": "), named(b.Requester), say(" asked the agent "), styled(brief(b.Agent, 60), bold), say(".")))
		for i, w := range l.waits {
			if i == callsTold {
				paras = append(paras, line(say("and "+number(len(l.waits)-i)+" more.")))
				break
			}
			paras = append(paras, line(n.waiting(ctx, b, w)...))
		}
	}
	if len(l.cleared) > 0 {
		lost := count(len(l.cleared), "decision") + " of yours no longer " + verb(len(l.cleared), "counts")
		text += " " + lost + ", because the arguments were changed."
		paras = append(paras, line(styled(lost, bold), say(": the arguments were changed after you had read them.")))
		for i, c := range l.cleared {
			if i == callsTold {
				paras = append(paras, line(say("and "+number(len(l.cleared)-i)+" more.")))
				break
			}
			paras = append(paras, line(n.changed(ctx, b, c)...))
		}
	}
	if len(l.stuck) > 0 {
		told, more := n.stuckWords(ctx, b, l.stuck)
		text, paras = text+" "+told, append(paras, more...)
	}
	return message{text: escape(strings.TrimSpace(text)), blocks: []slack.Block{
		richText(paras...), small("Sign, deny or read the arguments on the card. Nothing is decided here."),
	}}
}

// waiting is the line of one call: what, since when, until when, for whom.
func (n *Notices) waiting(ctx context.Context, b approvals.Batch, w waitsFor) []span {
	a := b.Approvals[w.call]
	spans := []span{say("• "), styled(brief(a.Call.Name, 60), code), say(", asked " + ago(n.now().Sub(b.OpenedAt)))}
	if d := a.Requirement.Deadline; !d.IsZero() {
		spans = append(spans, say(", to be decided by "), dated(d))
	}
	for i, p := range w.places {
		if i == namesShown {
			spans = append(spans, say(", and of "+number(len(w.places)-i)+" more"))
			break
		}
		words := ", in the place of "
		if i > 0 {
			words = ", or of "
		}
		spans = append(spans, say(words), named(p.User), say(", who is away until "), dated(p.Until))
	}
	if len(w.places) > 0 && w.myself {
		spans = append(spans, say(", or for yourself"))
	}
	if w.added {
		spans = append(spans, say(". Nobody has settled it, so you may sign it now too"))
	}
	return append(spans, n.link(ctx, b, w.call)...)
}

// changed is the line of a call whose decision was cleared.
func (n *Notices) changed(ctx context.Context, b approvals.Batch, c clearedBy) []span {
	a := b.Approvals[c.call]
	next := ". Read it again, and decide anew"
	if shown(a, n.now()) != approvals.Pending {
		next = ". It is settled since, without you"
	}
	spans := []span{
		say("• "), styled(brief(a.Call.Name, 60), code), say(": "), named(c.by.By.User), say(" changed the arguments ("), dated(c.by.At), say(")" + next),
	}
	return append(spans, n.link(ctx, b, c.call)...)
}

// link leads to the card of a call. There are no arguments in a message, so it
// is where to read on.
func (n *Notices) link(ctx context.Context, b approvals.Batch, call int) []span {
	at, drawn := n.cards.anchor(ctx, b, call)
	if !drawn {
		return append([]span{say(".")}, n.cards.toList(ctx, b)...)
	}
	link := n.api.permalink(ctx, at.Channel, at.TS, at.Thread)
	if link == "" {
		return []span{say(".")}
	}
	return []span{say(" — "), slack.NewRichTextSectionLinkElement(link, "open the card", nil)}
}

// call is what the thread is told when too many people could still help: the
// groups are called, not each of them.
func (n *Notices) call(ctx context.Context, b approvals.Batch, news bulletin) message {
	calls := make([]int, 0, len(news.crowd))
	var groups []approvals.GroupID
	var users []approvals.UserID
	for i := range b.Approvals {
		from, ok := news.crowd[i]
		if !ok {
			continue
		}
		calls = append(calls, i)
		for _, f := range from {
			groups, users = append(groups, f.Groups...), append(users, f.Users...)
		}
	}
	slices.Sort(groups)
	slices.Sort(users)
	var from []span
	for _, g := range slices.Compact(groups) {
		from = append(from, grouped(g))
	}
	from = append(from, people(slices.Compact(users))...)
	head := count(len(calls), "call") + " still " + verb(len(calls), "waits") + " for signatures"
	paras := []para{line(append([]span{styled(head, bold), say(", from ")}, several(from, mostTold)...)...)}
	for k, i := range calls {
		if k == callsTold {
			paras = append(paras, line(say("and "+number(len(calls)-k)+" more.")))
			break
		}
		paras = append(paras, line(n.waiting(ctx, b, waitsFor{call: i})...))
	}
	return message{text: escape(head + "."), blocks: []slack.Block{richText(paras...)}}
}

// verb is the form for so many of "waits" and its like.
func verb(n int, one string) string {
	if n == 1 {
		return one
	}
	return strings.TrimSuffix(one, "s")
}
