package agentrun_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// counts returns what the policy was told about the n-th proposal of the call.
func (w *world) counts(call string, n int) approvals.SoFar {
	w.t.Helper()
	for _, p := range w.policy.seen {
		if string(p.Call.ID) != call {
			continue
		}
		if n--; n == 0 {
			return p.SoFar
		}
	}
	w.t.Fatalf("call %s was not proposed so often", call)
	return approvals.SoFar{}
}

type count = map[string]int

// What a policy is told of the run: of the calls before it in its response those
// that may run and those that were refused, on resume what the first step did,
// and nothing of other requests.
func TestThePolicyIsToldWhatTheRunHasDone(t *testing.T) {
	w := newWorld(t)
	w.agent.Tools = append(w.agent.Tools, w.does("never", ""), &fake{
		spec: agentrun.Spec{Name: "breaks"},
		execute: func(context.Context, agentrun.Call) (agentrun.Result, error) {
			return agentrun.Result{}, errors.New("no")
		},
	})
	w.policy.by = map[string]approvals.Ruling{"never": approvals.Refuse{}}
	run := w.say(
		calls([3]string{"p", "plain", `{"x":1}`}, [3]string{"n", "never", `{"x":1}`}, [3]string{"b", "breaks", ``},
			[3]string{"w", "plain", `{"x":"wrong"}`}, [3]string{"g", "gated", `{"x":1}`}, [3]string{"h", "gated", `{"x":2}`}),
		calls([3]string{"q", "plain", `{"x":2}`}, [3]string{"i", "gated", `{"x":3}`}),
	)
	require.Equal(t, approvals.SoFar{Steps: 1}, w.counts("p", 1))
	require.Equal(t, approvals.SoFar{Steps: 1, Executed: count{"plain": 1}}, w.counts("n", 1))
	require.Equal(t, approvals.SoFar{Steps: 1, Executed: count{"plain": 1}, Denied: count{"never": 1}}, w.counts("b", 1))
	permitted := approvals.SoFar{Steps: 1, Executed: count{"plain": 1, "breaks": 1}, Denied: count{"never": 1}}
	require.Equal(t, permitted, w.counts("g", 1), "it will fail, and that is not known yet")
	require.Equal(t, permitted, w.counts("h", 1), "who is asked about has not run")
	first := approvals.SoFar{
		Steps: 1, Executed: count{"plain": 1, "breaks": 1}, Failed: count{"breaks": 1}, Denied: count{"never": 1},
	}
	require.Equal(t, first, w.batch(run.Deferred).SoFar)

	w.decide(run.Deferred, "g", approvals.Approve, "")
	w.decide(run.Deferred, "h", approvals.Deny, "")
	second := w.resume(run.Deferred)
	require.Equal(t, first, w.counts("g", 2))
	then := approvals.SoFar{
		Steps: 2, Executed: count{"plain": 1, "breaks": 1, "gated": 1}, Failed: count{"breaks": 1},
		Denied: count{"never": 1, "gated": 1},
	}
	require.Equal(t, then, w.counts("q", 1))
	then.Executed = count{"plain": 2, "breaks": 1, "gated": 1}
	require.Equal(t, then, w.counts("i", 1))

	w.decide(second.Deferred, "i", approvals.Approve, "")
	require.Equal(t, agentrun.RunCompleted, w.resume(second.Deferred).Status)
	require.Equal(t, count{"plain": 2, "breaks": 1, "gated": 1}, w.counts("i", 2).Executed, "over all runs of the request")

	w.model.answers = []any{calls([3]string{"z", "plain", `{"x":1}`})}
	w.work(w.mention("something else").ID)
	require.Equal(t, approvals.SoFar{Steps: 1}, w.counts("z", 1), "another request of the thread")
}

// A call that is set aside while it runs is asked about with what came of the
// others of its step.
func TestWhatRanInTheSameStepCountsOnceItHasEnded(t *testing.T) {
	w := newWorld(t)
	run := w.say(calls([3]string{"c", "cond", `{"x":1}`}, [3]string{"p", "plain", `{"x":1}`}))
	require.Equal(t, approvals.SoFar{Steps: 1}, w.counts("c", 1))
	require.Equal(t, approvals.SoFar{Steps: 1, Executed: count{"plain": 1}}, w.counts("c", 2))
	require.Equal(t, w.counts("c", 2), w.batch(run.Deferred).SoFar)

	// What the policy refuses then counts for the others, and for the batch.
	w = newWorld(t)
	late := w.does("late", "")
	late.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
		return agentrun.Result{}, &agentrun.ApprovalRequired{}
	}
	w.agent.Tools = append(w.agent.Tools, late)
	w.policy.heard = func(p approvals.Proposal) {
		if p.Gate == approvals.GateRaised {
			w.policy.by = map[string]approvals.Ruling{"late": approvals.Refuse{}}
		}
	}
	run = w.say(calls([3]string{"l", "late", `{"x":1}`}, [3]string{"c", "cond", `{"x":1}`}))
	require.Equal(t, approvals.SoFar{Steps: 1, Denied: count{"late": 1}}, w.counts("c", 2))
	require.Equal(t, approvals.SoFar{Steps: 1, Denied: count{"late": 1}}, w.batch(run.Deferred).SoFar)
}

// A denial is someone's word: that nobody came, or that the batch was ended,
// is none.
func TestALapsedCallIsNotDenied(t *testing.T) {
	w := newWorld(t)
	soon := signedBy("bob")
	soon.Deadline = epoch.Add(time.Hour)
	w.policy.by = map[string]approvals.Ruling{"gated": approvals.Ask{Requirement: soon}}
	run := w.say(calls([3]string{"g", "gated", `{"x":1}`}, [3]string{"h", "gated", `{"x":2}`}),
		calls([3]string{"i", "gated", `{"x":3}`}), calls([3]string{"p", "plain", `{"x":1}`}))
	w.decide(run.Deferred, "g", approvals.Deny, "")
	require.NoError(t, w.store.move(run.Deferred, nil, approvals.Expire{At: soon.Deadline}))
	run = w.resume(run.Deferred)
	require.Equal(t, count{"gated": 1}, w.counts("i", 1).Denied)
	require.NoError(t, w.store.move(run.Deferred, nil, approvals.Withdraw{By: "alice", At: epoch}))
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	require.Equal(t, approvals.SoFar{Steps: 3, Denied: count{"gated": 1}}, w.counts("p", 1))
}

// Answers that could not be used were answers too, and a worker that takes over
// counts them.
func TestAnswersThatCouldNotBeUsedAreSteps(t *testing.T) {
	w := newWorld(t)
	run := w.say(says(""), calls([3]string{"p", "plain", `{"x":1}`}), calls([3]string{"q", "plain", `{"x":1}`}))
	require.Equal(t, agentrun.RunCompleted, run.Status)
	require.Equal(t, 2, w.counts("p", 1).Steps)
	require.Equal(t, 3, w.counts("q", 1).Steps)
	require.Equal(t, run.Usage.Requests, w.counts("q", 1).Steps+1, "the last word proposes nothing")
}
