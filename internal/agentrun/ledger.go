package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/countersign/countersign/internal/approvals"
)

// A Ledger keeps, for each person, the calls that went ahead for them, so that a
// policy can count those of a day. All replicas agree on the order of entries.
type Ledger interface {
	// Enter adds the entry behind those that are there. One whose key is there
	// already stays where it is.
	Enter(ctx context.Context, user approvals.UserID, e approvals.LedgerEntry) error
	// Leave removes the entry, if it is there.
	Leave(ctx context.Context, user approvals.UserID, key string) error
}

// A counting policy has rules that look at the ledger. Only then is it kept.
type counting interface{ CountsToday() bool }

var errNoLedger = errors.New("the policy counts calls, and no ledger is kept")

func (r *rulings) counts() bool {
	c, ok := r.policy.(counting)
	return ok && c.CountsToday()
}

// entryOf names a call in the ledger. A call that is taken up again by another
// worker has the same name, and keeps its place.
func entryOf(run Run, c approvals.ToolCall) string { return string(run.ID) + "/" + string(c.ID) }

// propose is what the policy is asked about a call.
func (r *rulings) propose(run Run, p *plan) approvals.Proposal {
	q := p.proposal(run, r.session.now())
	if r.counts() {
		q.Entry = entryOf(run, p.call)
	}
	return q
}

// enter gives a call that is about to go ahead its place in the ledger. When
// entered is true, the policy has to be asked once more: it now knows which
// calls are before this one, so that of two calls that go ahead at the same
// time each counts the other, or is counted by it.
func (r *rulings) enter(ctx context.Context, run Run, p *plan) (entered bool, err error) {
	if !r.counts() {
		return false, nil
	}
	if r.ledger == nil {
		return false, errNoLedger
	}
	err = r.ledger.Enter(ctx, run.Requester, approvals.LedgerEntry{
		Key: entryOf(run, p.call), Agent: run.Agent, Tool: p.call.Name, At: r.session.now(),
	})
	if err != nil {
		return false, fmt.Errorf("enter call %q in the ledger: %w", string(p.call.ID), err)
	}
	return true, nil
}

// leave gives the place back. If that fails, the call is counted though it did
// not go ahead, which only makes the policy stricter.
func (r *rulings) leave(ctx context.Context, run Run, p *plan) {
	if err := r.ledger.Leave(ctx, run.Requester, entryOf(run, p.call)); err != nil {
		r.session.log(ctx, slog.LevelWarn, "call not removed from the ledger", slog.String("call", string(p.call.ID)), slog.String("err", class(err)))
	}
}
