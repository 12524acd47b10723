package agentrun_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Limits stop a run before it does anything more. Upstream counts pending calls
// late, and finds the request limit after the approved calls have run (rows 61,
// 62, 70).
func TestLimitsComeBeforeEffects(t *testing.T) {
	three := calls([3]string{"1", "plain", `{"x":1}`}, [3]string{"2", "plain", `{"x":2}`}, [3]string{"3", "gated", `{"x":3}`})
	for name, c := range map[string]struct {
		limits agentrun.Limits
		status agentrun.Status
		words  string
	}{
		"one request, and calls that need another": {agentrun.Limits{Requests: 1}, agentrun.RunFailed, "1 requests"},
		"two requests":     {agentrun.Limits{Requests: 2}, agentrun.RunDeferred, ""},
		"one call of two":  {agentrun.Limits{ToolCalls: 1}, agentrun.RunFailed, "1 tool calls"},
		"two calls of two": {agentrun.Limits{ToolCalls: 2}, agentrun.RunDeferred, ""},
		"tokens used up":   {agentrun.Limits{TotalTokens: 15}, agentrun.RunFailed, "15 tokens"},
		"tokens left":      {agentrun.Limits{TotalTokens: 16}, agentrun.RunDeferred, ""},
		"no limits":        {agentrun.Limits{Requests: -1, ToolCalls: -1, TotalTokens: -1}, agentrun.RunDeferred, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent.Limits = c.limits
			run := w.say(three)
			require.Equal(t, c.status, run.Status)
			requireNothing := run.Status == agentrun.RunFailed
			if requireNothing {
				require.Empty(t, w.executed())
				require.Contains(t, run.Failure, c.words)
				requireAnswered(t, w.history())
				require.Empty(t, w.thread().Active)
			}
		})
	}
}

// What a run has used counts for those that resume it, and is checked before
// what was approved runs.
func TestLimitsOfAResumedRun(t *testing.T) {
	for name, c := range map[string]struct {
		limits agentrun.Limits
		deny   bool
		status agentrun.Status
		ran    int
	}{
		"one call too many":       {agentrun.Limits{ToolCalls: 2}, false, agentrun.RunFailed, 1},
		"as many as are left":     {agentrun.Limits{ToolCalls: 3}, false, agentrun.RunCompleted, 3},
		"denials are not counted": {agentrun.Limits{ToolCalls: 2}, true, agentrun.RunCompleted, 2}, // row 61
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent.Limits = c.limits
			run := w.say(calls([3]string{"p", "plain", `{"x":1}`}, [3]string{"g1", "gated", `{"x":1}`}, [3]string{"g2", "gated", `{"x":2}`}))
			verdict := approvals.Approve
			w.decide(run.Deferred, "g1", verdict, "")
			if c.deny {
				verdict = approvals.Deny
			}
			w.decide(run.Deferred, "g2", verdict, "")
			resumed := w.resume(run.Deferred)
			require.Equal(t, c.status, resumed.Status)
			require.Len(t, w.executed(), c.ran)
			require.Equal(t, c.ran, resumed.Usage.ToolCalls)
			requireAnswered(t, w.history())
		})
	}
	// The agent's limits were lowered while people decided.
	for _, limits := range []agentrun.Limits{{Requests: 1}, {TotalTokens: 15}} {
		w := newWorld(t)
		run := w.say(calls([3]string{"g1", "gated", `{"x":1}`}))
		w.decide(run.Deferred, "g1", approvals.Approve, "")
		w.agent.Limits = limits
		require.Equal(t, agentrun.RunFailed, w.resume(run.Deferred).Status)
		require.Empty(t, w.executed())
	}
}
