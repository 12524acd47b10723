package state_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

func task(k state.Kind) state.Task {
	return state.Task{Kind: k, Limit: time.Minute, Reconcile: func(context.Context, string) error { return nil }}
}

func TestEveryKindOfWorkHasOneTask(t *testing.T) {
	t.Parallel()
	all := func() []state.Task {
		var out []state.Task
		for _, k := range state.Kinds() {
			out = append(out, task(k))
		}
		return out
	}
	_, err := state.NewTasks(all()...)
	require.NoError(t, err)
	for i, k := range state.Kinds() {
		for want, change := range map[string]func([]state.Task) []state.Task{
			string(k) + " has 0 tasks and must have one":       func(a []state.Task) []state.Task { return append(a[:i], a[i+1:]...) },
			string(k) + " has 2 tasks and must have one":       func(a []state.Task) []state.Task { return append(a, task(k)) },
			"the task for " + string(k) + " has no reconciler": func(a []state.Task) []state.Task { a[i].Reconcile = nil; return a },
			"the task for " + string(k) + " has no limit":      func(a []state.Task) []state.Task { a[i].Limit = 0; return a },
		} {
			_, err := state.NewTasks(change(all())...)
			require.EqualError(t, err, want)
		}
	}
	_, err = state.NewTasks(append(all(), task("posters"))...)
	require.EqualError(t, err, `there is no kind of work "posters"`)
}

func TestWorkWithoutTasksDoesNotStart(t *testing.T) {
	t.Parallel()
	s, err := state.Open(t.Context(), state.Options{Client: statetest.Miniredis(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.Error(t, state.NewDue(s, state.DueOptions{}).Run(t.Context(), state.Tasks{}))
}
