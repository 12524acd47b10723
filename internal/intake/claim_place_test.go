package intake_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
)

// other is another replica, with this policy.
func (w *world) other(policy approvals.Policy) *intake.Service {
	w.Helper()
	runner := agentrun.NewRunner(agentrun.Config{Store: w.store, Policy: policy, Ledger: state.NewLedger(w.store), Now: w.clock.Now})
	s, err := intake.New(intake.Config{Store: w.store, Feed: state.NewFeed(w.store), Runner: runner, Desk: w.desk, Now: w.clock.Now})
	require.NoError(w, err)
	return s
}

// A turning policy has another answer when it is asked for the second time.
type turning struct {
	*rules
	asked int
	then  func(ctx context.Context) approvals.Ruling
}

func (p *turning) Rule(ctx context.Context, q approvals.Proposal) (approvals.Ruling, error) {
	if p.asked++; p.asked == 2 {
		return p.then(ctx), nil
	}
	return p.rules.Rule(ctx, q)
}

// Of two claims of one call one counts. The other, which the policy stops meanwhile, as a
// check does that stops answering, does not give back the place of the call that runs.
func TestAClaimThatIsStoppedKeepsThePlaceOfTheOneThatCounted(t *testing.T) {
	for name, then := range map[string]approvals.Ruling{
		"no answer": approvals.Ask{Requirement: needs("bob"), Unjudged: true},
		"a denial":  approvals.Refuse{Reason: "frozen"},
		"it asks":   approvals.Ask{Requirement: needs("bob")},
	} {
		t.Run(name, func(t *testing.T) {
			w, ctx := newWorld(t), t.Context()
			w.policy.day = 1
			r, other := w.ask(ask("x", "counted")), w.other(w.policy)
			require.Equal(t, intake.OutcomeAllowed, r.Calls[0].Outcome)
			p := &turning{rules: w.policy, then: func(ctx context.Context) approvals.Ruling {
				_, err := other.Claim(ctx, claude, r.ID, "c0")
				require.NoError(t, err)
				return then
			}}
			_, err := w.other(p).Claim(ctx, claude, r.ID, "c0")
			require.Error(t, err)
			require.False(t, w.get(r.ID).Calls[0].ClaimedAt.IsZero())
			require.Equal(t, intake.OutcomeRefused, w.ask(ask("y", "counted")).Calls[0].Outcome)
		})
	}
}

// A call that the policy refuses at its claim for another reason than the count takes no
// place of the day.
func TestACallThatIsRefusedAtItsClaimGivesItsPlaceBack(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.policy.day = 1
	r := w.ask(ask("x", "counted"))
	p := &turning{rules: w.policy, asked: 1, then: func(context.Context) approvals.Ruling { return approvals.Refuse{Reason: "frozen"} }}
	_, err := w.other(p).Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, approvals.ErrRefused)
	require.Equal(t, intake.OutcomeAllowed, w.ask(ask("y", "counted")).Calls[0].Outcome)
}

// A call that people would be asked about by now gives its place to the one that is handed
// in instead, and is not claimed any more, whatever a policy says later.
func TestACallThatWouldBeAskedAboutIsNotClaimedLater(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.policy.day = 1
	r := w.ask(ask("x", "counted"))
	p := &turning{rules: w.policy, asked: 1, then: func(context.Context) approvals.Ruling { return approvals.Ask{Requirement: needs("bob")} }}
	_, err := w.other(p).Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, intake.ErrNowAsks)
	_, err = w.other(w.policy).Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, intake.ErrNowAsks)
	require.True(t, w.get(r.ID).Calls[0].ClaimedAt.IsZero())
	require.Equal(t, intake.OutcomeAllowed, w.ask(ask("y", "counted")).Calls[0].Outcome)
}

// Nor does one that is refused before the answers of its request are delivered, which enters
// the calls that people approved.
func TestACallThatIsRefusedBeforeItsDeliveryGivesItsPlaceBack(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.policy.day = 1
	r := w.ask(ask("x", "drop"))
	w.approve(r, "c0")
	p := &turning{rules: w.policy, asked: 1, then: func(context.Context) approvals.Ruling { return approvals.Refuse{Reason: "frozen"} }}
	_, err := w.other(p).Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, approvals.ErrRefused)
	require.NoError(t, w.runner.Deliver(ctx, r.Batch))
	require.Equal(t, intake.OutcomeAllowed, w.ask(ask("y", "counted")).Calls[0].Outcome)
}

// entering is a ledger that does something else before a call is entered.
type entering struct {
	agentrun.Ledger

	before func()
}

func (l *entering) Enter(ctx context.Context, user approvals.UserID, e approvals.LedgerEntry, since time.Time) error {
	l.before()
	return l.Ledger.Enter(ctx, user, e, since)
}

// concluding is a desk that does something else before it notes what became of calls.
type concluding struct {
	*approvals.Desk

	before func()
}

func (d *concluding) Conclude(ctx context.Context, id approvals.BatchID, r approvals.RequestID, cmd approvals.Conclude) (approvals.Batch, error) {
	d.before()
	return d.Desk.Conclude(ctx, id, r, cmd)
}

// Nor does one that is refused while its request is delivered, whichever of the two ends first.
func TestACallThatIsRefusedDuringItsDeliveryGivesItsPlaceBack(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.policy.day = 1
	r := w.ask(ask("x", "drop"))
	w.approve(r, "c0")

	refused, delivered, claimed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	p := &turning{rules: w.policy, asked: 1, then: func(context.Context) approvals.Ruling { return approvals.Refuse{Reason: "frozen"} }}
	runner := agentrun.NewRunner(agentrun.Config{Store: w.store, Policy: p, Ledger: state.NewLedger(w.store), Now: w.clock.Now})
	desk := &concluding{w.desk, func() { close(refused); <-delivered }}
	claims, err := intake.New(intake.Config{Store: w.store, Feed: state.NewFeed(w.store), Runner: runner, Desk: desk, Now: w.clock.Now})
	require.NoError(t, err)

	var once sync.Once
	ledger := &entering{state.NewLedger(w.store), func() {
		once.Do(func() {
			go func() { _, err := claims.Claim(ctx, claude, r.ID, "c0"); claimed <- err }()
			<-refused
		})
	}}
	delivers := agentrun.NewRunner(agentrun.Config{
		Store: w.store, Policy: w.policy, Ledger: ledger, Now: w.clock.Now,
		Deliver: map[approvals.Executor]agentrun.Deliverer{intake.Executor: w.deliver}, DeliverReads: intake.DeliverReads,
	})
	require.NoError(t, delivers.Deliver(ctx, r.Batch))
	close(delivered)
	require.ErrorIs(t, <-claimed, approvals.ErrRefused)
	require.Equal(t, intake.OutcomeAllowed, w.ask(ask("y", "counted")).Calls[0].Outcome)
}
