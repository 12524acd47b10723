package agentrun_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// executing is a runner whose remote requests are executed here.
func (w *world) executing(store agentrun.Store) *agentrun.Runner {
	return agentrun.NewRunner(agentrun.Config{
		Store: store, Policy: w.policy, Now: func() time.Time { return w.now() }, Log: slog.New(slog.DiscardHandler), Agents: w.agents,
		Deliver: map[approvals.Executor]agentrun.Deliverer{
			"client": func(context.Context, agentrun.Delivery) error { return nil },
		},
	})
}

// claimable is a world with a request of one call that may run: bob approved it,
// unless the policy needs nobody.
func claimable(t *testing.T, asks bool) (*world, agentrun.RemoteRun) {
	t.Helper()
	w := newWorld(t)
	w.policy.by = map[string]approvals.Ruling{"plain": approvals.Permit{}}
	if asks {
		w.policy.by["plain"] = approvals.Ask{Requirement: signedBy("bob"), Why: "it writes", Rule: "writes"}
	}
	got, err := w.executing(w.store).Submit(t.Context(), agentrun.RemoteRequest{
		Executor: "client", Key: "k", Agent: "ops", Requester: "alice", Channel: "C1",
		Calls: []agentrun.RemoteCall{{ToolCall: approvals.ToolCall{ID: "c", Name: "plain", Args: []byte(`{"x":1}`)}}},
	})
	require.NoError(t, err)
	if asks {
		w.decide(got.Batch.ID, "c", approvals.Approve, "")
	}
	return w, got
}

// admitted stores a request of one call that the policy permits, to be executed by the
// runner at once.
func (w *world) admitted(r *agentrun.Runner, key string) (agentrun.RemoteRun, error) {
	w.t.Helper()
	a, _, err := r.Permit(w.t.Context(), agentrun.RemoteRequest{
		Executor: "client", Key: key, Agent: "ops", Requester: "alice", Channel: "C1", Here: true,
		Calls: []agentrun.RemoteCall{{ToolCall: approvals.ToolCall{ID: "c", Name: "plain", Args: []byte(`{"x":1}`)}}},
	})
	require.NoError(w.t, err)
	memo := agentrun.MemoRef{ID: approvals.NewID("agent", agentrun.RemotePartition("client", "ops"), key), Surface: "intake-agent"}
	return a.RemoteRun, r.Admit(w.t.Context(), agentrun.MemoChange{MemoRef: memo, Data: []byte("{}")}, a)
}

// Only the first caller has the claim, and what it knows without reading the store is
// what others read there.
func TestAnAdmittedCallIsExecutedHereOnce(t *testing.T) {
	w, _ := claimable(t, false)
	r := w.executing(w.store)
	q, err := w.admitted(r, "here")
	require.NoError(t, err)
	e, err := w.executing(w.store).Execute(t.Context(), q.Run.ID)
	require.NoError(t, err)
	require.Equal(t, agentrun.RunRunning, e.Status, "another process does not take it")
	require.Empty(t, w.executed())
	first, err := r.Continue(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, []string{`c success: "plain:1"`}, brief([]agentrun.Message{agentrun.Request{Parts: first.Parts}}))
	for range 2 {
		again, err := r.Continue(t.Context(), q)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
	require.Equal(t, []string{"plain:1"}, w.executed())
}

func TestAClaimedCallIsExecutedHereOnce(t *testing.T) {
	for name, asks := range map[string]bool{"approved": true, "permitted": false} {
		t.Run(name, func(t *testing.T) {
			w, q := claimable(t, asks)
			r := w.executing(w.store)
			before, err := r.Executed(t.Context(), q.Run.ID)
			require.NoError(t, err)
			require.Zero(t, before)
			var first agentrun.Executed
			for i := range 3 {
				e, err := r.Execute(t.Context(), q.Run.ID)
				require.NoError(t, err)
				require.True(t, e.Over())
				require.Equal(t, agentrun.RunCompleted, e.Status)
				require.Equal(t, []string{`c success: "plain:1"`}, brief([]agentrun.Message{agentrun.Request{Parts: e.Parts}}))
				if i == 0 {
					first = e
				}
				require.Equal(t, first, e)
			}
			require.Equal(t, []string{"plain:1"}, w.executed())
			require.Empty(t, w.model.requests, "no model is asked")
			if asks {
				a, _ := w.batch(q.Batch.ID).Approval("c")
				require.Equal(t, approvals.Ran, a.Execution.State, "the card says what became of it")
			}
		})
	}
}

func TestAnEditedCallIsExecutedAsItWasApproved(t *testing.T) {
	w, _ := claimable(t, true)
	q, err := w.executing(w.store).Submit(t.Context(), agentrun.RemoteRequest{
		Executor: "client", Key: "edited", Agent: "ops", Requester: "alice", Channel: "C1",
		Calls: []agentrun.RemoteCall{{ToolCall: approvals.ToolCall{ID: "c", Name: "plain", Args: []byte(`{"x":1}`)}}},
	})
	require.NoError(t, err)
	w.amend(q.Batch.ID, "c", `{"x":7}`)
	w.decide(q.Batch.ID, "c", approvals.Approve, "")
	e, err := w.executing(w.store).Execute(t.Context(), q.Run.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"plain:7"}, w.executed())
	require.Contains(t, brief([]agentrun.Message{agentrun.Request{Parts: e.Parts}})[1], `It was run with: {"x":7}`)
}

func TestThePolicyMayStillRefuseAClaimedCall(t *testing.T) {
	for name, c := range map[string]struct {
		asks   bool
		ruling approvals.Ruling
		says   string
	}{
		"approved, and refused now":           {true, approvals.Refuse{Reason: "not on Fridays"}, "not on Fridays"},
		"permitted, and refused now":          {false, approvals.Refuse{Reason: "not on Fridays"}, "not on Fridays"},
		"permitted, and people are asked now": {false, approvals.Ask{Requirement: signedBy("bob")}, "needs approval now"},
	} {
		t.Run(name, func(t *testing.T) {
			w, q := claimable(t, c.asks)
			w.policy.by["plain"] = c.ruling
			e, err := w.executing(w.store).Execute(t.Context(), q.Run.ID)
			require.NoError(t, err)
			require.True(t, e.Over())
			require.Contains(t, brief([]agentrun.Message{agentrun.Request{Parts: e.Parts}})[0], c.says)
			require.Empty(t, w.executed())
			require.Len(t, w.store.opened(), map[bool]int{true: 1, false: 0}[c.asks], "nobody is asked")
		})
	}
}

// An approval is for the definition of the tool by which people were asked, also if it was
// claimed, and its execution began, before another definition was accepted.
func TestAClaimedCallWhoseToolIsDefinedOtherwiseByNowIsNotExecuted(t *testing.T) {
	for name, begun := range map[string]bool{"not begun": false, "begun, and safe to repeat": true} {
		synctest.Test(t, func(t *testing.T) {
			w, _ := claimable(t, true)
			plain := w.does("plain", agentrun.KindFunction)
			plain.spec.Definition, plain.spec.Effect = "first", agentrun.EffectIdempotent
			w.agent.Tools = []agentrun.Tool{plain}
			q, err := w.executing(w.store).Submit(t.Context(), agentrun.RemoteRequest{
				Executor: "client", Key: "defined", Agent: "ops", Requester: "alice", Channel: "C1",
				Calls: []agentrun.RemoteCall{{ToolCall: approvals.ToolCall{ID: "c", Name: "plain", Args: []byte(`{"x":1}`)}, Definition: "first"}},
			})
			require.NoError(t, err)
			w.decide(q.Batch.ID, "c", approvals.Approve, "")
			if begun {
				m := &mortal{hooked: w.store}
				w.store.before = func(_ int, c agentrun.Commit) error {
					if len(c.Entries) > 0 && c.Entries[0].State == agentrun.EntryFinished {
						return errKilled
					}
					return nil
				}
				_, err := w.executing(m).Execute(t.Context(), q.Run.ID)
				require.ErrorIs(t, err, errKilled)
				w.store.before, w.now = nil, func() time.Time { return epoch.Add(time.Hour) }
			}
			before := w.executed()
			plain.spec.Definition = "second"
			e, err := w.executing(w.store).Execute(t.Context(), q.Run.ID)
			require.NoError(t, err)
			require.Equal(t, before, w.executed(), name)
			if begun {
				require.Equal(t, agentrun.RunDeferred, e.Status, "people decide about the doubt")
				require.Equal(t, "second", w.batch(w.run(e.Run).Deferred).Approvals[0].Definition)
				return
			}
			require.Equal(t, agentrun.RunCompleted, e.Status)
			require.Equal(t, []string{`c denied: "The definition of this tool has changed since the call was approved. It was not run. Make the same call again to ask for it."`},
				brief([]agentrun.Message{agentrun.Request{Parts: e.Parts}}))
			a, _ := w.batch(q.Batch.ID).Approval("c")
			require.Equal(t, approvals.NotRun, a.Execution.State)
		})
	}
}

func TestAnOpenRequestIsNotExecuted(t *testing.T) {
	w := newWorld(t)
	w.policy.by = map[string]approvals.Ruling{"plain": approvals.Ask{Requirement: signedBy("bob")}}
	q, err := w.executing(w.store).Submit(t.Context(), agentrun.RemoteRequest{
		Executor: "client", Key: "k", Agent: "ops", Requester: "alice", Channel: "C1",
		Calls: []agentrun.RemoteCall{{ToolCall: approvals.ToolCall{ID: "c", Name: "plain", Args: []byte(`{"x":1}`)}}},
	})
	require.NoError(t, err)
	_, err = w.executing(w.store).Execute(t.Context(), q.Run.ID)
	require.ErrorIs(t, err, approvals.ErrOpen)
	w.decide(q.Batch.ID, "c", approvals.Deny, "no")
	e, err := w.executing(w.store).Execute(t.Context(), q.Run.ID)
	require.NoError(t, err)
	require.Contains(t, brief([]agentrun.Message{agentrun.Request{Parts: e.Parts}})[0], "c denied")
	require.Empty(t, w.executed())
}

func TestCallersOnManyReplicasShareOneExecution(t *testing.T) {
	w, q := claimable(t, true)
	var all sync.WaitGroup
	for range 8 {
		r := w.executing(w.store)
		all.Go(func() {
			for {
				e, err := r.Execute(t.Context(), q.Run.ID)
				require.NoError(t, err)
				if e.Over() {
					return
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, []string{"plain:1"}, w.executed())
}

// Kill the process at every commit: the call runs at most once, nothing begins
// for a caller that is gone, and the next caller has it executed, or gets what people
// said of the doubt.
func TestAnExecutionThatIsKilledAtEveryCommitIsNotRepeated(t *testing.T) {
	for _, how := range []string{"approved", "permitted", "admitted"} {
		for verdict, says := range map[approvals.Verdict]string{
			approvals.GiveUp: approvals.DoubtGivenUpMessage, approvals.Happened: approvals.HappenedMessage, approvals.RunAgain: "plain:1",
		} {
			doubts := 0
			for k := 1; k <= 10; k++ {
				for _, after := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) {
						if killed(t, how, death{k, after}, verdict, says) {
							doubts++
						}
					})
				}
			}
			require.Positive(t, doubts)
		}
	}
}

// killed reports whether the death left the call in doubt.
func killed(t *testing.T, how string, d death, verdict approvals.Verdict, says string) bool {
	t.Helper()
	w, q := claimable(t, how == "approved")
	clock := epoch
	w.now, w.doubt = func() time.Time { return clock }, verdict
	m := &mortal{hooked: w.store, death: d}
	first := w.executing(m)
	var err error
	if how == "admitted" {
		if q, err = w.admitted(first, "here"); err == nil {
			_, err = first.Continue(t.Context(), q)
		}
	} else {
		_, err = first.Execute(t.Context(), q.Run.ID)
	}
	if m.dead {
		require.ErrorIs(t, err, errKilled)
	}
	if _, err := w.executing(w.store).Remote(t.Context(), q.Run.ID); errors.Is(err, approvals.ErrNotFound) {
		require.Equal(t, death{1, false}, d, "nothing was stored")
		return false
	}
	began := len(w.executed())
	clock = clock.Add(time.Hour)
	r := w.executing(w.store)
	if e, err := r.Executed(t.Context(), q.Run.ID); err == nil && e.Run != "" {
		require.NoError(t, r.Work(t.Context(), e.Run), "the due index looks at it")
	}
	require.Len(t, w.executed(), began, "nothing begins for a caller that is gone (%v)", d)
	e, err := r.Execute(t.Context(), q.Run.ID)
	require.NoError(t, err)
	doubt := e.Status == agentrun.RunDeferred
	if doubt {
		batch := w.run(e.Run).Deferred
		require.Equal(t, "C1", w.batch(batch).Channel, "people are asked where they were")
		require.Equal(t, 1, w.answerDoubts(batch))
		require.NoError(t, r.Resume(t.Context(), batch))
		resumed, err := agentrun.ResumeRunID(batch)
		require.NoError(t, err)
		require.NoError(t, r.Work(t.Context(), resumed), "the due index does it, without a caller")
		e, err = r.Execute(t.Context(), q.Run.ID)
		require.NoError(t, err)
		require.Contains(t, fmt.Sprint(brief([]agentrun.Message{agentrun.Request{Parts: e.Parts}})), says)
	} else {
		require.Equal(t, []string{"plain:1"}, w.executed())
		require.Contains(t, brief([]agentrun.Message{agentrun.Request{Parts: e.Parts}}), `c success: "plain:1"`)
	}
	require.True(t, e.Over(), "%v: %s", d, e.Status)
	most := 1
	if doubt && verdict == approvals.RunAgain {
		most = 2
	}
	require.LessOrEqual(t, len(w.executed()), most)
	return doubt
}

// Its process died with the claim that came with the admission. When the lease is over,
// the run waits for the next caller, also if its call may be repeated.
func TestAnAdmittedCallIsNotExecutedWithoutACaller(t *testing.T) {
	for _, effect := range []agentrun.Effect{agentrun.EffectNone, agentrun.EffectPure} {
		t.Run(string(effect), func(t *testing.T) {
			w, _ := claimable(t, false)
			plain := w.does("plain", agentrun.KindFunction)
			plain.spec.Effect = effect
			w.agent.Tools = []agentrun.Tool{plain}
			q, err := w.admitted(w.executing(w.store), "here")
			require.NoError(t, err)
			e, err := w.executing(w.store).Executed(t.Context(), q.Run.ID)
			require.NoError(t, err)
			require.Equal(t, agentrun.RunRunning, e.Status)
			w.now = func() time.Time { return epoch.Add(time.Hour) }
			require.NoError(t, w.executing(w.store).Work(t.Context(), e.Run))
			require.Empty(t, w.executed())
			require.Equal(t, agentrun.RunWaiting, w.run(e.Run).Status)
			e, err = w.executing(w.store).Execute(t.Context(), q.Run.ID)
			require.NoError(t, err)
			require.Equal(t, agentrun.RunCompleted, e.Status)
			require.Equal(t, []string{"plain:1"}, w.executed())
		})
	}
}

func TestARunnerThatDrainsLeavesAClaimedCallToTheNextCaller(t *testing.T) {
	w, q := claimable(t, true)
	r := w.executing(w.store)
	r.Drain()
	e, err := r.Execute(t.Context(), q.Run.ID)
	require.NoError(t, err)
	require.False(t, e.Over())
	require.Empty(t, w.executed())
	e, err = w.executing(w.store).Execute(t.Context(), q.Run.ID)
	require.NoError(t, err)
	require.True(t, e.Over())
}

func TestAStoreThatFailsBeforeTheCallBeganLeavesItToTheNextCaller(t *testing.T) {
	w, q := claimable(t, true)
	broken := errors.New("no connection")
	w.store.before = func(_ int, c agentrun.Commit) error {
		if len(c.Entries) > 0 {
			return broken
		}
		return nil
	}
	_, err := w.executing(w.store).Execute(t.Context(), q.Run.ID)
	require.ErrorIs(t, err, broken)
	w.store.before = nil
	e, err := w.executing(w.store).Execute(t.Context(), q.Run.ID)
	require.NoError(t, err)
	require.True(t, e.Over())
	require.Equal(t, []string{"plain:1"}, w.executed())
}
