package slackui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	quorumsShown = 5
)

// verdict says why people are asked and how far they are, or how it ended, and
// what they wrote. None of these is folded away with another.
func (c Card) verdict(a approvals.Approval, status approvals.Status, d detail) [][]para {
	said := reasons(a, d)
	if status != approvals.Pending {
		return nonempty([]para{line(outcome(a, status)...)}, said)
	}
	because, far := why(a, d), progress(c.Batch, a)
	if len(because)+len(far)+len(said) <= few {
		return [][]para{slices.Concat(because, far, said)}
	}
	return nonempty(because, far, said)
}

// few paragraphs stay together.
const few = 3

func nonempty(groups ...[]para) [][]para {
	return slices.DeleteFunc(groups, func(g []para) bool { return len(g) == 0 })
}

func why(a approvals.Approval, d detail) []para {
	if strings.TrimSpace(a.Why) == "" {
		return nil
	}
	return []para{line(styled("Why you are asked: ", bold), say(brief(a.Why, d.words)))}
}

// progress is a line for each quorum, with its alternatives under one another.
// It names nobody as missing who may not sign.
func progress(b approvals.Batch, a approvals.Approval) []para {
	all := a.Progress()
	for i := range all {
		all[i].Quorum.From = unbarred(b, a, all[i].Quorum.From)
	}
	if len(all) == 0 {
		return []para{line(styled("Nobody can sign this: the policy names no approvers.", bold))}
	}
	var out []para
	lines := 0
	for _, g := range grouping(all) {
		if lines >= quorumsShown {
			out = append(out, line(say("More quorums must be met: the policy asks for "+number(len(all))+" in all.")))
			break
		}
		if g.choice == 0 {
			out = append(out, line(quorum(g.options[0][0], later(all, g.options[0][0].Quorum.Stage), false)...))
			lines++
			continue
		}
		out = append(out, g.paras(later(all, g.options[0][0].Quorum.Stage))...)
		lines += len(g.options)
	}
	return out
}

// A gathering is one quorum that is needed always, or the options of a choice.
type gathering struct {
	choice  int
	options [][]approvals.Progress
}

// grouping gathers the quorums as they are read: the stages in their order, and
// the options of a choice together.
func grouping(all []approvals.Progress) []gathering {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y approvals.Progress) int { return x.Quorum.Stage - y.Quorum.Stage })
	var out []gathering
	for _, q := range all {
		g := -1
		if q.Quorum.Choice != 0 {
			g = slices.IndexFunc(out, func(g gathering) bool { return g.choice == q.Quorum.Choice })
		}
		if g < 0 {
			g, out = len(out), append(out, gathering{choice: q.Quorum.Choice})
		}
		o := slices.IndexFunc(out[g].options, func(o []approvals.Progress) bool { return o[0].Quorum.Option == q.Quorum.Option })
		if o < 0 {
			o, out[g].options = len(out[g].options), append(out[g].options, nil)
		}
		out[g].options[o] = append(out[g].options[o], q)
	}
	return out
}

// paras lists alternatives, of which one is enough.
func (g gathering) paras(after []string) []para {
	met := slices.IndexFunc(g.options, complete)
	var items []para
	for i, o := range g.options {
		if i == quorumsShown {
			items = append(items, line(say("or one of "+number(len(g.options)-i)+" more ways")))
			break
		}
		var spans []span
		for j, q := range o {
			if j > 0 {
				spans = append(spans, say("; together with "))
			}
			spans = append(spans, quorum(q, nil, met >= 0 && met != i)...)
		}
		items = append(items, line(spans...))
	}
	head := []span{styled("Any of:", bold)}
	if met >= 0 {
		head = []span{styled("Any of", bold), say(", complete:")}
	} else if len(after) > 0 {
		head = append(head, say(" "+asked(after)))
	}
	return []para{line(head...), slack.NewRichTextList(slack.RTEListBullet, 0, items...)}
}

func complete(o []approvals.Progress) bool {
	return !slices.ContainsFunc(o, func(q approvals.Progress) bool { return q.Quorum.Need < 1 || len(q.By) < q.Quorum.Need })
}

// later names the quorums that must be met before those of a stage are asked.
func later(all []approvals.Progress, stage int) []string {
	var names []string
	for _, g := range grouping(all) {
		if g.options[0][0].Quorum.Stage >= stage || slices.ContainsFunc(g.options, complete) {
			continue
		}
		var either []string
		for _, o := range g.options {
			var together []string
			for _, q := range o {
				together = append(together, brief(q.Quorum.Name, 60))
			}
			either = append(either, strings.Join(together, " with "))
		}
		names = append(names, strings.Join(either, " or "))
	}
	return names
}

func asked(after []string) string {
	if len(after) == 1 {
		return "asked once " + after[0] + " has signed"
	}
	for i, name := range after {
		if strings.Contains(name, " or ") {
			after[i] = "(" + name + ")"
		}
	}
	return "asked once " + list(after) + " have signed"
}

// quorum says how far one is. after are those that come first; spare is that
// another one was enough.
func quorum(q approvals.Progress, after []string, spare bool) []span {
	spans := []span{
		styled(brief(q.Quorum.Name, 60), bold),
		say(fmt.Sprintf(": %d of %s", len(q.By), count(q.Quorum.Need, "signature"))),
	}
	if len(q.By) > 0 {
		spans = append(append(spans, say(" by ")), seated(q.By)...)
	}
	switch {
	case q.Quorum.Need < 1:
		return append(spans, say(", which can never be complete"))
	case len(q.By) >= q.Quorum.Need:
		return append(spans, say(", complete"))
	case spare:
		return append(spans, say(", not needed any more"))
	}
	var from []span
	for _, g := range q.Quorum.From.Groups {
		from = append(from, grouped(g))
	}
	for _, u := range q.Quorum.From.Users {
		from = append(from, named(u))
	}
	if len(from) == 0 {
		from = []span{say("nobody who may sign, so it cannot be approved")}
	}
	spans = append(append(spans, say(", from ")), several(from, namesShown)...)
	if len(after) > 0 {
		spans = append(spans, say(", "+asked(after)))
	}
	return spans
}

// seated names who signed, and for whom.
func seated(seats []approvals.Seat) []span {
	var spans []span
	for i, s := range seats {
		if i == namesShown {
			return append(spans, say(" and "+number(len(seats)-i)+" more"))
		}
		if i > 0 {
			spans = append(spans, say(", "))
		}
		if spans = append(spans, named(s.User)); s.For != "" {
			spans = append(spans, say(" (for "), named(s.For), say(", who is away)"))
		}
	}
	return spans
}

func people(ids []approvals.UserID) []span {
	spans := make([]span, 0, len(ids))
	for _, id := range ids {
		spans = append(spans, named(id))
	}
	return spans
}

// withdrawn is who ended the call without a decision.
func withdrawn(a approvals.Approval) []span {
	if a.Superseded() {
		return []span{
			styled("↩ Superseded", bold), say(": "), named(a.Ending.By),
			say(" wrote something new before it was settled. It does not run."),
		}
	}
	spans := []span{styled("↩ Withdrawn", bold)}
	if a.Ending.By != "" {
		spans = append(spans, say(" by "), named(a.Ending.By))
	}
	return append(spans, say(". It does not run."))
}

// outcome is how the call ended, by whom and when.
func outcome(a approvals.Approval, status approvals.Status) []span {
	var spans []span
	switch status {
	case approvals.Approved:
		spans = append([]span{styled("✅ Approved", bold), say(" by ")}, seated(signed(a))...)
	case approvals.Denied:
		spans = append([]span{styled("⛔ Denied", bold), say(" by ")}, several(people(who(a, approvals.Deny)), namesShown)...)
	case approvals.Expired:
		spans = []span{styled("⌛ Expired", bold), say(": it was not denied, the time to sign it ran out. It does not run.")}
	case approvals.Withdrawn:
		spans = withdrawn(a)
	case approvals.Pending:
		return []span{say("Waiting.")}
	default:
		return []span{say("Its status is not known to this version.")}
	}
	if at := endedAt(a, status); !at.IsZero() {
		spans = append(spans, say(" ("), dated(at), say(")"))
	}
	return spans
}

func endedAt(a approvals.Approval, status approvals.Status) time.Time {
	if a.Ending.At.IsZero() && status == approvals.Expired {
		return a.Requirement.Deadline
	}
	return a.Ending.At
}

// signed is who approved, in their order, and for whom each counted.
func signed(a approvals.Approval) []approvals.Seat {
	stands := map[approvals.UserID]approvals.UserID{}
	for _, q := range a.Progress() {
		for _, s := range q.By {
			stands[s.User] = s.For
		}
	}
	var seats []approvals.Seat
	for _, u := range who(a, approvals.Approve) {
		seats = append(seats, approvals.Seat{User: u, For: stands[u]})
	}
	return seats
}

// who returns the people with this verdict, in their order.
func who(a approvals.Approval, v approvals.Verdict) []approvals.UserID {
	var ids []approvals.UserID
	for _, d := range a.Decisions {
		if d.Verdict == v {
			ids = append(ids, d.By.User)
		}
	}
	return ids
}

// reasons quotes what people said, the denials first. While the call is open
// a denial without words is told too: it counts.
func reasons(a approvals.Approval, d detail) []para {
	var out []para
	shown := 0
	add := func(reason string, spans ...span) {
		if shown++; shown > namesShown {
			return
		}
		out = append(out, line(spans...))
		if text, left := cut(visible(strings.TrimSpace(reason)), d.words); text != "" {
			if left > 0 {
				text += fmt.Sprintf(" ⟦%s left out⟧", count(left, "character"))
			}
			out = append(out, quoted(text))
		}
	}
	for _, v := range []approvals.Verdict{approvals.Deny, approvals.Approve} {
		for _, said := range a.Decisions {
			open, silent := a.Status == approvals.Pending, strings.TrimSpace(said.Reason) == ""
			switch {
			case said.Verdict != v:
			case v == approvals.Deny && open && silent:
				add("", named(said.By.User), say(" denied it."))
			case v == approvals.Deny && open:
				add(said.Reason, named(said.By.User), say(" denied it:"))
			case !silent:
				add(said.Reason, named(said.By.User), say(" wrote:"))
			}
		}
	}
	if a.Status == approvals.Withdrawn && !a.Superseded() && strings.TrimSpace(a.Ending.Reason) != "" {
		add(a.Ending.Reason, say("The reason:"))
	}
	return out
}

const namesShown = 5
