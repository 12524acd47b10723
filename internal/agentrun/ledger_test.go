package agentrun_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// perDay is a policy that refuses a call when so many went ahead before it.
type perDay struct {
	rules
	most  int
	store *state.Store

	together *sync.WaitGroup // if set, calls are first ruled on when all have been counted
	met      sync.Map        // the calls that were
}

func (p *perDay) CountsToday() bool { return true }

func (p *perDay) Midnight(at time.Time) time.Time { return at.Truncate(24 * time.Hour) }

func (p *perDay) Rule(ctx context.Context, q approvals.Proposal) (approvals.Ruling, error) {
	entries, err := state.NewLedger(p.store).Entries(ctx, q.Requester)
	if err != nil {
		return nil, err
	}
	before := slices.IndexFunc(entries, func(e approvals.LedgerEntry) bool { return e.Key == q.Entry })
	if before < 0 {
		before = len(entries)
	}
	if _, again := p.met.LoadOrStore(q.Entry, true); p.together != nil && !again {
		p.together.Done()
		p.together.Wait()
	}
	if before >= p.most {
		return approvals.Refuse{Reason: "enough for today"}, nil
	}
	return p.rules.Rule(ctx, q)
}

// day is a world on the real store, with a policy that lets so many calls run.
type day struct {
	*world
	store  *state.Store
	policy *perDay
}

func newDay(t *testing.T, most int) *day {
	t.Helper()
	w := newWorld(t)
	w.now = time.Now
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	store, err := state.Open(t.Context(), state.Options{Client: client})
	require.NoError(t, err)
	return &day{world: w, store: store, policy: &perDay{most: most, store: store}}
}

func (d *day) runner(store agentrun.Store, ledger agentrun.Ledger) *agentrun.Runner {
	return agentrun.NewRunner(agentrun.Config{
		Store: store, Policy: d.policy, Ledger: ledger, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Agents: func(string) (agentrun.Agent, bool) { return d.agent, true },
	})
}

// asks mentions the agent in a thread of its own; the model then calls the tool.
func (d *day) asks(n int, tool string) approvals.RunID {
	d.t.Helper()
	d.model.reply = func(r agentrun.ModelRequest) agentrun.Response {
		if len(r.Messages) > 1 {
			return says("done")
		}
		return calls([3]string{"c", tool, `{"x":1}`})
	}
	at := origin
	at.Root = fmt.Sprintf("%d.1", n)
	run, err := d.runner(d.store, state.NewLedger(d.store)).Mention(d.t.Context(), agentrun.Mention{
		Event: fmt.Sprint("ev-", n), Origin: at, Agent: "ops", Requester: "alice", Text: "go",
	})
	require.NoError(d.t, err)
	return run.ID
}

func (d *day) entered() int {
	d.t.Helper()
	entries, err := state.NewLedger(d.store).Entries(d.t.Context(), "alice")
	require.NoError(d.t, err)
	return len(entries)
}

// TestReplicasDoNotRacePastACountOfTheDay: of ten calls that replicas rule on at
// the same time, exactly as many run as the policy lets run in a day.
func TestReplicasDoNotRacePastACountOfTheDay(t *testing.T) {
	d := newDay(t, 5)
	d.policy.together = &sync.WaitGroup{}
	d.policy.together.Add(10)
	var working sync.WaitGroup
	var ids []approvals.RunID
	for n := range 10 {
		ids = append(ids, d.asks(n, "plain"))
	}
	for _, id := range ids {
		runner := d.runner(d.store, state.NewLedger(d.store))
		working.Go(func() {
			if err := runner.Work(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
	working.Wait()
	require.Len(t, d.executed(), 5)
	require.Equal(t, 5, d.entered())
}

// TestACallKeepsItsPlaceWhenAnotherWorkerTakesItUp: it is counted once, and not
// refused because of its own entry or of those behind it.
func TestACallKeepsItsPlaceWhenAnotherWorkerTakesItUp(t *testing.T) {
	d := newDay(t, 1)
	id := d.asks(1, "plain")
	dies := errors.New("died")
	require.ErrorIs(t, d.runner(&beforeJournal{d.store, dies}, state.NewLedger(d.store)).Work(t.Context(), id), dies)
	require.Empty(t, d.executed())
	require.Equal(t, 1, d.entered())

	other := d.asks(2, "plain")
	require.NoError(t, d.runner(d.store, state.NewLedger(d.store)).Work(t.Context(), other))
	require.Empty(t, d.executed(), "the place is taken")

	d.now = func() time.Time { return time.Now().Add(time.Hour) } // the claim has lapsed
	later := agentrun.NewRunner(agentrun.Config{
		Store: d.store, Policy: d.policy, Ledger: state.NewLedger(d.store), Now: d.now, Log: slog.New(slog.DiscardHandler),
		Agents: func(string) (agentrun.Agent, bool) { return d.agent, true },
	})
	require.NoError(t, later.Work(t.Context(), id))
	require.Equal(t, []string{"plain:1"}, d.executed())
	require.Equal(t, 1, d.entered())
}

// beforeJournal is a store that fails when an execution is to be recorded.
type beforeJournal struct {
	*state.Store
	err error
}

func (b *beforeJournal) Commit(ctx context.Context, c agentrun.Commit) error {
	if len(c.Entries) > 0 {
		return b.err
	}
	return b.Store.Commit(ctx, c)
}

// TestAnApprovedCallIsCountedWhenItRuns: waiting for people takes no place, and
// a day that has filled up in the meantime stops the call.
func TestAnApprovedCallIsCountedWhenItRuns(t *testing.T) {
	for _, full := range []bool{false, true} {
		d := newDay(t, 1)
		ctx := t.Context()
		id := d.asks(1, "gated")
		runner := d.runner(d.store, state.NewLedger(d.store))
		require.NoError(t, runner.Work(ctx, id))
		require.Zero(t, d.entered())
		run, err := d.store.Run(ctx, id)
		require.NoError(t, err)
		b, err := d.store.Batch(ctx, run.Deferred)
		require.NoError(t, err)
		_, err = approvals.NewDesk(d.store, d.policy, nil, time.Now).Decide(ctx, b.ID, "r", approvals.Decide{Decision: approvals.Decision{
			Call: "c", By: approvals.Principal{User: "bob"}, Verdict: approvals.Approve, Digest: b.Approvals[0].Call.Digest, At: time.Now(),
		}})
		require.NoError(t, err)
		if full {
			require.NoError(t, state.NewLedger(d.store).Enter(ctx, "alice", approvals.LedgerEntry{Key: "k", Tool: "gated", At: time.Now()}, time.Time{}))
		}
		require.NoError(t, runner.Resume(ctx, b.ID))
		resumed, err := agentrun.ResumeRunID(b.ID)
		require.NoError(t, err)
		require.NoError(t, runner.Work(ctx, resumed))
		require.Equal(t, 1, d.entered())
		require.Equal(t, full, len(d.executed()) == 0)
	}
}

// broken is a ledger that does not answer.
type broken struct{}

func (broken) Enter(context.Context, approvals.UserID, approvals.LedgerEntry, time.Time) error {
	return errors.New("no answer")
}

func (broken) Leave(context.Context, approvals.UserID, string) error { return errors.New("no answer") }

// TestACallThatCannotBeCountedIsAskedAbout: also where no ledger is kept at all.
func TestACallThatCannotBeCountedIsAskedAbout(t *testing.T) {
	for _, ledger := range []agentrun.Ledger{nil, broken{}} {
		d := newDay(t, 5)
		id := d.asks(1, "plain")
		require.NoError(t, d.runner(d.store, ledger).Work(t.Context(), id))
		run, err := d.store.Run(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, agentrun.RunDeferred, run.Status)
		require.Empty(t, d.executed())
		b, err := d.store.Batch(t.Context(), run.Deferred)
		require.NoError(t, err)
		require.True(t, b.Approvals[0].Unjudged)
	}
}

// TestARemoteCallTakesItsPlaceOfTheDay: where a call runs does not change how
// many a person has in a day.
func TestARemoteCallTakesItsPlaceOfTheDay(t *testing.T) {
	d, ctx := newDay(t, 2), t.Context()
	runner := d.runner(d.store, state.NewLedger(d.store))
	submit := func(key string, tools ...string) agentrun.RemoteRun {
		t.Helper()
		got, err := runner.Submit(ctx, request(key, tools...))
		require.NoError(t, err)
		return got
	}
	refused := approvals.Refuse{Reason: "enough for today"}

	first := submit("k1", "plain")
	require.Equal(t, approvals.Permit{}, first.Calls[0].Ruling)
	require.Equal(t, first, submit("k1", "plain"))
	require.Equal(t, 1, d.entered(), "the same request is counted once")
	two := submit("k2", "plain", "plain")
	require.Equal(t, []approvals.Ruling{approvals.Permit{}, refused}, []approvals.Ruling{two.Calls[0].Ruling, two.Calls[1].Ruling})
	require.Equal(t, refused, submit("k3", "plain").Calls[0].Ruling)
	require.Equal(t, 2, d.entered())

	run := d.asks(1, "plain")
	require.NoError(t, runner.Work(ctx, run))
	require.Empty(t, d.executed(), "a remote call counts for those that run here")
}

// TestAnApprovedRemoteCallIsCountedWhenItIsDelivered: once, however often the
// answer is given, and not before it can be counted.
func TestAnApprovedRemoteCallIsCountedWhenItIsDelivered(t *testing.T) {
	d, ctx := newDay(t, 2), t.Context()
	down, given := errors.New("no answer"), 0
	d.policy.by = map[string]approvals.Ruling{"gated": approvals.Ask{Requirement: signedBy("bob")}}
	runner := func(l agentrun.Ledger) *agentrun.Runner {
		return agentrun.NewRunner(agentrun.Config{
			Store: d.store, Policy: d.policy, Ledger: l, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Deliver: map[approvals.Executor]agentrun.Deliverer{
				"api": func(context.Context, agentrun.Delivery) error { given++; return down },
			},
		})
	}
	got, err := runner(state.NewLedger(d.store)).Submit(ctx, request("k1", "gated", "gated"))
	require.NoError(t, err)
	require.Zero(t, d.entered(), "waiting for people takes no place")
	desk := approvals.NewDesk(d.store, d.policy, nil, time.Now)
	for i, v := range []approvals.Verdict{approvals.Approve, approvals.Deny} {
		a := got.Batch.Approvals[i]
		_, err = desk.Decide(ctx, got.Batch.ID, approvals.RequestID(v), approvals.Decide{Decision: approvals.Decision{
			Call: a.Call.ID, By: approvals.Principal{User: "bob"}, Verdict: v, Digest: a.Call.Digest, At: time.Now(),
		}})
		require.NoError(t, err)
	}
	require.Error(t, runner(broken{}).Deliver(ctx, got.Batch.ID))
	require.Zero(t, given)
	require.ErrorIs(t, runner(state.NewLedger(d.store)).Deliver(ctx, got.Batch.ID), down)
	down = nil
	require.NoError(t, runner(state.NewLedger(d.store)).Deliver(ctx, got.Batch.ID))
	require.Equal(t, 2, given)
	require.Equal(t, 1, d.entered())
}

// approves lets bob approve what the run waits for, and works on what follows.
func (d *day) approves(id approvals.RunID) agentrun.Run {
	d.t.Helper()
	ctx := d.t.Context()
	run, err := d.store.Run(ctx, id)
	require.NoError(d.t, err)
	require.Equal(d.t, agentrun.RunDeferred, run.Status, run.Failure)
	b, err := d.store.Batch(ctx, run.Deferred)
	require.NoError(d.t, err)
	desk := approvals.NewDesk(d.store, d.policy, nil, time.Now)
	for _, a := range b.Approvals {
		_, err = desk.Decide(ctx, b.ID, approvals.RequestID(a.Call.ID), approvals.Decide{Decision: approvals.Decision{
			Call: a.Call.ID, By: approvals.Principal{User: "bob"}, Verdict: approvals.Approve, Digest: a.Call.Digest, At: time.Now(),
		}})
		require.NoError(d.t, err)
	}
	runner := d.runner(d.store, state.NewLedger(d.store))
	require.NoError(d.t, runner.Resume(ctx, b.ID))
	next, err := agentrun.ResumeRunID(b.ID)
	require.NoError(d.t, err)
	require.NoError(d.t, runner.Work(ctx, next))
	run, err = d.store.Run(ctx, next)
	require.NoError(d.t, err)
	return run
}

// TestACallThatDoesNotGoAheadGivesItsPlaceBack: it is not counted, and when people
// are asked about it once more, it does not stand in its own way.
func TestACallThatDoesNotGoAheadGivesItsPlaceBack(t *testing.T) {
	t.Run("the world moved on", func(t *testing.T) {
		for name, checks := range waysToCheck {
			d, o := newDay(t, 1), &thing{}
			d.watches(o, checks)
			id := d.asks(1, "change")
			require.NoError(t, d.runner(d.store, state.NewLedger(d.store)).Work(t.Context(), id))
			o.value.Store(1)
			second := d.approves(id)
			require.Zero(t, d.entered(), name)
			require.Equal(t, agentrun.RunCompleted, d.approves(second.ID).Status)
			require.Equal(t, []string{"change:1"}, d.executed(), name)
			require.Equal(t, 1, d.entered(), name)
		}
	})
	t.Run("its tool asks while it runs", func(t *testing.T) {
		d := newDay(t, 1)
		id := d.asks(1, "cond")
		require.NoError(t, d.runner(d.store, state.NewLedger(d.store)).Work(t.Context(), id))
		require.Zero(t, d.entered())
		require.Equal(t, agentrun.RunCompleted, d.approves(id).Status)
		require.Equal(t, []string{"cond:1"}, d.executed())
		require.Equal(t, 1, d.entered())
	})
	t.Run("the run reaches its limit", func(t *testing.T) {
		d := newDay(t, 5)
		d.agent.Limits.Requests = 1
		id := d.asks(1, "plain")
		require.NoError(t, d.runner(d.store, state.NewLedger(d.store)).Work(t.Context(), id))
		require.Empty(t, d.executed())
		require.Zero(t, d.entered())
	})
}

// TestRemoteRequestsDoNotRacePastACountOfTheDay: nor do they and their repetitions.
func TestRemoteRequestsDoNotRacePastACountOfTheDay(t *testing.T) {
	d := newDay(t, 5)
	d.policy.together = &sync.WaitGroup{}
	d.policy.together.Add(10)
	var submitting sync.WaitGroup
	got := make([]agentrun.RemoteRun, 10)
	for n := range got {
		submitting.Go(func() {
			var err error
			if got[n], err = d.runner(d.store, state.NewLedger(d.store)).Submit(t.Context(), request(fmt.Sprint("k", n), "plain")); err != nil {
				t.Error(err)
			}
		})
	}
	submitting.Wait()
	permitted := 0
	for n, r := range got {
		again, err := d.runner(d.store, state.NewLedger(d.store)).Submit(t.Context(), request(fmt.Sprint("k", n), "plain"))
		require.NoError(t, err)
		require.Equal(t, r, again)
		if _, ok := r.Calls[0].Ruling.(approvals.Permit); ok {
			permitted++
		}
	}
	require.Equal(t, 5, permitted)
	require.Equal(t, 5, d.entered())
}

// TestARemoteCallThatCannotBeCountedIsAskedAbout: also where no ledger is kept.
func TestARemoteCallThatCannotBeCountedIsAskedAbout(t *testing.T) {
	for _, ledger := range []agentrun.Ledger{nil, broken{}} {
		d := newDay(t, 5)
		got, err := d.runner(d.store, ledger).Submit(t.Context(), request("k", "plain"))
		require.NoError(t, err)
		require.Len(t, got.Batch.Approvals, 1)
		require.True(t, got.Batch.Approvals[0].Unjudged)
	}
}
