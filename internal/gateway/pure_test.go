package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/gateway"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/intake/intaketest"
	"github.com/countersign/countersign/internal/state/statetest"
)

// pure is a world in which calls of srv.free change nothing.
func pure(t *testing.T) (*world, *tool) {
	t.Helper()
	w := newWorld(t)
	free := w.tool("srv.free")
	free.effect = agentrun.EffectPure
	return w, free
}

// have gives the tool another effect.
func (t *tool) have(e agentrun.Effect) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.effect = e
}

// counted makes the processes use a client whose round trips are kept.
func (w *world) counted() *statetest.Trips {
	w.Helper()
	of, ok := redisServer.(*redis.Client)
	require.True(w, ok)
	client, trips := redis.NewClient(of.Options()), &statetest.Trips{}
	w.Cleanup(func() { require.NoError(w, client.Close()) })
	client.AddHook(trips)
	w.redis = client
	return trips
}

// It is asked about, claimed and given to this process in one step. Another stores that
// it begins, before it runs, and the rest what became of it.
func TestAPermittedCallThatChangesSomethingTakesFourRoundTrips(t *testing.T) {
	w := newWorld(t)
	trips := w.counted()
	p := w.start()
	c := p.client(token)
	require.Equal(t, "did {\"n\":1}\n", c.now("srv_free", `{"n":1}`).text())
	<-p.watch.asked
	trips.Taken()
	var begun []agentrun.Entry
	w.tool("srv.free").execute = func(ctx context.Context, of agentrun.Call) (agentrun.Result, error) {
		var err error
		begun, err = p.store.Journal(ctx, of.Run)
		trips.Taken()
		return agentrun.Result{Value: []byte(`"done"`)}, err
	}
	require.Equal(t, "done\n", c.now("srv_free", `{"n":2}`).text())
	require.Len(t, begun, 1)
	require.Equal(t, agentrun.EntryStarted, begun[0].State)
	require.LessOrEqual(t, len(trips.Taken()), 2, "after it ran")
	q := <-p.watch.asked
	require.True(t, q.Claimed)
	executed, err := p.runner.Executed(t.Context(), q.ID)
	require.NoError(t, err)
	require.Equal(t, agentrun.RunCompleted, executed.Status)

	w.tool("srv.free").execute = nil
	trips.Taken()
	require.Equal(t, "did {\"n\":3}\n", c.now("srv_free", `{"n":3}`).text())
	require.LessOrEqual(t, len(trips.Taken()), 4)
	require.Equal(t, "did {\"n\":3}\n", c.now("srv_free", `{"n":3}`).text(), "the same call is another one")
	require.Len(t, w.tool("srv.free").executions(), 4)
}

// Such a call is counted and stored like any other, and has no execution that could be
// found again.
func TestAPermittedCallThatChangesNothingTakesOneRoundTrip(t *testing.T) {
	w, free := pure(t)
	trips := w.counted()
	p := w.start()
	c := p.client(token)
	require.Equal(t, "did {\"n\":1}\n", c.now("srv_free", `{"n":1}`).text())
	<-p.watch.asked
	trips.Taken()
	require.Equal(t, "did {\"n\":2}\n", c.now("srv_free", `{"n":2}`).text())
	require.Len(t, trips.Taken(), 1)
	q := <-p.watch.asked
	stored, err := p.intake.Get(t.Context(), desk, q.ID)
	require.NoError(t, err)
	require.Equal(t, intake.OutcomeAllowed, stored.Calls[0].Outcome)
	require.False(t, stored.Calls[0].ClaimedAt.IsZero())
	executed, err := p.runner.Executed(t.Context(), q.ID)
	require.NoError(t, err)
	require.Empty(t, executed.Run)

	require.Equal(t, "did {\"n\":1}\n", c.now("srv_free", `{"n":1}`).text())
	require.NotEqual(t, q.ID, (<-p.watch.asked).ID)
	require.Len(t, free.executions(), 3, "each call of the client is one")
}

func TestACallThatChangesNothingWaitsForPeopleIfThePolicyAsks(t *testing.T) {
	w, free := pure(t)
	p := w.start()
	c := p.client(token)
	w.policy.Set("srv.free", approvals.Refuse{Reason: "not now"})
	require.Contains(t, c.now("srv_free", `{"n":1}`).text(), "not now")
	<-p.watch.asked
	w.policy.Set("srv.free", approvals.Ask{Requirement: intaketest.Needs(1), Why: "it is private"})
	answer := c.call(t.Context(), "srv_free", `{"n":1}`, true)
	q := <-p.watch.asked
	require.Empty(t, free.executions())
	p.decide(q, "bob", approvals.Approve, "")
	require.Equal(t, "did {\"n\":1}\n", (<-answer).text())
	require.Equal(t, approvals.Ran, p.batch(q).Execution.State, "the card says so")
	w.policy.Set("srv.free", approvals.Permit{})
	for n := range 2 {
		require.Equal(t, "did {\"n\":1}\n", c.now("srv_free", `{"n":1}`).text())
		require.True(t, (<-p.watch.asked).Claimed, "request %d takes the short way again", n)
	}
}

// The policy and the tool have their word until the call runs.
func TestACallThatMayNotRunAnyMoreIsAskedAboutAnew(t *testing.T) {
	w, free := pure(t)
	var late *changing
	p := w.start(func(c *gateway.Config) {
		late = &changing{Runner: c.Runner, change: func() {
			w.policy.Set("srv.free", approvals.Ask{Requirement: intaketest.Needs(1)})
		}}
		c.Runner = late
	})
	answer := p.client(token).call(t.Context(), "srv_free", `{"n":1}`, true)
	require.True(t, (<-p.watch.asked).Claimed)
	var q intake.Request
	select {
	case q = <-p.watch.asked:
	case got := <-answer:
		require.Fail(t, "nobody was asked", got.text())
	}
	require.Equal(t, intake.StatePending, q.State)
	require.Empty(t, free.executions())
	p.decide(q, "bob", approvals.Approve, "")
	require.Equal(t, "did {\"n\":1}\n", (<-answer).text())
	require.Len(t, free.executions(), 1)

	w, free = pure(t)
	p = w.start(func(c *gateway.Config) {
		c.Runner = &changing{Runner: c.Runner, change: func() { w.policy.Set("srv.free", approvals.Refuse{Reason: "no more"}) }}
	})
	require.Contains(t, p.client(token).now("srv_free", `{"n":1}`).text(), "no more")
	require.Empty(t, free.executions())

	w, free = pure(t)
	p = w.start(func(c *gateway.Config) {
		c.Runner = &changing{Runner: c.Runner, change: func() { free.have(agentrun.EffectNone) }}
	})
	require.Equal(t, "did {\"n\":1}\n", p.client(token).now("srv_free", `{"n":1}`).text())
	require.Len(t, p.watch.asked, 2, "it is asked about anew")
	require.True(t, (<-p.watch.asked).Claimed)
	q = <-p.watch.asked
	require.False(t, q.Claimed, "it has a journal now")
	executed, err := p.runner.Executed(t.Context(), q.ID)
	require.NoError(t, err)
	require.NotEmpty(t, executed.Run)
	require.Len(t, free.executions(), 1)
}

// A changing runner has something change just before a call is performed.
type changing struct {
	gateway.Runner

	change func()
}

func (r *changing) Perform(ctx context.Context, of agentrun.RemoteRun) (agentrun.Executed, error) {
	r.change()
	return r.Runner.Perform(ctx, of)
}

// A call that takes longer than its caller can wait gets its result in the end: cut off
// each time, it never would.
func TestACallThatChangesNothingAndOutlastsItsCallerIsFoundAgain(t *testing.T) {
	w, free := pure(t)
	end := make(chan struct{})
	free.execute = func(ctx context.Context, _ agentrun.Call) (agentrun.Result, error) {
		select {
		case <-end:
			return agentrun.Result{Value: json.RawMessage(`"done"`)}, nil
		case <-ctx.Done():
			return agentrun.Result{}, ctx.Err()
		}
	}
	c := w.start(func(c *gateway.Config) { c.Silent = 50 * time.Millisecond }).client(token)
	for range 3 {
		require.Contains(t, c.now("srv_free", `{"n":1}`).text(), "Call again with exactly the same arguments to get its result")
	}
	elsewhere := w.start().client(token).call(t.Context(), "srv_free", `{"n":1}`, true)
	close(end)
	require.Equal(t, "done\n", (<-elsewhere).text(), "on another replica too")
	require.LessOrEqual(t, len(free.executions()), 2, "the one that was cut off, and the one that was found")
}

func TestACallThatChangesNothingAndFailsIsNotInDoubt(t *testing.T) {
	w, free := pure(t)
	c := w.start().client(token)
	free.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
		return agentrun.Result{}, &agentrun.UnsureError{Message: "The connection ended."}
	}
	require.Equal(t, "The connection ended.\n", c.now("srv_free", `{"n":1}`).text())
	free.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) { panic("no") }
	require.True(t, c.now("srv_free", `{"n":1}`).IsError)
	free.execute = nil
	require.Equal(t, "did {\"n\":1}\n", c.now("srv_free", `{"n":1}`).text())
}

// An unperforming runner cannot perform calls.
type unperforming struct {
	gateway.Runner

	before func()
}

func (r unperforming) Perform(context.Context, agentrun.RemoteRun) (agentrun.Executed, error) {
	r.before()
	return agentrun.Executed{}, errors.New("the store is away")
}

func TestACallThatChangesNothingAndWasCutOffIsToBeMadeAgain(t *testing.T) {
	for name, before := range map[string]func(p *process){
		"by an error":                func(*process) {},
		"by the end of this process": func(p *process) { p.gateway.Drain() },
	} {
		t.Run(name, func(t *testing.T) {
			w, free := pure(t)
			var p *process
			p = w.start(func(c *gateway.Config) { c.Runner = unperforming{c.Runner, func() { before(p) }} })
			got := p.client(token).now("srv_free", `{"n":1}`)
			require.True(t, got.IsError)
			require.Contains(t, got.text(), "It changes nothing, so make it again.")
			require.Empty(t, free.executions())
			require.Len(t, p.watch.asked, 1)
		})
	}
}

// Those that meet in one request, because they lost a race, share its execution.
func TestEqualCallsThatChangeNothingAreAllAnswered(t *testing.T) {
	w, free := pure(t)
	first, second := w.start().client(token), w.start().client(token)
	var answers []<-chan said
	for range 10 {
		answers = append(answers, first.call(t.Context(), "srv_free", `{"n":1}`, true), second.call(t.Context(), "srv_free", `{"n":1}`, true))
	}
	for _, a := range answers {
		require.Equal(t, "did {\"n\":1}\n", (<-a).text())
	}
	require.LessOrEqual(t, len(free.executions()), 20)
}
