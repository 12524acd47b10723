package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A Ledger keeps, for each person, the calls that went ahead for them, so that a
// policy can count those of a day. All replicas agree on the order of entries.
type Ledger interface {
	// Enter adds the entry behind those that are there. One whose key is there
	// already stays where it is, unless it is older than since: then it is moved.
	Enter(ctx context.Context, user approvals.UserID, e approvals.LedgerEntry, since time.Time) error
	// Leave removes the entry, if it is there.
	Leave(ctx context.Context, user approvals.UserID, key string) error
}

// A counting policy has rules that look at the ledger. Only then is it kept.
type counting interface {
	CountsToday() bool
	Midnight(at time.Time) time.Time // when the day of this moment began
}

var errNoLedger = errors.New("the policy counts calls, and no ledger is kept")

// A tally enters calls in the ledger, if the policy counts them.
type tally struct {
	policy approvals.Policy
	ledger Ledger // nil if none is kept
}

func (t tally) counts() bool {
	c, ok := t.policy.(counting)
	return ok && c.CountsToday()
}

// today is when the day of this moment began. The policy counts calls.
func (t tally) today(at time.Time) time.Time {
	if c, ok := t.policy.(counting); ok {
		return c.Midnight(at)
	}
	return time.Time{}
}

// entryOf names a call in the ledger. A call that is taken up again by another
// worker has the same name, and keeps its place.
func entryOf(run Run, c approvals.ToolCall) string {
	id := run.ID
	if run.CallsOnly {
		id = run.Parent // where the call was ruled on has counted it
	}
	return string(id) + "/" + string(c.ID)
}

// propose names the call of the proposal in the ledger.
func (t tally) propose(run Run, q approvals.Proposal) approvals.Proposal {
	if t.counts() {
		q.Entry = entryOf(run, q.Call)
	}
	return q
}

// enter gives a call that is about to go ahead its place in the ledger. When
// entered is true, the policy has to be asked once more: it now knows which
// calls are before this one, so that of two calls that go ahead at the same
// time each counts the other, or is counted by it. A place from before since is
// given up for a new one.
func (t tally) enter(ctx context.Context, run Run, c approvals.ToolCall, at, since time.Time) (entered bool, err error) {
	if !t.counts() {
		return false, nil
	}
	if t.ledger == nil {
		return false, errNoLedger
	}
	err = t.ledger.Enter(ctx, run.Requester, approvals.LedgerEntry{
		Key: entryOf(run, c), Agent: run.Agent, Tool: c.Name, At: at,
	}, since)
	if err != nil {
		return false, fmt.Errorf("call %q: %w", string(c.ID), err)
	}
	return true, nil
}

// rule has judge rule on a call that nobody has approved. One that may run is entered
// in the ledger, if there is one, and ruled on once more.
func (t tally) rule(ctx context.Context, run Run, c approvals.ToolCall, now func() time.Time, log *slog.Logger, judge func() approvals.Ruling) approvals.Ruling {
	ruling := judge()
	if _, permitted := ruling.(approvals.Permit); !permitted {
		return ruling
	}
	entered, err := t.enter(ctx, run, c, now(), time.Time{})
	if err != nil {
		log.ErrorContext(ctx, "ledger failed", slog.String("run", string(run.ID)), slog.String("call", string(c.ID)), slog.String("err", class(err)))
		return approvals.Ask{Requirement: t.policy.Strictest(now()), Why: whyNoRuling, Unjudged: true}
	}
	if !entered {
		return ruling
	}
	ruling = judge()
	if _, permitted := ruling.(approvals.Permit); !permitted {
		t.leave(ctx, run, c, log)
	}
	return ruling
}

// leave gives the place back. If that fails, the call is counted though it did
// not go ahead, which only makes the policy stricter.
func (t tally) leave(ctx context.Context, run Run, c approvals.ToolCall, log *slog.Logger) {
	if err := t.ledger.Leave(ctx, run.Requester, entryOf(run, c)); err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "call not removed from the ledger",
			slog.String("run", string(run.ID)), slog.String("call", string(c.ID)), slog.String("err", class(err)))
	}
}

// giveBack removes the calls of a step from the ledger that do not go ahead after
// all: those that set themselves aside for people and, if the run ends with the
// step, those that have not begun.
func (r *rulings) giveBack(ctx context.Context, run Run, plans []*plan, ends bool) {
	if !r.counts() || r.ledger == nil {
		return
	}
	for _, p := range plans {
		begins := p.execute || p.aside == AsideExternal
		if p.stale || p.held || p.ran && p.aside == AsideApproval || ends && !p.ran && begins {
			r.leave(ctx, run, p.call, r.session.claim.log)
		}
	}
}
