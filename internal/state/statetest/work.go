package statetest

import (
	"context"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/state"
)

// Work does what is due, as a process does, until ctx ends: by these tasks, and
// what has none of them is put off.
func Work(ctx context.Context, d *state.Due, some ...state.Task) error {
	for _, k := range state.Kinds() {
		if !slices.ContainsFunc(some, func(t state.Task) bool { return t.Kind == k }) {
			some = append(some, state.Task{Kind: k, Limit: time.Minute, Reconcile: func(context.Context, string) error { return putOffError{} }})
		}
	}
	tasks, err := state.NewTasks(some...)
	if err != nil {
		return err
	}
	return d.Run(ctx, tasks)
}

// A putOffError has an item wait for longer than a test takes. That is no failure.
type putOffError struct{}

func (putOffError) Error() string             { return "this test does not work on it" }
func (putOffError) RetryAfter() time.Duration { return time.Hour }
