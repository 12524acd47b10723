package card

import (
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// participants names the people besides the requester who wrote to the agent,
// if that bars them from approving an open call of the card.
func (o opening) participants() []blockkit.Para {
	open := slices.DeleteFunc(slices.Clone(o.OnCard()), func(a approvals.Approval) bool { return a.Status != approvals.Pending })
	barred := 0
	for _, a := range open {
		if o.Batch.BarsParticipants(a.Requirement) {
			barred++
		}
	}
	what := "it"
	switch {
	case barred == 0:
		return nil
	case barred < len(open):
		what = sayTheCalls
	case len(open) > 1:
		what = "these calls"
	}
	others := o.Batch.Participants
	if _, shared := o.Batch.Requester.Service(); shared {
		return []blockkit.Para{blockkit.Line(append(blockkit.ListSpans(blockkit.PersonSpans(others), blockkit.NamesShown),
			blockkit.Say(" "+blockkit.PluralForm(len(others), "has", "have")+saySharers+what+"."))...)}
	}
	wrote := sayAlsoWrote + o.itsThread() + ", so "
	if o.Batch.Executor != "" {
		wrote = sayMayHaveAsked
	}
	if len(others) == 1 {
		return []blockkit.Para{blockkit.Line(blockkit.PersonSpan(others[0]), blockkit.Say(wrote+"neither "), blockkit.PersonSpan(o.Batch.Requester),
			blockkit.Say(" nor "), blockkit.PersonSpan(others[0]), blockkit.Say(" can approve "+what+"."))}
	}
	return []blockkit.Para{blockkit.Line(append(blockkit.ListSpans(blockkit.PersonSpans(others), blockkit.NamesShown),
		blockkit.Say(wrote+sayNoneCan+what+", nor can "), blockkit.PersonSpan(o.Batch.Requester), blockkit.Say("."))...)}
}
