package slackui

import (
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// barsParticipants reports whether those who wrote to the agent too may not
// approve a call that needs this.
func (c Card) barsParticipants(r approvals.Requirement) bool {
	return r.Separation && !r.ParticipantsMaySign && len(c.Batch.Participants) > 0
}

// participants names those who, besides the requester, asked for the calls of
// the card that are still open, where that keeps them from approving.
func (c Card) participants() []para {
	open := slices.DeleteFunc(slices.Clone(c.calls()), func(a approvals.Approval) bool { return a.Status != approvals.Pending })
	barred := 0
	for _, a := range open {
		if c.barsParticipants(a.Requirement) {
			barred++
		}
	}
	what := "it"
	switch {
	case barred == 0:
		return nil
	case barred < len(open):
		what = "the calls that say so"
	case len(open) > 1:
		what = "these calls"
	}
	others := c.Batch.Participants
	wrote := " also wrote to the agent in " + c.itsThread() + ", so "
	if len(others) == 1 {
		return []para{line(named(others[0]), say(wrote+"neither "), named(c.Batch.Requester),
			say(" nor "), named(others[0]), say(" can approve "+what+"."))}
	}
	return []para{line(append(several(people(others), namesShown),
		say(wrote+"none of them can approve "+what+", nor can "), named(c.Batch.Requester), say("."))...)}
}
