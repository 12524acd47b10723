package slackui

import (
	"fmt"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	quorumsShown = 5
	namesShown   = 5
)

// verdict says why people are asked and how far they are, or how it ended.
func (c Card) verdict(a approvals.Approval, status approvals.Status, d detail) []para {
	if status == approvals.Pending {
		return append(why(a, d), c.progress(a, d)...)
	}
	return append([]para{line(outcome(a, status)...)}, reasons(a, d)...)
}

func why(a approvals.Approval, d detail) []para {
	if strings.TrimSpace(a.Why) == "" {
		return nil
	}
	return []para{line(styled("Why you are asked: ", bold), say(brief(a.Why, d.words)))}
}

// progress is a line for each quorum, and what was already said against it.
func (c Card) progress(a approvals.Approval, d detail) []para {
	var out []para
	quorums := a.Progress()
	for i, q := range quorums {
		if i == quorumsShown {
			out = append(out, line(say(count(len(quorums)-i, "more quorum")+" must be met.")))
			break
		}
		out = append(out, line(quorum(q)...))
	}
	if len(quorums) == 0 {
		out = append(out, line(styled("Nobody can sign this: the policy names no approvers.", bold)))
	}
	return append(out, reasons(a, d)...)
}

func quorum(q approvals.Progress) []span {
	spans := []span{
		styled(brief(q.Quorum.Name, 60), bold),
		say(fmt.Sprintf(": %d of %s", len(q.By), count(q.Quorum.Need, "signature"))),
	}
	if len(q.By) > 0 {
		spans = append(append(spans, say(" by ")), several(seated(q.By), namesShown)...)
	}
	if q.Quorum.Need < 1 {
		return append(spans, say(", which can never be complete"))
	}
	if len(q.By) >= q.Quorum.Need {
		return append(spans, say(", complete"))
	}
	var from []span
	for _, g := range q.Quorum.From.Groups {
		from = append(from, grouped(g))
	}
	for _, u := range q.Quorum.From.Users {
		from = append(from, named(u))
	}
	if len(from) == 0 {
		from = []span{say("nobody, so it cannot be approved")}
	}
	return append(append(spans, say(", from ")), several(from, namesShown)...)
}

func seated(seats []approvals.Seat) []span {
	spans := make([]span, 0, len(seats))
	for _, s := range seats {
		spans = append(spans, named(s.User))
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

// outcome is how the call ended, by whom and when.
func outcome(a approvals.Approval, status approvals.Status) []span {
	var spans []span
	switch status {
	case approvals.Approved:
		spans = append([]span{styled("✅ Approved", bold), say(" by ")}, several(people(who(a, approvals.Approve)), namesShown)...)
	case approvals.Denied:
		spans = append([]span{styled("⛔ Denied", bold), say(" by ")}, several(people(who(a, approvals.Deny)), namesShown)...)
	case approvals.Expired:
		spans = []span{styled("⌛ Expired", bold), say(": the deadline passed without enough signatures. It does not run.")}
	case approvals.Withdrawn:
		spans = []span{styled("↩ Withdrawn", bold)}
		if a.Ending.By != "" {
			spans = append(spans, say(" by "), named(a.Ending.By))
		}
		spans = append(spans, say(". It does not run."))
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
	if a.Status == approvals.Withdrawn && strings.TrimSpace(a.Ending.Reason) != "" {
		add(a.Ending.Reason, say("The reason:"))
	}
	return out
}
