package agentrun_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// A remoteAdapter is what an adapter for remote agents works with: the runner, the desk, and
// what was delivered to it.
type remoteAdapter struct {
	*world
	store     *state.Store
	runner    *agentrun.Runner
	desk      *approvals.Desk
	delivered []approvals.DeferredToolResults
	down      error
	meanwhile func() // while the answers are delivered, if it is not nil
}

func newRemoteAdapter(t *testing.T) *remoteAdapter {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	store, err := state.Open(t.Context(), state.Options{Client: client})
	require.NoError(t, err)
	d := &remoteAdapter{world: newWorld(t), store: store}
	d.policy.by = map[string]approvals.Ruling{
		"never": approvals.Refuse{Reason: "not on Fridays"},
		"gated": approvals.Ask{Requirement: signedBy("bob"), Why: "rules say so", Rule: "writes"},
	}
	d.runner = agentrun.NewRunner(agentrun.Config{
		Store: store, Policy: d.policy, Now: time.Now,
		Agents: func(string) (agentrun.Agent, bool) { return agentrun.Agent{}, false },
		Deliver: map[approvals.Executor]agentrun.Deliverer{
			"api": func(ctx context.Context, of agentrun.Delivery) error {
				_, answers, err := of.Answers(ctx)
				require.NoError(t, err)
				if d.down == nil {
					d.delivered = append(d.delivered, answers)
				}
				if f := d.meanwhile; f != nil {
					d.meanwhile = nil
					f()
				}
				return d.down
			},
		},
	})
	d.desk = approvals.NewDesk(store, d.policy, nil, time.Now)
	return d
}

// request has a call of each tool, with the ids "c0", "c1", ...
func request(key string, tools ...string) agentrun.RemoteRequest {
	q := agentrun.RemoteRequest{Executor: "api", Key: key, Agent: "claude", Requester: "alice", Channel: "C9"}
	for i, tool := range tools {
		q.Calls = append(q.Calls, agentrun.RemoteCall{ToolCall: approvals.ToolCall{
			ID: approvals.ToolCallID(fmt.Sprintf("c%d", i)), Name: tool, Args: []byte(`{"n": 9007199254740993}`),
		}})
	}
	return q
}

func (d *remoteAdapter) approve(b approvals.Batch, call approvals.ToolCallID) approvals.Case {
	d.t.Helper()
	a, ok := b.Approval(call)
	require.True(d.t, ok)
	c, err := d.desk.Case(d.t.Context(), b, call, a.Call.Digest, func(context.Context, approvals.Asked) (approvals.Principal, error) {
		return approvals.Principal{User: "bob"}, nil
	})
	require.NoError(d.t, err)
	c, err = d.desk.DecideCase(d.t.Context(), c, approvals.RequestID("approve-"+call), approvals.Approve, "")
	require.NoError(d.t, err)
	return c
}

func TestARemoteRunIsDeferredFromBirthAndDeliveredInsteadOfResumed(t *testing.T) {
	d, ctx := newRemoteAdapter(t), t.Context()
	q := request("k1", "free", "never", "gated")
	q.Participants = []approvals.UserID{"carol"}
	got, err := d.runner.Submit(ctx, q)
	require.NoError(t, err)
	require.Equal(t, agentrun.RunDeferred, got.Run.Status)
	require.Equal(t, approvals.Executor("api"), got.Run.Executor)
	require.Equal(t, []approvals.Ruling{
		approvals.Permit{},
		approvals.Refuse{Reason: "not on Fridays"},
		approvals.Ask{Requirement: signedBy("bob"), Why: "rules say so", Rule: "writes"},
	}, []approvals.Ruling{got.Calls[0].Ruling, got.Calls[1].Ruling, got.Calls[2].Ruling})
	require.Len(t, got.Batch.Approvals, 1, "people are asked about what the policy asks about")
	require.Equal(t, "C9", got.Batch.Channel)
	require.Equal(t, []approvals.UserID{"carol"}, got.Batch.Participants)
	require.Equal(t, map[string]int{"free": 1}, d.policy.seen[2].SoFar.Executed, "the policy hears of the calls before")
	call, err := d.desk.Call(ctx, got.Batch, "c2")
	require.NoError(t, err)
	require.Equal(t, `{"n": 9007199254740993}`, string(call.Args))

	require.NoError(t, d.runner.Deliver(ctx, got.Batch.ID), "nothing is settled yet")
	require.Empty(t, d.delivered)
	d.approve(got.Batch, "c2")

	require.ErrorIs(t, d.runner.Resume(ctx, got.Batch.ID), agentrun.ErrElsewhere)
	require.ErrorIs(t, d.runner.Work(ctx, got.Run.ID), agentrun.ErrElsewhere)
	resume, err := agentrun.ResumeRunID(got.Batch.ID)
	require.NoError(t, err)
	_, err = d.store.Run(ctx, resume)
	require.ErrorIs(t, err, approvals.ErrNotFound)

	d.down = errors.New("no answer")
	require.ErrorIs(t, d.runner.Deliver(ctx, got.Batch.ID), d.down)
	d.down = nil
	for range 2 {
		require.NoError(t, d.runner.Deliver(ctx, got.Batch.ID))
	}
	require.Len(t, d.delivered, 1)
	require.IsType(t, approvals.ToolApproved{}, d.delivered[0].Approvals["c2"])
	after, err := d.runner.Remote(ctx, got.Run.ID)
	require.NoError(t, err)
	require.Equal(t, agentrun.RunCompleted, after.Run.Status)
	thread, err := d.store.Thread(ctx, got.Run.Thread)
	require.NoError(t, err)
	require.Empty(t, thread.Active)
}

// A caller that waits for a decision has it delivered itself, while the due index does the
// same. Whoever is second finds it done.
func TestAnswersThatTwoDeliverAtOnceAreNoFailure(t *testing.T) {
	d, ctx := newRemoteAdapter(t), t.Context()
	got, err := d.runner.Submit(ctx, request("k1", "gated"))
	require.NoError(t, err)
	d.approve(got.Batch, "c0")
	d.meanwhile = func() { require.NoError(t, d.runner.Deliver(ctx, got.Batch.ID)) }
	require.NoError(t, d.runner.Deliver(ctx, got.Batch.ID))
	after, err := d.runner.Remote(ctx, got.Run.ID)
	require.NoError(t, err)
	require.Equal(t, agentrun.RunCompleted, after.Run.Status)
}

func TestARemoteRequestIsTakenOnce(t *testing.T) {
	d, ctx := newRemoteAdapter(t), t.Context()
	first, err := d.runner.Submit(ctx, request("k1", "gated", "free"))
	require.NoError(t, err)
	asked := len(d.policy.seen)

	d.policy.by["gated"] = approvals.Permit{}
	again, err := d.runner.Submit(ctx, request("k1", "gated", "free"))
	require.NoError(t, err)
	require.Equal(t, first, again, "what was ruled stays ruled")
	require.Len(t, d.policy.seen, asked)

	other := request("k1", "gated", "free")
	other.Calls[0].Args = []byte(`{"n":9007199254740993}`)
	_, err = d.runner.Submit(ctx, other)
	require.ErrorIs(t, err, agentrun.ErrKeyReused, "other bytes are another call")
	other = request("k1", "gated", "free")
	other.Agent = "codex"
	apart, err := d.runner.Submit(ctx, other)
	require.NoError(t, err)
	require.NotEqual(t, first.Run.ID, apart.Run.ID, "the key is the agent's own")
}

func TestRemoteRequestsOfOneAgentDoNotQueue(t *testing.T) {
	d := newRemoteAdapter(t)
	var wg sync.WaitGroup
	runs := make([]agentrun.RemoteRun, 16)
	errs := make([]error, len(runs))
	for i := range runs {
		wg.Go(func() { runs[i], errs[i] = d.runner.Submit(t.Context(), request(fmt.Sprintf("k%d", i/2), "gated")) })
	}
	wg.Wait()
	threads := map[agentrun.ThreadID]bool{}
	for i, r := range runs {
		require.NoError(t, errs[i])
		require.Equal(t, agentrun.RunDeferred, r.Run.Status)
		require.Equal(t, runs[i/2*2].Run.ID, r.Run.ID, "the same key at the same time")
		threads[r.Run.Thread] = true
	}
	require.Len(t, threads, len(runs)/2)
}

func TestARemoteRequestThatNeedsNobodyIsAnsweredAtOnce(t *testing.T) {
	d := newRemoteAdapter(t)
	got, err := d.runner.Submit(t.Context(), request("k1", "never", "free"))
	require.NoError(t, err)
	require.Equal(t, agentrun.RunCompleted, got.Run.Status)
	require.Zero(t, got.Batch)
	require.Equal(t, approvals.Permit{}, got.Calls[1].Ruling)
}

func TestARemoteCallIsRuledOnLikeOurs(t *testing.T) {
	for name, tt := range map[string]struct {
		harm func(*rules)
		gate approvals.Gate
		why  string
	}{
		"the policy fails":        {func(r *rules) { r.err = errors.New("down") }, approvals.GateNone, "could not judge"},
		"the policy panics":       {func(r *rules) { r.panics = true }, approvals.GateNone, "could not judge"},
		"no permit lifts a gate":  {func(r *rules) { r.by["free"] = approvals.Permit{} }, approvals.GateDeclared, "asks for approval"},
		"the policy says nothing": {func(r *rules) { r.by["free"] = nil }, approvals.GateNone, "could not judge"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newRemoteAdapter(t)
			tt.harm(d.policy)
			q := request("k1", "free")
			q.Calls[0].Gate = tt.gate
			got, err := d.runner.Submit(t.Context(), q)
			require.NoError(t, err)
			ask, ok := got.Calls[0].Ruling.(approvals.Ask)
			require.True(t, ok)
			require.Equal(t, signedBy("bob", "carol"), ask.Requirement)
			require.Contains(t, ask.Why, tt.why)
		})
	}
}

func TestAMalformedRemoteRequestLeavesNothing(t *testing.T) {
	d := newRemoteAdapter(t)
	for name, spoil := range map[string]func(*agentrun.RemoteRequest){
		"no executor":  func(q *agentrun.RemoteRequest) { q.Executor = "" },
		"no key":       func(q *agentrun.RemoteRequest) { q.Key = "" },
		"no requester": func(q *agentrun.RemoteRequest) { q.Requester = "" },
		"no calls":     func(q *agentrun.RemoteRequest) { q.Calls = nil },
		"one id twice": func(q *agentrun.RemoteRequest) { q.Calls[1].ID = "c0" },
		"no name":      func(q *agentrun.RemoteRequest) { q.Calls[0].Name = "" },
		"a key twice":  func(q *agentrun.RemoteRequest) { q.Calls[0].Args = []byte(`{"a":1,"a":2}`) },
	} {
		q := request("k1", "gated", "free")
		spoil(&q)
		_, err := d.runner.Submit(t.Context(), q)
		require.ErrorIs(t, err, approvals.ErrInvalid, name)
	}
	require.Empty(t, d.policy.seen)
}

func TestAnswersForAnUnknownExecutorAreKept(t *testing.T) {
	d := newRemoteAdapter(t)
	q := request("k1", "gated")
	q.Executor = "fax"
	got, err := d.runner.Submit(t.Context(), q)
	require.NoError(t, err)
	d.approve(got.Batch, "c0")
	require.ErrorContains(t, d.runner.Deliver(t.Context(), got.Batch.ID), `"fax"`)
	run, err := d.store.Run(t.Context(), got.Run.ID)
	require.NoError(t, err)
	require.Equal(t, agentrun.RunDeferred, run.Status)
}

// TestAnotherRequestDoesNotTakeTheAnswersOfOne: who asks, and what the tool asks
// for, is part of what was ruled on.
func TestAnotherRequestDoesNotTakeTheAnswersOfOne(t *testing.T) {
	for name, differs := range map[string]func(*agentrun.RemoteRequest){
		"another requester":           func(q *agentrun.RemoteRequest) { q.Requester = "mallory" },
		"a tool that asks by now":     func(q *agentrun.RemoteRequest) { q.Calls[0].Gate = approvals.GateDeclared },
		"a tool that asks for others": func(q *agentrun.RemoteRequest) { q.Calls[1].Gate = approvals.GateRaised },
	} {
		d := newRemoteAdapter(t)
		_, err := d.runner.Submit(t.Context(), request("k1", "free", "gated"))
		require.NoError(t, err)
		q := request("k1", "free", "gated")
		differs(&q)
		_, err = d.runner.Submit(t.Context(), q)
		require.ErrorIs(t, err, agentrun.ErrKeyReused, name)
	}
}

// TestKeysThatAreNoTextAreRefused: their bytes would be replaced where ids are
// derived, so that two of them could be one.
func TestKeysThatAreNoTextAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(q *agentrun.RemoteRequest, s string){
		"key":         func(q *agentrun.RemoteRequest, s string) { q.Key = s },
		"agent":       func(q *agentrun.RemoteRequest, s string) { q.Agent = s },
		"executor":    func(q *agentrun.RemoteRequest, s string) { q.Executor = approvals.Executor(s) },
		"requester":   func(q *agentrun.RemoteRequest, s string) { q.Requester = approvals.UserID(s) },
		"participant": func(q *agentrun.RemoteRequest, s string) { q.Participants = []approvals.UserID{approvals.UserID(s)} },
		"channel":     func(q *agentrun.RemoteRequest, s string) { q.Channel = s },
		"tool":        func(q *agentrun.RemoteRequest, s string) { q.Calls[0].Name = s },
	} {
		for _, s := range []string{"\xff", strings.Repeat("x", 2000)} {
			d, q := newRemoteAdapter(t), request("k1", "gated")
			spoil(&q, s)
			_, err := d.runner.Submit(t.Context(), q)
			require.ErrorIs(t, err, approvals.ErrInvalid, name)
		}
	}
}

func TestEverythingThatAnAgentHandsInIsInOnePartition(t *testing.T) {
	d := newRemoteAdapter(t)
	for i := range 4 {
		got, err := d.runner.Submit(t.Context(), request(fmt.Sprint(i), "gated"))
		require.NoError(t, err)
		require.Equal(t, agentrun.RemoteRunID("api", "claude", fmt.Sprint(i)), got.Run.ID)
		for _, id := range []string{string(got.Run.ID), string(got.Run.Thread), string(got.Batch.ID)} {
			n, err := approvals.Partition(id)
			require.NoError(t, err)
			require.Equal(t, agentrun.RemotePartition("api", "claude"), n)
		}
	}
}

func TestARemoteRequestSaysWhatItsPeopleNeedToKnow(t *testing.T) {
	d, until := newRemoteAdapter(t), time.Now().Add(time.Hour).UTC()
	q := request("k1", "gated", "gated", "free")
	q.Prompt, q.Until, q.Limits = "tidy up", until, approvals.Limits{NoEdits: true}
	q.Calls[0].Reason, q.Calls[0].Place = "to make room", approvals.Place{Cwd: "/srv", Branch: "main"}
	q.Calls[2].External = true
	got, err := d.runner.Submit(t.Context(), q)
	require.NoError(t, err)
	b := got.Batch
	require.Equal(t, "tidy up", b.Prompt.Text)
	require.Equal(t, "to make room", b.Said.Text)
	require.Equal(t, approvals.Limits{NoEdits: true}, b.Limits)
	require.Equal(t, approvals.Place{Cwd: "/srv", Branch: "main"}, b.Approvals[0].Place)
	require.Equal(t, approvals.Place{Cwd: "/srv", Branch: "main"}, d.policy.seen[0].Place, "the policy knows it")
	require.Equal(t, until, b.Approvals[1].Requirement.Deadline)
	require.Len(t, b.Calls, 1, "it waits for a result")
	require.NoError(t, d.runner.Deliver(t.Context(), b.ID))
	catalog := agentrun.NewCatalog(func(string) (agentrun.Agent, bool) { return agentrun.Agent{}, false }, nil)
	require.NoError(t, catalog.CheckCall(t.Context(), b, approvals.ToolCall{ID: "c0", Name: "gated", Args: []byte(`{"n":1}`)}))
	require.Error(t, catalog.CheckCall(t.Context(), b, approvals.ToolCall{ID: "c0", Name: "gated", Args: []byte(`[1]`)}))
}

func TestARemoteCallIsClearedUnlessThePolicyStopsIt(t *testing.T) {
	d, ctx := newRemoteAdapter(t), t.Context()
	got, err := d.runner.Submit(ctx, request("k1", "free", "gated"))
	require.NoError(t, err)
	d.approve(got.Batch, "c1")
	got, err = d.runner.Remote(ctx, got.Run.ID)
	require.NoError(t, err)
	free, gated := got.Calls[0].ToolCall, got.Calls[1].ToolCall
	require.NoError(t, d.runner.Clear(ctx, got, free))
	require.NoError(t, d.runner.Clear(ctx, got, gated), "people have approved what is asked about")

	d.policy.by["free"], d.policy.by["gated"] = d.policy.by["gated"], approvals.Refuse{Reason: "frozen"}
	require.ErrorIs(t, d.runner.Clear(ctx, got, free), agentrun.ErrNowAsks)
	require.ErrorIs(t, d.runner.Clear(ctx, got, gated), approvals.ErrRefused)
	d.policy.by["gated"] = approvals.Ask{Unjudged: true}
	err = d.runner.Clear(ctx, got, gated)
	require.ErrorIs(t, err, agentrun.ErrUnjudged)
	require.ErrorIs(t, err, agentrun.ErrRuleUnjudged)
	d.policy.err = errors.New("down")
	err = d.runner.Clear(ctx, got, gated)
	require.ErrorIs(t, err, agentrun.ErrUnjudged)
	require.NotErrorIs(t, err, agentrun.ErrRuleUnjudged)
}
