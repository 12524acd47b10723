package agentrun_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// atMost makes a policy that refuses a tool of which so many calls have run.
func atMost(limit int, otherwise approvals.Ruling) *rules {
	r := &rules{by: map[string]approvals.Ruling{}}
	r.heard = func(p approvals.Proposal) {
		r.by[p.Call.Name] = otherwise
		if p.SoFar.Executed[p.Call.Name] >= limit {
			r.by[p.Call.Name] = approvals.Refuse{Reason: "enough"}
		}
	}
	return r
}

// proposes is one response with n calls of the tool: c1, c2 and so on.
func proposes(n int, tool string) agentrun.Response {
	var all [][3]string
	for i := range n {
		all = append(all, [3]string{fmt.Sprintf("c%d", i+1), tool, fmt.Sprintf(`{"x":%d}`, i+1)})
	}
	return calls(all...)
}

// The model that proposes forty calls at once gets no more than the one that
// proposes them one by one.
func TestALimitHoldsWithinOneResponse(t *testing.T) {
	w := newWorld(t)
	w.policy = atMost(5, approvals.Permit{})
	run := w.say(proposes(40, "plain"))
	require.Equal(t, agentrun.RunCompleted, run.Status)
	require.ElementsMatch(t, []string{"plain:1", "plain:2", "plain:3", "plain:4", "plain:5"}, w.executed())
	require.Equal(t, `c5 success: "plain:5"`, w.added()[40+4])
	require.Equal(t, `c6 denied: "enough"`, w.added()[40+5])
	require.Equal(t, count{"plain": 35 - 1}, w.counts("c40", 1).Denied)
}

// Nor does it when a worker dies in the middle and another one rules again.
func TestALimitHoldsForWhoTakesOver(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w.agent.Tools = []agentrun.Tool{&fake{
		spec: agentrun.Spec{Name: "one", Kind: agentrun.KindFunction, Sequential: true},
		execute: func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
			w.note(string(c.ID))
			switch c.ID {
			case "c1":
				return agentrun.Result{}, &agentrun.RetryError{Message: "not so"}
			case "c2":
				stop()
				return agentrun.Result{}, &agentrun.FailedError{Message: "broken"}
			}
			return agentrun.Result{Value: json.RawMessage(`1`)}, nil
		},
	}}
	w.policy = atMost(4, approvals.Permit{})
	w.model.answers = []any{proposes(9, "one")}
	id := w.mention("go").ID
	require.ErrorIs(t, w.runner().Work(ctx, id), context.Canceled)
	require.Equal(t, []string{"c1", "c2"}, w.executed())
	before := w.counts("c4", 1)
	require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
	require.Equal(t, []string{"c1", "c2", "c3", "c4"}, w.executed())
	require.Equal(t, before, w.counts("c4", 2), "the same question")
	require.Equal(t, count{"one": 3}, before.Executed)
}

// What is approved counts against the limit in the order of the calls, and what
// runs elsewhere counts as if it ran here.
func TestALimitHoldsForWhatIsSigned(t *testing.T) {
	w := newWorld(t)
	w.policy = atMost(2, approvals.Ask{Requirement: signedBy("bob")})
	run := w.say(proposes(4, "gated"))
	for _, id := range []approvals.ToolCallID{"c1", "c2", "c3", "c4"} {
		w.decide(run.Deferred, id, approvals.Approve, "")
	}
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	require.ElementsMatch(t, []string{"gated:1", "gated:2"}, w.executed())
	require.Equal(t, []string{`c3 denied: "enough"`, `c4 denied: "enough"`}, w.added()[4+2:4+4])

	w = newWorld(t)
	w.agent.Tools = []agentrun.Tool{w.does("ext", agentrun.KindExternal)}
	w.policy = atMost(2, approvals.Permit{})
	_, elsewhere := w.pending(w.say(proposes(4, "ext")))
	require.Equal(t, []string{"c1", "c2"}, elsewhere)
}

// Why the tool asks is kept with the call, and is what the policy is told when
// it is asked again: nothing, for a call that only a rule asks about.
func TestTheSecondQuestionIsAsTrueAsTheFirst(t *testing.T) {
	for tool, want := range map[string]approvals.Gate{
		"gated": approvals.GateDeclared, "cond": approvals.GateRaised, "plain": approvals.GateNone,
	} {
		w := newWorld(t)
		w.policy.by = map[string]approvals.Ruling{tool: approvals.Ask{Requirement: signedBy("bob")}}
		if tool == "cond" {
			w.policy.heard = func(p approvals.Proposal) {
				w.policy.by["cond"] = approvals.Permit{}
				if p.Gate != approvals.GateNone {
					w.policy.by["cond"] = approvals.Ask{Requirement: signedBy("bob")}
				}
			}
		}
		run := w.say(calls([3]string{"a", tool, `{"x":1}`}))
		require.Equal(t, want, w.batch(run.Deferred).Approvals[0].Gate, tool)
		w.decide(run.Deferred, "a", approvals.Approve, "")
		require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
		require.Equal(t, want, w.policy.seen[len(w.policy.seen)-1].Gate, tool)
		require.Len(t, w.executed(), 1)
	}
}

// A rule that might refuse and cannot be judged is no consent to what was approved
// before it broke; who was asked because of it signed for that too.
func TestARuleThatCannotBeJudgedStopsWhatWasSigned(t *testing.T) {
	asks := func(unjudged bool) map[string]approvals.Ruling {
		return map[string]approvals.Ruling{"gated": approvals.Ask{Requirement: signedBy("bob"), Unjudged: unjudged}}
	}
	for _, knew := range []bool{false, true} {
		w := newWorld(t)
		w.policy.by = asks(knew)
		run := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
		require.Equal(t, knew, w.batch(run.Deferred).Approvals[0].Unjudged)
		w.decide(run.Deferred, "g", approvals.Approve, "")
		w.policy.by = asks(true)
		if knew {
			require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
			require.Equal(t, []string{"gated:1"}, w.executed())
			continue
		}
		require.NoError(t, w.runner().Resume(t.Context(), run.Deferred))
		id := w.thread().Active
		require.ErrorContains(t, w.runner().Work(t.Context(), id), "the policy cannot judge")
		require.Empty(t, w.executed())
		require.Equal(t, agentrun.RunQueued, w.run(id).Status)
		w.policy.by = asks(false)
		require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
		require.Equal(t, []string{"gated:1"}, w.executed())
	}
	w := newWorld(t)
	w.policy = &rules{panics: true}
	run := w.say(calls([3]string{"a", "plain", `{"x":1}`}))
	require.True(t, w.batch(run.Deferred).Approvals[0].Unjudged, "a policy that fails has judged by no rule")
}
