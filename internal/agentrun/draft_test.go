package agentrun_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
)

// A watcher notes what it is told, and of which runs.
type watcher struct {
	none   bool
	opened []agentrun.Run
	closed int
	told   []agentrun.Delta
}

func (w *watcher) Open(run agentrun.Run) (write func(agentrun.Delta), closed func()) {
	w.opened = append(w.opened, run)
	if w.none {
		return nil, nil
	}
	return func(d agentrun.Delta) { w.told = append(w.told, d) }, func() { w.closed++ }
}

// Who watches is told what the model writes, at the place that it will have in the
// thread and in the words of the history. What people may not see of a call, and
// calls that will have another id, are left out.
func TestWhoWatchesIsToldWhatTheModelWrites(t *testing.T) {
	w := newWorld(t)
	tool := func(name string, writeOnly ...string) agentrun.Tool {
		return &fake{
			spec: agentrun.Spec{Name: name, Kind: agentrun.KindFunction, WriteOnly: writeOnly},
			execute: func(context.Context, agentrun.Call) (agentrun.Result, error) {
				return agentrun.Result{Value: []byte(`1`)}, nil
			},
		}
	}
	w.agent.Tools = []agentrun.Tool{tool("files.delete"), tool("login", "/password")}
	deltas := []agentrun.Delta{
		{Kind: agentrun.DeltaThinking, Text: "Hm."},
		{Kind: agentrun.DeltaText, Text: "I'll "},
		{Kind: agentrun.DeltaAgain},
		{Kind: agentrun.DeltaCall, Call: "a", Tool: "files_delete", Text: `{"pa`},
		{Kind: agentrun.DeltaCall, Call: "b", Tool: "login", Text: `{"password":"x`},
		{Kind: agentrun.DeltaCall, Call: "c", Tool: "made_up", Text: `{}`},
	}
	w.model.reply = func(r agentrun.ModelRequest) agentrun.Response {
		for _, d := range deltas {
			r.Written(d)
		}
		if len(r.Messages) > 1 {
			return says("done")
		}
		return calls([3]string{"a", "files_delete", `{"path":"x"}`})
	}
	watch := &watcher{}
	run := w.mention("go")
	require.NoError(t, w.watched(watch).Work(t.Context(), run.ID))

	shown := append([]agentrun.Delta{}, deltas[:4]...)
	shown[3].Tool = "files.delete"
	require.Equal(t, append(shown, deltas[:3]...), watch.told, "the id a is taken the second time")
	require.Len(t, watch.opened, 2)
	require.Equal(t, 2, watch.closed)
	for i, at := range []int{1, 3} {
		require.Equal(t, run.ID, watch.opened[i].ID)
		require.Equal(t, at, watch.opened[i].To)
		require.IsType(t, agentrun.Response{}, w.history()[at])
	}
}

func TestWithoutAWatcherTheModelIsNotAskedToTell(t *testing.T) {
	w := newWorld(t)
	watch := &watcher{none: true}
	require.NoError(t, w.watched(watch).Work(t.Context(), w.mention("go").ID))
	w.work(w.mention("again").ID)
	require.Len(t, watch.opened, 1)
	for _, r := range w.model.requests {
		require.Nil(t, r.Written)
	}
}

func TestWhoWatchesIsToldThatNothingFollows(t *testing.T) {
	w := newWorld(t)
	w.model.answers = []any{errors.New("it broke")}
	watch := &watcher{}
	require.NoError(t, w.watched(watch).Work(t.Context(), w.mention("go").ID))
	require.Equal(t, 1, watch.closed)
}

// watched is a runner whose responses are watched.
func (w *world) watched(by agentrun.Watchers) *agentrun.Runner {
	return agentrun.NewRunner(agentrun.Config{
		Store: w.store, Policy: w.policy, Now: w.now, Agents: w.agents, Watchers: by,
	})
}
