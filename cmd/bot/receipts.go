package main

import (
	"context"
	"fmt"
	"slices"

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
// none before every call of its request is decided: until then nothing says how
// long the decision can be used.
func (b *bot) sign(ctx context.Context, r intake.Request, c intake.CallStatus) (string, error) {
	outcome, ok := outcomes[c.Outcome]
	mayRun := outcome == receipt.Approved || outcome == receipt.Permitted
	if !ok || c.DecidedAt.IsZero() || mayRun && c.UsableUntil.IsZero() {
		return "", nil
	}
	run, err := b.store.Run(ctx, r.ID)
	if err != nil {
		return "", err
	}
	s := receipt.Statement{
		Request: string(r.ID), Call: string(c.ID), Tool: c.Tool, Arguments: receipt.DigestOf(c.Args), Fingerprint: c.Fingerprint,
		Agent: run.Agent, Outcome: outcome, Rule: c.Rule, DecidedAt: c.DecidedAt,
	}
	if mayRun {
		s.NotAfter = c.UsableUntil
	}
	if r.Batch != "" {
		batch, err := b.desk.Batch(ctx, r.Batch)
		if err != nil {
			return "", err
		}
		if a, ok := batch.Approval(c.ID); ok {
			addPeople(&s, a)
		}
	}
	signed, err := b.receipts.Sign(s)
	if err != nil {
		return "", fmt.Errorf("sign the receipt of call %q: %w", string(c.ID), err)
	}
	return signed, nil
}

// addPeople names who decided and who changed the arguments.
func addPeople(s *receipt.Statement, a approvals.Approval) {
	var people []receipt.Person
	for _, seat := range a.Outcome(s.DecidedAt).By {
		people = append(people, receipt.Person{ID: string(seat.User), For: string(seat.For)})
	}
	switch s.Outcome {
	case receipt.Approved:
		s.Approvers = people
	case receipt.Denied:
		s.Deniers = people
	case receipt.Permitted, receipt.Refused, receipt.Expired, receipt.Withdrawn, receipt.Superseded:
	}
	for _, m := range a.Amendments {
		p := receipt.Person{ID: string(m.By.User)}
		if !slices.Contains(s.Editors, p) {
			s.Editors = append(s.Editors, p)
		}
	}
}
