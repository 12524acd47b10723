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
		"one request, and calls that need another": {agentrun.Limits{Requests: 1}, agentrun.RunFailed, "1 request "},
		"two requests":    {agentrun.Limits{Requests: 2}, agentrun.RunDeferred, ""},
		"one call of two": {agentrun.Limits{ToolCalls: 1}, agentrun.RunFailed, "1 tool call"},
		"two that may run, and one to sign, of two":   {agentrun.Limits{ToolCalls: 2}, agentrun.RunFailed, "nobody was asked"},
		"two that may run, and one to sign, of three": {agentrun.Limits{ToolCalls: 3}, agentrun.RunDeferred, ""},
		"tokens used up": {agentrun.Limits{TotalTokens: 15}, agentrun.RunFailed, "15 tokens"},
		"tokens left":    {agentrun.Limits{TotalTokens: 16}, agentrun.RunDeferred, ""},
		"no limits":      {agentrun.Limits{Requests: -1, ToolCalls: -1, TotalTokens: -1}, agentrun.RunDeferred, ""},
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

// Some servers report no usage. A limit of tokens cannot be kept then.
func TestALimitOfTokensNeedsUsage(t *testing.T) {
	unmetered := calls([3]string{"1", "plain", `{"x":1}`})
	unmetered.Usage = agentrun.Usage{}
	w := newWorld(t)
	w.agent.Limits = agentrun.Limits{TotalTokens: 1000}
	run := w.say(unmetered)
	require.Equal(t, agentrun.RunFailed, run.Status)
	require.Contains(t, run.Failure, "doesn't say how many it has used")
	require.Empty(t, w.executed())
	requireAnswered(t, w.history())

	w = newWorld(t)
	require.Equal(t, agentrun.RunCompleted, w.say(unmetered, says("done")).Status, "without a limit, no usage is needed")
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
		"as many as are left":     {agentrun.Limits{ToolCalls: 3}, false, agentrun.RunCompleted, 3},
		"denials are not counted": {agentrun.Limits{ToolCalls: 3}, true, agentrun.RunCompleted, 2}, // row 61
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
	for _, limits := range []agentrun.Limits{{Requests: 1}, {TotalTokens: 15}, {ToolCalls: 1}} {
		w := newWorld(t)
		run := w.say(calls([3]string{"g1", "gated", `{"x":1}`}, [3]string{"g2", "gated", `{"x":2}`}))
		w.decide(run.Deferred, "g1", approvals.Approve, "")
		w.decide(run.Deferred, "g2", approvals.Approve, "")
		w.agent.Limits = limits
		require.Equal(t, agentrun.RunFailed, w.resume(run.Deferred).Status)
		require.Empty(t, w.executed())
	}
}

// Nobody is asked to approve what no limit lets run, or what could not be told to
// the model any more.
func TestNobodyIsAskedForWhatALimitStops(t *testing.T) {
	gated := func(n int) agentrun.Response { return proposes(n, "gated") }
	for name, c := range map[string]struct {
		limits agentrun.Limits
		answer agentrun.Response
		asked  bool
	}{
		"four to sign, of three":                     {agentrun.Limits{ToolCalls: 3}, gated(4), false},
		"four to sign, of four":                      {agentrun.Limits{ToolCalls: 4}, gated(4), true},
		"no request left for the results":            {agentrun.Limits{Requests: 1}, gated(1), false},
		"no token left for the results":              {agentrun.Limits{TotalTokens: 15}, gated(1), false},
		"it asked while it ran, and would once more": {agentrun.Limits{ToolCalls: 1}, proposes(1, "cond"), false},
		"it asked while it ran, and has one left":    {agentrun.Limits{ToolCalls: 2}, proposes(1, "cond"), true},
		"what runs elsewhere is none of ours":        {agentrun.Limits{ToolCalls: 1}, calls([3]string{"s", "slow", `{"x":1}`}), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent.Limits = c.limits
			run := w.say(c.answer)
			require.Empty(t, w.executed())
			if c.asked {
				require.Equal(t, agentrun.RunDeferred, run.Status, run.Failure)
				return
			}
			require.Equal(t, agentrun.RunFailed, run.Status)
			require.Contains(t, run.Failure, "limit of")
			require.Empty(t, w.store.opened())
			requireAnswered(t, w.history())
		})
	}
}

// What a signature has let run counts, and so does what needs another one.
func TestTheProjectionOfALimitGoesOnOverTheRunsOfARequest(t *testing.T) {
	for limit, want := range map[int]agentrun.Status{3: agentrun.RunDeferred, 2: agentrun.RunFailed} {
		w := newWorld(t)
		w.agent.Limits.ToolCalls = limit
		run := w.say(calls([3]string{"g1", "gated", `{"x":1}`}),
			calls([3]string{"g2", "gated", `{"x":2}`}, [3]string{"g3", "gated", `{"x":3}`}))
		w.decide(run.Deferred, "g1", approvals.Approve, "")
		resumed := w.resume(run.Deferred)
		require.Equal(t, want, resumed.Status)
		require.Equal(t, []string{"gated:1"}, w.executed())
	}
}
