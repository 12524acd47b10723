package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// executionOf returns what the batch says became of the call.
func (w *world) executionOf(id approvals.BatchID, call approvals.ToolCallID) approvals.Execution {
	w.t.Helper()
	for _, a := range w.batch(id).Approvals {
		if a.Call.ID == call {
			return a.Execution
		}
	}
	w.t.Fatalf("no call %s in batch %s", call, id)
	return approvals.Execution{}
}

// The batch says of every call that people approved what became of it, as the
// journal has it, in the commit that also gives the model the results.
func TestABatchSaysWhatBecameOfApprovedCalls(t *testing.T) {
	long := strings.Repeat("é", 2*approvals.MaxExecutionWords)
	for name, c := range map[string]struct {
		change func(w *world, gated *fake)
		want   approvals.Execution
	}{
		"it ran": {func(*world, *fake) {}, approvals.Execution{State: approvals.Ran, Excerpt: "gated:1"}},
		"it ran for a while": {func(w *world, gated *fake) {
			gated.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
				w.now = func() time.Time { return epoch.Add(1500 * time.Millisecond) }
				return agentrun.Result{Value: json.RawMessage(`{"n":1}`)}, nil
			}
		}, approvals.Execution{State: approvals.Ran, Excerpt: `{"n":1}`, Took: 1500 * time.Millisecond, At: epoch.Add(1500 * time.Millisecond)}},
		"a long result": {func(_ *world, gated *fake) {
			gated.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
				return agentrun.Result{Value: json.RawMessage(`"` + long + `"`)}, nil
			}
		}, approvals.Execution{State: approvals.Ran, Excerpt: strings.Repeat("é", approvals.MaxExecutionWords-1) + "…"}},
		"it failed": {func(_ *world, gated *fake) {
			gated.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
				return agentrun.Result{}, &agentrun.FailedError{Message: "no such file"}
			}
		}, approvals.Execution{State: approvals.RanFailed, Words: "no such file"}},
		"it wants other arguments": {func(_ *world, gated *fake) {
			gated.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
				return agentrun.Result{}, &agentrun.RetryError{Message: "locked"}
			}
		}, approvals.Execution{State: approvals.RanFailed, Words: "locked"}},
		"it broke down": {func(_ *world, gated *fake) {
			gated.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) { panic("hunter2") }
		}, approvals.Execution{State: approvals.InDoubt, Words: "The tool crashed."}},
		"the policy refuses now": {func(w *world, _ *fake) {
			w.policy.by = map[string]approvals.Ruling{"gated": approvals.Refuse{Reason: "frozen"}}
		}, approvals.Execution{State: approvals.Refused, Words: "frozen"}},
		"the tool is gone": {func(w *world, _ *fake) { w.agent.Tools = nil }, approvals.Execution{
			State: approvals.NotRun, Words: "Unknown tool name: 'gated'. No tools available.",
		}},
		"the arguments are not valid any more": {func(_ *world, gated *fake) {
			gated.validate = func(context.Context, agentrun.Call) error { return errors.New("y: Field required") }
		}, approvals.Execution{State: approvals.NotRun, Words: "y: Field required"}},
		"the tool asks once more": {func(_ *world, gated *fake) {
			gated.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
				return agentrun.Result{}, &agentrun.ApprovalRequired{}
			}
		}, approvals.Execution{State: approvals.AskedAgain}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			gated := w.does("gated", agentrun.KindUnapproved)
			gated.spec.MaxRetries = -1
			w.agent.Tools = []agentrun.Tool{gated}
			run := w.say(calls([3]string{"g", "gated", `{"x":1}`}, [3]string{"d", "gated", `{"x":2}`}))
			w.decide(run.Deferred, "g", approvals.Approve, "")
			w.decide(run.Deferred, "d", approvals.Deny, "")
			require.Zero(t, w.executionOf(run.Deferred, "g"))
			c.change(w, gated)
			w.resume(run.Deferred)
			got := w.executionOf(run.Deferred, "g")
			if c.want.At.IsZero() {
				c.want.At = epoch
			}
			require.Equal(t, c.want, got)
			require.Zero(t, w.executionOf(run.Deferred, "d"), "a call that was denied has no execution")
		})
	}
}

// The facts outlive the run, and say which rule stopped what people had approved.
func TestTheFactOfACallThatThePolicyStopsNamesTheRule(t *testing.T) {
	w := newWorld(t)
	run := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
	w.decide(run.Deferred, "g", approvals.Approve, "")
	w.policy.by = map[string]approvals.Ruling{"gated": approvals.Refuse{Reason: "frozen", Rule: "freeze@2"}}
	w.resume(run.Deferred)
	var facts []approvals.Event
	for _, c := range w.store.commits {
		if c.Moves != nil {
			facts = append(facts, c.Moves.Events...)
		}
	}
	require.Equal(t, []approvals.Event{
		approvals.Concluded{Batch: run.Deferred, Call: "g", State: approvals.Refused, Rule: "freeze@2", At: epoch},
	}, facts)
}

// A run that ends before its approved calls ran says so of each of them.
func TestARunThatEndsBeforeItsCallsSaysThatTheyDidNotRun(t *testing.T) {
	w := newWorld(t)
	run := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
	w.decide(run.Deferred, "g", approvals.Approve, "")
	w.agent.Name = "other" // the run's agent is gone
	log := &strings.Builder{}
	w.log = slog.New(slog.NewTextHandler(log, nil))
	require.Equal(t, agentrun.RunFailed, w.resume(run.Deferred).Status)
	require.Contains(t, log.String(), `msg="run failed" why="The agent \"ops\" no longer exists."`, "the log says why")
	require.Equal(t, approvals.Execution{State: approvals.NotRun, At: epoch, Words: `The agent "ops" no longer exists.`}, w.executionOf(run.Deferred, "g"))
	require.Empty(t, w.executed())
}

// A worker dies in the middle of a call: the batch says that the call is in
// doubt, and what became of the others.
func TestACallInDoubtIsSaidToBe(t *testing.T) {
	w := newWorld(t)
	first, second, third := w.does("first", agentrun.KindUnapproved), w.does("second", agentrun.KindUnapproved), w.does("third", agentrun.KindUnapproved)
	first.spec.Sequential, second.spec.Sequential, third.spec.Sequential = true, true, true
	w.agent.Tools = []agentrun.Tool{first, second, third}
	run := w.say(calls([3]string{"a", "first", `{"x":1}`}, [3]string{"b", "second", `{"x":2}`}, [3]string{"c", "third", `{"x":3}`}))
	for _, call := range []approvals.ToolCallID{"a", "b", "c"} {
		w.decide(run.Deferred, call, approvals.Approve, "")
	}
	ctx, kill := context.WithCancel(t.Context())
	second.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
		kill()
		return agentrun.Result{}, errors.New("cut off")
	}
	require.NoError(t, w.runner().Resume(t.Context(), run.Deferred))
	resumed, err := agentrun.ResumeRunID(run.Deferred)
	require.NoError(t, err)
	require.Error(t, w.runner().Work(ctx, resumed))
	w.now = func() time.Time { return epoch.Add(time.Hour) }
	again := w.work(resumed)

	require.Equal(t, approvals.Ran, w.executionOf(run.Deferred, "a").State)
	require.Equal(t, approvals.InDoubt, w.executionOf(run.Deferred, "b").State)
	require.Equal(t, approvals.Ran, w.executionOf(run.Deferred, "c").State, "it was approved and had not begun")

	people, _ := w.pending(again)
	require.Equal(t, []string{"b"}, people)
	asked, _ := w.batch(again.Deferred).Approval("b")
	require.Equal(t, run.Deferred, asked.Doubt.Approved)
	require.Equal(t, signedBy("bob"), asked.Requirement, "the requirement that it was approved under")
	w.decide(again.Deferred, "b", approvals.GiveUp, "")
	require.Equal(t, agentrun.RunCompleted, w.resume(again.Deferred).Status)
	require.Equal(t, approvals.InDoubt, w.executionOf(run.Deferred, "b").State, "nobody has said what became of it")
}

// People are told that they are asked again only if they are: not when the run
// ends instead, nor when the call goes on elsewhere.
func TestAskedAgainIsSaidOnlyWherePeopleAreAsked(t *testing.T) {
	raises := func(err error) func(context.Context, agentrun.Call) (agentrun.Result, error) {
		return func(context.Context, agentrun.Call) (agentrun.Result, error) { return agentrun.Result{}, err }
	}
	t.Run("the run reaches its limit", func(t *testing.T) {
		w := newWorld(t)
		w.agent.Limits.ToolCalls = 1
		first := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
		gated, _ := w.agent.Tools[0].(*fake)
		gated.execute = raises(&agentrun.ApprovalRequired{})
		run := w.approveAll(first, w.store)
		require.Equal(t, agentrun.RunFailed, run.Status)
		require.Equal(t, approvals.Execution{State: approvals.NotRun, At: epoch, Words: run.Failure}, w.executionOf(first.Deferred, "g"))
	})
	t.Run("another call stops the run", func(t *testing.T) {
		w, o := newWorld(t), &thing{}
		w.watches(o, true)
		run := w.say(calls([3]string{"a", "change", `{"x":1}`}, [3]string{"b", "change", `{"x":2}`}))
		for range agentrun.MaxReasks {
			o.value.Add(1)
			run = w.approveAll(run, w.store)
		}
		last := run.Deferred
		o.value.Add(1)
		gone := w.agent.Tools[0].(*fake).execute
		w.agent.Tools[0].(*fake).execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
			if c.ID == "b" {
				return agentrun.Result{}, &agentrun.ApprovalRequired{}
			}
			return gone(ctx, c)
		}
		run = w.approveAll(run, w.store)
		require.Equal(t, agentrun.RunFailed, run.Status)
		require.Equal(t, approvals.NotRun, w.executionOf(last, "a").State)
		require.Equal(t, approvals.Execution{State: approvals.NotRun, At: epoch, Words: run.Failure}, w.executionOf(last, "b"))
	})
	t.Run("it goes on elsewhere", func(t *testing.T) {
		w := newWorld(t)
		first := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
		gated, _ := w.agent.Tools[0].(*fake)
		gated.execute = raises(&agentrun.CallDeferred{})
		run := w.approveAll(first, w.store)
		_, elsewhere := w.pending(run)
		require.Equal(t, []string{"g"}, elsewhere)
		require.Zero(t, w.executionOf(first.Deferred, "g"), "nobody is asked, and it is not known what becomes of it")
	})
	t.Run("somebody ends the run", func(t *testing.T) {
		w := newWorld(t)
		w.agent.Tools[0].(*fake).execute = raises(&agentrun.ApprovalRequired{})
		first := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
		w.decide(first.Deferred, "g", approvals.Approve, "")
		require.NoError(t, w.runner().Resume(t.Context(), first.Deferred))
		id, err := agentrun.ResumeRunID(first.Deferred)
		require.NoError(t, err)
		dies := &deferredNever{w.store}
		require.Error(t, w.runnerOn(dies).Work(t.Context(), id))
		w.now = func() time.Time { return epoch.Add(time.Hour) }
		require.NoError(t, w.runner().Abandon(t.Context(), id, "ended by hand"))
		got := w.executionOf(first.Deferred, "g")
		require.Equal(t, approvals.NotRun, got.State)
		require.Equal(t, "ended by hand", got.Words)
	})
}

// deferredNever is a store on which no batch can be opened.
type deferredNever struct{ agentrun.Store }

func (d *deferredNever) Commit(ctx context.Context, c agentrun.Commit) error {
	if c.Opens != nil {
		return errAway
	}
	return d.Store.Commit(ctx, c)
}
