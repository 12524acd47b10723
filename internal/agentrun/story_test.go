package agentrun_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// An agent reads, asks for two deletions, gets one, and answers.
func TestARunDefersAndItsResumeAnswers(t *testing.T) {
	w := newWorld(t)
	w.model.answers = []any{
		calls([3]string{"p3", "plain", `{"x":3}`}, [3]string{"g1", "gated", `{"x":1}`}, [3]string{"g2", "gated", `{"x":2}`}),
	}
	run := w.mention("clean up")
	require.Equal(t, agentrun.RunQueued, run.Status)
	require.Equal(t, run.ID, w.thread().Active)

	run = w.work(run.ID)
	require.Equal(t, agentrun.RunDeferred, run.Status)
	require.Equal(t, []string{"plain:3"}, w.executed())
	require.Equal(t, run.ID, w.thread().Active, "the thread is busy while people decide")
	require.Len(t, w.batch(run.Deferred).Approvals, 2)

	w.decide(run.Deferred, "g1", approvals.Approve, "")
	require.NoError(t, w.runner().Resume(t.Context(), run.Deferred))
	require.Equal(t, run.ID, w.thread().Active, "one call is still open")
	w.decide(run.Deferred, "g2", approvals.Deny, "not that one")

	resumed := w.resume(run.Deferred)
	require.Equal(t, agentrun.RunCompleted, resumed.Status)
	require.Equal(t, "done", resumed.Output)
	require.Equal(t, run.ID, resumed.Parent)
	require.Equal(t, []string{"plain:3", "gated:1"}, w.executed())
	require.Empty(t, w.thread().Active)
	require.Equal(t, agentrun.Usage{Requests: 2, ToolCalls: 2, InputTokens: 20, OutputTokens: 10}, resumed.Usage)
	require.Equal(t, []string{
		"user: clean up",
		`call p3 plain{"x":3}`, `call g1 gated{"x":1}`, `call g2 gated{"x":2}`,
		`p3 success: "plain:3"`,
		`g1 success: "gated:1"`,
		`g2 denied: "The tool call was denied. The reason that was given, quoted: \"not that one\""`,
		"text: done",
	}, brief(w.history()))

	require.Equal(t, resumed, w.resume(run.Deferred), "a second look changes nothing")
}
