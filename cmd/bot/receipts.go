package main

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/receipt"
)

// outcomes are those that a receipt can state. A call without one, such as an
// external call that has its result, has no receipt.
var outcomes = map[intake.Outcome]receipt.Outcome{
	intake.OutcomeAllowed: receipt.Permitted, intake.OutcomeRefused: receipt.Refused, intake.OutcomeApproved: receipt.Approved,
	intake.OutcomeDenied: receipt.Denied, intake.OutcomeExpired: receipt.Expired, intake.OutcomeWithdrawn: receipt.Withdrawn,
	intake.OutcomeSuperseded: receipt.Superseded,
}

// sign returns the receipt of a call of a remote agent. A call that may run has
// none before every call of its request is decided, or it is claimed: until then
// nothing says how long the decision can be used.
func (b *bot) sign(r intake.Request, c intake.CallStatus) (string, error) {
	outcome, ok := outcomes[c.Outcome]
	mayRun := outcome == receipt.Approved || outcome == receipt.Permitted
	if !ok || c.DecidedAt.IsZero() || mayRun && c.UsableUntil.IsZero() {
		return "", nil
	}
	s := receipt.Statement{
		Request: string(r.ID), Call: string(c.ID), Tool: c.Tool, Arguments: receipt.DigestOf(c.Args), Fingerprint: c.Fingerprint,
		Place: receipt.Place(c.Place), Agent: r.Agent, Outcome: outcome, Deniers: peopleOf(c.Deniers), Editors: peopleOf(c.Editors), DecidedAt: c.DecidedAt,
	}
	s.Rule, s.Policy, _ = strings.Cut(c.Rule, "@") // the name of a rule has none
	if mayRun {
		s.NotAfter = c.UsableUntil
	}
	for _, seat := range c.Approvers {
		s.Approvers = append(s.Approvers, receipt.Person{ID: string(seat.User), For: string(seat.For)})
	}
	signed, err := b.receipts.Sign(s)
	if err != nil {
		return "", fmt.Errorf("sign the receipt of call %q: %w", string(c.ID), err)
	}
	return signed, nil
}

func peopleOf(ids []approvals.UserID) []receipt.Person {
	var all []receipt.Person
	for _, id := range ids {
		all = append(all, receipt.Person{ID: string(id)})
	}
	return all
}
