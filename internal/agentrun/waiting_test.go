package agentrun_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// whileFirst is a world in which the tool first runs alone, for a minute, and in which
// the policy rules otherwise about second from then on.
func whileFirst(t *testing.T, kind agentrun.Kind, then approvals.Ruling) *world {
	t.Helper()
	w := newWorld(t)
	now := epoch
	w.now = func() time.Time { return now }
	first := w.does("first", kind)
	first.spec.Sequential = true
	run := first.execute
	first.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
		w.policy.by = map[string]approvals.Ruling{"second": then}
		now = now.Add(time.Minute)
		return run(ctx, c)
	}
	w.agent.Tools = []agentrun.Tool{first, w.does("second", kind), w.does("docs.ask", agentrun.KindHosted)}
	return w
}

var firstAndSecond = calls([3]string{"a", "first", `{"x":1}`}, [3]string{"b", "second", `{"x":2}`})

// A call may wait long for the calls of its step that run alone. A deny that is written
// meanwhile stops it.
func TestADenyStopsACallThatWaitsForOthersOfItsStep(t *testing.T) {
	t.Run("approved", func(t *testing.T) {
		w := whileFirst(t, agentrun.KindUnapproved, approvals.Refuse{Reason: "stop"})
		deferred := w.say(firstAndSecond)
		require.Equal(t, agentrun.RunCompleted, w.approveAll(deferred, w.store).Status)
		require.Equal(t, []string{"first:1"}, w.executed())
		require.Contains(t, w.added(), `b denied: "stop"`)
		require.Equal(t, approvals.Refused, w.batch(deferred.Deferred).Approvals[1].Execution.State)
	})
	t.Run("permitted", func(t *testing.T) {
		w := whileFirst(t, agentrun.KindFunction, approvals.Refuse{Reason: "stop"})
		require.Equal(t, agentrun.RunCompleted, w.say(firstAndSecond).Status)
		require.Equal(t, []string{"first:1"}, w.executed())
		require.Contains(t, w.added(), `b denied: "stop"`)
	})
	t.Run("at the provider", func(t *testing.T) {
		w := whileFirst(t, agentrun.KindFunction, nil)
		run := w.agent.Tools[0].(*fake)
		execute := run.execute
		run.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
			defer func() { w.policy.by = map[string]approvals.Ruling{"docs.ask": approvals.Refuse{Reason: "stop"}} }()
			return execute(ctx, c)
		}
		require.Equal(t, agentrun.RunCompleted, w.say(requests(local("first"))).Status)
		require.Equal(t, [][]approvals.ToolCallID{nil, nil}, w.approvedIn())
		require.Contains(t, w.added(), `h denied: "stop"`)
	})
}

func TestPeopleAreAskedAboutACallThatWaitedIfARuleAsksByThen(t *testing.T) {
	w := whileFirst(t, agentrun.KindFunction, approvals.Ask{Requirement: signedBy("bob"), Why: "new rule"})
	deferred := w.say(firstAndSecond)
	people, _ := w.pending(deferred)
	require.Equal(t, []string{"b"}, people)
	require.Equal(t, "new rule", w.batch(deferred.Deferred).Approvals[0].Why)
	require.Equal(t, []string{"first:1"}, w.executed())
	require.Equal(t, agentrun.RunCompleted, w.approveAll(deferred, w.store).Status)
	require.Equal(t, []string{"first:1", "second:2"}, w.executed())
}

// What is approved waits if the policy can't judge it when its turn comes, and runs once
// the policy can. Nothing that has run before it runs again.
func TestAnApprovedCallThatWaitedIsNotRunUnjudged(t *testing.T) {
	w := whileFirst(t, agentrun.KindUnapproved, approvals.Ask{Unjudged: true})
	deferred := w.say(firstAndSecond)
	for _, call := range []approvals.ToolCallID{"a", "b"} {
		w.decide(deferred.Deferred, call, approvals.Approve, "")
	}
	require.NoError(t, w.runner().Resume(t.Context(), deferred.Deferred))
	id, err := agentrun.ResumeRunID(deferred.Deferred)
	require.NoError(t, err)
	require.ErrorContains(t, w.runner().Work(t.Context(), id), "a rule could not judge it")
	require.Equal(t, []string{"first:1"}, w.executed())

	w.policy.by = nil
	later := w.now().Add(time.Hour)
	w.now = func() time.Time { return later }
	require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
	require.Equal(t, []string{"first:1", "second:2"}, w.executed())
}

// A call that is to run again, because its tool did not say how it ended, is ruled on like
// one that waited. If it is refused by then, people decide: it may have taken effect.
func TestADenyStopsTheSecondExecutionOfACallInDoubt(t *testing.T) {
	for name, kind := range map[string]agentrun.Kind{"approved": agentrun.KindUnapproved, "permitted": agentrun.KindFunction} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			now := epoch
			w.now = func() time.Time { return now }
			tool := w.does("t", kind)
			tool.spec.Effect = agentrun.EffectIdempotent
			tool.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
				w.note("t")
				w.policy.by = map[string]approvals.Ruling{"t": approvals.Refuse{Reason: "stop"}}
				now = now.Add(time.Minute)
				return agentrun.Result{}, &agentrun.UnsureError{Message: "no answer"}
			}
			w.agent.Tools = []agentrun.Tool{tool}
			run := w.say(calls([3]string{"a", "t", `{"x":1}`}))
			if kind == agentrun.KindUnapproved {
				run = w.approveAll(run, w.store)
			}
			require.Equal(t, []string{"t"}, w.executed())
			asked, ok := w.batch(run.Deferred).Approval("a")
			require.True(t, ok)
			require.True(t, asked.InDoubt())
		})
	}
}
