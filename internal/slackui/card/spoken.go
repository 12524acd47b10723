package card

import (
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// summariesSpoken is how many calls the text of a message names.
const summariesSpoken = 3

// sentence is the card for notifications and for people who cannot see blocks:
// who asks, what it would do, how bad that is, who approves it and until when,
// and how it ended.
func (c Card) sentence(now time.Time) blockkit.Fallback {
	calls := c.OnCard()
	said := blockkit.Ours("%s asked ", blockkit.Person(c.Batch.Requester)).Fallback().Then(blockkit.Escape(blockkit.Brief(c.Batch.Agent, 60)))
	if len(calls) == 1 {
		said = said.Then(blockkit.Escape(": " + c.Summary(calls[0]) + "."))
	} else {
		said = said.Then(blockkit.Escape(fmt.Sprintf(" for %s:", blockkit.Count(len(calls), "call"))))
		for i, a := range calls {
			if i == summariesSpoken {
				said = said.Then(blockkit.Escape(fmt.Sprintf(" and %d more", len(calls)-i)))
				break
			}
			said = said.Then(blockkit.Escape(fmt.Sprintf(" %d. %s;", c.Part*CallsPerCard+i+1, c.Summary(a))))
		}
		said = said.Then(blockkit.Escape(" " + c.standing(now) + "."))
	}
	if s, n, open := c.worst(now); open > 0 {
		said = said.Then(blockkit.Escape(" " + riskOf(s, n, open))).Then(c.needs(now).Fallback())
	}
	if len(calls) != 1 {
		return said
	}
	if o := calls[0].Outcome(now); o.Status != approvals.Pending {
		said = said.Then(blockkit.Escape(" " + ended(o)))
		if len(o.By) > 0 {
			said = said.Then(blockkit.Ours(" by %s", Names(Users(o.By))).Fallback())
		}
		said = said.Then(blockkit.Escape("."))
	}
	if word := executed[calls[0].Execution.State]; word != "" {
		said = said.Then(blockkit.Escape(" " + word + "."))
	}
	return said
}

// needs says whose approval the open calls of the card need, and until when.
func (c Card) needs(now time.Time) blockkit.Mrkdwn {
	var from []blockkit.Mrkdwn
	var ends time.Time
	add := func(m blockkit.Mrkdwn) {
		if !slices.Contains(from, m) {
			from = append(from, m)
		}
	}
	for _, a := range c.OnCard() {
		if !a.OpenAt(now) {
			continue
		}
		for _, q := range a.Progress() {
			if len(q.By) >= q.Quorum.Need {
				continue
			}
			asked := c.Batch.Unbarred(a, q.Quorum.From)
			for _, g := range asked.Groups {
				add(blockkit.Group(g))
			}
			for _, u := range asked.Users {
				add(blockkit.Person(u))
			}
		}
		if d := a.Requirement.Deadline; !d.IsZero() && (ends.IsZero() || d.Before(ends)) {
			ends = d
		}
	}
	said := blockkit.Ours(" Nobody can approve this.")
	if len(from) > 0 {
		if len(from) > blockkit.NamesShown {
			from = append(from[:blockkit.NamesShown:blockkit.NamesShown], blockkit.Ours("%s more", blockkit.Num(len(from)-blockkit.NamesShown)))
		}
		said = blockkit.Ours(" Waiting for approval from %s.", blockkit.And(from))
	}
	if !ends.IsZero() {
		said = blockkit.Ours("%s Expires %s.", said, blockkit.When(ends))
	}
	return said
}
