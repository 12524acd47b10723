package delivery

import (
	"context"
	"slices"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/summary"
)

// callsTold is how many calls a notice names one by one, callsSpoken how many its
// text names, and summaryRunes how long the words of each may be.
const (
	callsTold    = 10
	callsSpoken  = 3
	summaryRunes = 160
)

// message is the notice as a message: which calls wait for the person, which of their
// decisions no longer count, and which calls nobody can approve.
func (n *Notices) message(ctx context.Context, reader directory.Reader, b approvals.Batch, l notice, person approvals.UserID) blockkit.Message {
	var paras []blockkit.Para
	var text blockkit.Fallback
	if len(l.waits) > 0 {
		head := blockkit.Count(len(l.waits), "call") + " " + blockkit.Verb(len(l.waits), "waits") + " for your approval"
		if slices.ContainsFunc(l.waits, func(w waitsFor) bool { return b.Approvals[w.call].InDoubt() }) {
			head = blockkit.Count(len(l.waits), "call") + " " + blockkit.Verb(len(l.waits), "waits") + " for your decision"
		}
		text = blockkit.Ours("%s asked ", blockkit.Person(b.Requester)).Fallback().
			Then(blockkit.Escape(blockkit.Brief(b.Agent, 60) + ". " + head + ": ")).
			Then(n.spokenWaits(ctx, reader, b, l.waits))
		paras = append(paras, blockkit.Line(
			blockkit.Styled(head, blockkit.Bold),
			blockkit.Say(": "), blockkit.PersonSpan(b.Requester), blockkit.Say(" asked the agent "), blockkit.Styled(blockkit.Brief(b.Agent, 60), blockkit.Bold), blockkit.Say(".")))
		paras = append(paras, callLines(l.waits, func(w waitsFor) []blockkit.Span { return n.waiting(ctx, reader, b, w, person) })...)
	}
	if len(l.cleared) > 0 {
		lost := blockkit.Number(len(l.cleared)) + sayNoLongerCounts + blockkit.Verb(len(l.cleared), "counts")
		text = text.Then(blockkit.Escape(" " + lost + ". ")).Then(n.spokenCleared(ctx, reader, b, l.cleared))
		paras = append(paras, blockkit.Line(blockkit.Styled(lost, blockkit.Bold), blockkit.Say(sayEditedAfter)))
		paras = append(paras, callLines(l.cleared, func(c clearedBy) []blockkit.Span { return n.changed(ctx, reader, b, c, person) })...)
	}
	if len(l.stuck) > 0 {
		told, more := n.stuckWords(ctx, reader, b, l.stuck, person)
		text, paras = text.Then(blockkit.Escape(" "+told)), append(paras, more...)
	}
	where := blockkit.Ours(sayReadAndDecide)
	if len(l.waits)+len(l.cleared) == 0 {
		where = blockkit.Ours(sayCardShows)
	}
	return blockkit.Message{Text: text.Trim(), Blocks: []slack.Block{blockkit.RichText(paras...), blockkit.Small(where)}}
}

// callLines has a line for each of the first calls, and says how many more there are.
func callLines[C any](calls []C, line func(C) []blockkit.Span) []blockkit.Para {
	var paras []blockkit.Para
	for _, c := range calls[:min(callsTold, len(calls))] {
		paras = append(paras, blockkit.Line(line(c)...))
	}
	if more := len(calls) - callsTold; more > 0 {
		paras = append(paras, blockkit.Line(blockkit.Say("and "+blockkit.Number(more)+" more.")))
	}
	return paras
}

// spokenWaits says of the calls that wait what they do, how bad that is and until when
// they wait, for people who cannot see blocks.
func (n *Notices) spokenWaits(ctx context.Context, reader directory.Reader, b approvals.Batch, waits []waitsFor) blockkit.Fallback {
	var out blockkit.Fallback
	for i, w := range waits {
		if i == callsSpoken {
			return out.Then(blockkit.Escape("And " + blockkit.Number(len(waits)-i) + " more."))
		}
		a := b.Approvals[w.call]
		out = out.Then(blockkit.Escape(doesWords(ctx, reader, b, a) + ". " + blockkit.Risk(a.Severity) + ". "))
		if d := a.Requirement.Deadline; !d.IsZero() {
			out = out.Then(blockkit.Ours(sayDecideBy, blockkit.When(d)).Fallback())
		}
	}
	return out
}

// spokenCleared says of the calls whose decisions were cleared what they do now and who
// edited them.
func (n *Notices) spokenCleared(ctx context.Context, reader directory.Reader, b approvals.Batch, cleared []clearedBy) blockkit.Fallback {
	var out blockkit.Fallback
	for i, c := range cleared {
		if i == callsSpoken {
			return out.Then(blockkit.Escape("And " + blockkit.Number(len(cleared)-i) + " more."))
		}
		a := b.Approvals[c.call]
		out = out.Then(blockkit.Ours(sayEdited, blockkit.Person(c.by.By.User)).Fallback()).
			Then(blockkit.Escape(doesWords(ctx, reader, b, a) + ". " + blockkit.Risk(a.Severity) + ". "))
	}
	return out
}

// does says what a call does, and beside it how bad that is.
func does(ctx context.Context, reader directory.Reader, b approvals.Batch, a approvals.Approval) []blockkit.Span {
	return []blockkit.Span{
		blockkit.Say("• "), blockkit.Styled(doesWords(ctx, reader, b, a), blockkit.Bold),
		blockkit.Say(" · " + blockkit.Risk(a.Severity)),
	}
}

// doesWords says what a call does: in words if the Reader reads its arguments, else the
// name of its tool in words. It marks a call in doubt as such.
func doesWords(ctx context.Context, reader directory.Reader, b approvals.Batch, a approvals.Approval) string {
	line := summary.Words(a.Call.Name)
	if reader.Reads(b) {
		if call, err := reader.Call(ctx, b, a.Call.ID); err == nil {
			line = summary.Of(a.Summary, call.Name, call.Args, a.WriteOnly)
		}
	}
	if a.InDoubt() {
		line = sayInDoubt + line
	}
	return blockkit.Brief(line, summaryRunes)
}

// waiting is the line of one call that waits: what it does, since when and until when
// it waits, and for whom.
func (n *Notices) waiting(ctx context.Context, reader directory.Reader, b approvals.Batch, w waitsFor, person approvals.UserID) []blockkit.Span {
	a := b.Approvals[w.call]
	spans := append(does(ctx, reader, b, a), blockkit.Say(" · asked "+blockkit.Ago(n.Now().Sub(b.OpenedAt))))
	if d := a.Requirement.Deadline; !d.IsZero() {
		spans = append(spans, blockkit.Say(", decide by "), blockkit.DateSpan(d))
	}
	for i, p := range w.places {
		if i == blockkit.NamesShown {
			spans = append(spans, blockkit.Say(", and for "+blockkit.Number(len(w.places)-i)+" more"))
			break
		}
		words := ", for "
		if i > 0 {
			words = ", or for "
		}
		spans = append(spans, blockkit.Say(words), blockkit.PersonSpan(p.User), blockkit.Say(sayAwayUntil), blockkit.DateSpan(p.Until))
	}
	if len(w.places) > 0 && w.myself {
		spans = append(spans, blockkit.Say(", or for yourself"))
	}
	if w.added {
		spans = append(spans, blockkit.Say(sayStillUndecided))
	}
	return append(spans, n.link(ctx, b, w.call, person)...)
}

// changed is the line of a call whose decision was cleared.
func (n *Notices) changed(ctx context.Context, reader directory.Reader, b approvals.Batch, c clearedBy, person approvals.UserID) []blockkit.Span {
	a := b.Approvals[c.call]
	next := sayDecideAgain
	if !a.OpenAt(n.Now()) {
		next = sayDecidedWithout
	}
	spans := append(does(ctx, reader, b, a),
		blockkit.Say(": "), blockkit.PersonSpan(c.by.By.User), blockkit.Say(" edited the arguments ("), blockkit.DateSpan(c.by.At), blockkit.Say(")"+next))
	return append(spans, n.link(ctx, b, c.call, person)...)
}

// link links the person to the card of a call, which has the arguments that a notice never has.
func (n *Notices) link(ctx context.Context, b approvals.Batch, call int, person approvals.UserID) []blockkit.Span {
	if link := n.Placements.Link(ctx, b, call, person); link != "" {
		return []blockkit.Span{blockkit.Say(" — "), slack.NewRichTextSectionLinkElement(link, "open the card", nil)}
	}
	list, _ := n.Placements.Listing(ctx, b)
	return append([]blockkit.Span{blockkit.Say(".")}, list...)
}

// call is the message in the thread when too many people could help to tell each of
// them: it mentions their groups.
func (n *Notices) call(ctx context.Context, reader directory.Reader, b approvals.Batch, news news) blockkit.Message {
	waits := make([]waitsFor, 0, len(news.groups))
	var groups []approvals.GroupID
	var users []approvals.UserID
	for i := range b.Approvals {
		from, ok := news.groups[i]
		if !ok {
			continue
		}
		waits = append(waits, waitsFor{call: i})
		for _, f := range from {
			groups, users = append(groups, f.Groups...), append(users, f.Users...)
		}
	}
	slices.Sort(groups)
	slices.Sort(users)
	var from []blockkit.Span
	for _, g := range slices.Compact(groups) {
		from = append(from, blockkit.GroupSpan(g))
	}
	from = append(from, blockkit.PersonSpans(slices.Compact(users))...)
	head := blockkit.Count(len(waits), "call") + " still " + blockkit.Verb(len(waits), "waits") + " for approval"
	paras := []blockkit.Para{blockkit.Line(append([]blockkit.Span{blockkit.Styled(head, blockkit.Bold), blockkit.Say(", from ")}, blockkit.ListSpans(from, maxRecipients)...)...)}
	paras = append(paras, callLines(waits, func(w waitsFor) []blockkit.Span { return n.waiting(ctx, reader, b, w, "") })...)
	return blockkit.Message{Text: blockkit.Escape(head + ": ").Then(n.spokenWaits(ctx, reader, b, waits)).Trim(), Blocks: []slack.Block{blockkit.RichText(paras...)}}
}
