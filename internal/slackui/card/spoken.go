package card

import (
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/verdict"
)

// summariesSpoken is how many calls the text of a message names.
const summariesSpoken = 3

// sentence is the card for notifications and for people who cannot see blocks:
// who asks, what it would do, how bad that is, who approves it and until when,
// and how it ended.
func (d *drawing) sentence() blockkit.Fallback {
	calls := d.OnCard()
	said := blockkit.Ours("%s asked ", blockkit.Person(d.Batch.Requester)).Fallback().Then(blockkit.Escape(blockkit.Brief(d.Batch.Agent, 60)))
	which := blockkit.Count(len(calls), "call")
	if len(d.Batch.Approvals) > CallsPerCard {
		which = partOf(d.Batch, "call", d.Part)
	}
	switch {
	case len(d.Batch.Approvals) == 1:
		said = said.Then(blockkit.Escape(": " + d.Summary(calls[0]) + "."))
	case len(calls) == 1:
		said = said.Then(blockkit.Escape(" for " + which + ": " + d.Summary(calls[0]) + "."))
	default:
		said = said.Then(blockkit.Escape(" for " + which + ":"))
		for i, a := range calls {
			if i == summariesSpoken {
				said = said.Then(blockkit.Escape(fmt.Sprintf(" and %d more;", len(calls)-i)))
				break
			}
			said = said.Then(blockkit.Escape(fmt.Sprintf(" %d. %s;", d.Part*CallsPerCard+i+1, d.Summary(a))))
		}
		said = said.Then(blockkit.Escape(" " + d.standing() + "."))
	}
	for _, a := range calls {
		if a.InDoubt() && a.OpenAt(d.now) {
			said = said.Then(blockkit.Escape(" " + inDoubt(a)))
		}
	}
	if risk, open := d.risk(); open > 0 {
		said = said.Then(blockkit.Escape(" " + risk)).Then(d.needs().Fallback())
	}
	if len(calls) != 1 {
		return said
	}
	if o := calls[0].Outcome(d.now); o.Status != approvals.Pending {
		said = said.Then(blockkit.Escape(" " + ended(o)))
		if len(o.By) > 0 {
			said = said.Then(blockkit.Ours(" by %s", Names(verdict.Users(o.By))).Fallback())
		}
		said = said.Then(blockkit.Escape("."))
	}
	if word := executed[calls[0].Execution.State]; word != "" {
		said = said.Then(blockkit.Escape(" " + word + "."))
	} else if lapsed, _ := Unused(d.Batch, d.now); lapsed {
		said = said.Then(blockkit.Escape(" " + sayNotUsedInTime))
	}
	return said
}

// needs says whose approval the open calls of the card need, and until when.
func (d *drawing) needs() blockkit.Mrkdwn {
	var from []blockkit.Mrkdwn
	var ends time.Time
	ending := map[int64]bool{} // when open calls end
	add := func(m blockkit.Mrkdwn) {
		if !slices.Contains(from, m) {
			from = append(from, m)
		}
	}
	for _, a := range d.OnCard() {
		if !a.OpenAt(d.now) {
			continue
		}
		for _, q := range a.Progress() {
			if len(q.By) >= q.Quorum.Need {
				continue
			}
			asked := d.Batch.Unbarred(a, q.Quorum.From)
			for _, g := range asked.Groups {
				add(blockkit.Group(g))
			}
			for _, u := range asked.Users {
				add(blockkit.Person(u))
			}
		}
		end := a.Requirement.Deadline
		ending[end.Unix()] = true
		if !end.IsZero() && (ends.IsZero() || end.Before(ends)) {
			ends = end
		}
	}
	said := blockkit.Ours(sayNobodyCanText)
	if len(from) > 0 {
		if len(from) > blockkit.NamesShown {
			from = append(from[:blockkit.NamesShown:blockkit.NamesShown], blockkit.Ours("%s more", blockkit.Num(len(from)-blockkit.NamesShown)))
		}
		said = blockkit.Ours(sayWaitingFor, blockkit.And(from))
		if d.anyDoubt() {
			said = blockkit.Ours(sayWaitingForDecision, blockkit.And(from))
		}
	}
	switch {
	case ends.IsZero():
	case len(ending) > 1:
		said = blockkit.Ours(sayFirstExpires, said, blockkit.When(ends))
	default:
		said = blockkit.Ours("%s Expires %s.", said, blockkit.When(ends))
	}
	return said
}
