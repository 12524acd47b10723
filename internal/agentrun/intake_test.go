package agentrun_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Many servers number the calls of each answer from zero. An id that an earlier
// response had becomes another one before anything is stored, and everyone
// uses that: the history, the journal, the people and the model.
func TestIDsThatAreUsedAgain(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("é", agentrun.MaxCallID/2)
	run := w.say(
		calls([3]string{"call_0", "plain", `{"x":1}`}, [3]string{"call_0-2", "plain", `{"x":2}`}, [3]string{long, "plain", `{"x":3}`}),
		calls([3]string{"call_0", "plain", `{"x":4}`}, [3]string{"call_0-3", "plain", `{"x":5}`}, [3]string{long, "gated", `{"x":6}`}),
	)
	people, _ := w.pending(run)
	cut := strings.Repeat("é", agentrun.MaxCallID/2-1) + "-2"
	require.Equal(t, []string{cut}, people)
	require.LessOrEqual(t, len(cut), agentrun.MaxCallID)
	added := w.added()
	require.Equal(t, []string{
		`call call_0-4 plain{"x":4}`, `call call_0-3 plain{"x":5}`, "call " + cut + ` gated{"x":6}`,
		`call_0-4 success: "plain:4"`, `call_0-3 success: "plain:5"`,
	}, added[6:])
	entries, err := w.store.Journal(t.Context(), run.ID)
	require.NoError(t, err)
	var ids []string
	for _, e := range entries {
		ids = append(ids, string(e.Call))
	}
	require.ElementsMatch(t, []string{"call_0", "call_0-2", long, "call_0-4", "call_0-3"}, ids)

	w.decide(run.Deferred, approvals.ToolCallID(cut), approvals.Approve, "")
	w.model.answers = []any{calls([3]string{"call_0", "plain", `{"x":7}`})}
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	require.ElementsMatch(t, []string{"plain:1", "plain:2", "plain:3", "plain:4", "plain:5", "gated:6", "plain:7"}, w.executed())
	last := brief(w.model.requests[len(w.model.requests)-1].Messages)
	require.Equal(t, []string{cut + ` success: "gated:6"`, `call call_0-5 plain{"x":7}`, `call_0-5 success: "plain:7"`}, last[len(last)-3:])
	requireAnswered(t, w.history())
}

// Every run of a thread may have the same ids.
func TestIDsThatEveryRunUses(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{"one", "two", "three"} {
		w.model.answers = []any{calls([3]string{"call_0", "plain", `{"x":1}`})}
		require.Equal(t, agentrun.RunCompleted, w.work(w.mention(text).ID).Status)
	}
	require.Equal(t, []string{"plain:1", "plain:1", "plain:1"}, w.executed())
	requireAnswered(t, w.history())
}

// Row 37: a decision about a call is none about a later one with its id.
func TestAnOldDecisionIsNotForANewCall(t *testing.T) {
	w := newWorld(t)
	same := calls([3]string{"g", "gated", `{"x":1}`})
	first := w.say(same)
	w.decide(first.Deferred, "g", approvals.Approve, "")
	w.model.answers = []any{same}
	second := w.resume(first.Deferred)
	people, _ := w.pending(second)
	require.Equal(t, []string{"g-2"}, people)
	require.Equal(t, []string{"gated:1"}, w.executed(), "once for one signature")

	old := w.batch(first.Deferred).Approvals[0]
	for _, id := range []approvals.ToolCallID{"g", "g-2"} {
		replayed := old.Decisions[0]
		replayed.Call = id
		require.Error(t, w.store.move(second.Deferred, nil, approvals.Decide{Decision: replayed}))
	}
	require.NoError(t, w.runner().Resume(t.Context(), first.Deferred))
	require.NoError(t, w.runner().Resume(t.Context(), second.Deferred))
	require.Equal(t, second.ID, w.thread().Active)
	require.Equal(t, []string{"gated:1"}, w.executed())

	w.decide(second.Deferred, "g-2", approvals.Deny, "not twice")
	require.Equal(t, agentrun.RunCompleted, w.resume(second.Deferred).Status)
	require.Equal(t, []string{"gated:1"}, w.executed())
	require.Equal(t, "g-2 denied: ", w.added()[3][:12])
}
