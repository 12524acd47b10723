package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Task is everything that a process does about one [Kind] of work.
type Task struct {
	Kind Kind

	// Reconcile makes the world agree with the state of the document with this
	// id. [Due.Run] says what the error that it returns means.
	Reconcile func(ctx context.Context, id string) error

	// Rank, if it is not 0, has the kind share workers with the other kinds that have
	// one. Where there is more work than workers, the lowest rank goes first.
	Rank int

	// Urgent says that people wait for what such work does. While an awaited item of the
	// kind is handled, see [Awaited], slow kinds with a rank handle one item each.
	Urgent bool

	// Slow says that Reconcile waits for others than the store, such as Slack. Slow kinds
	// may not have all of these workers, and they give way to urgent ones.
	Slow bool

	// Together, if it is more than 1, is how many items are handled at the same time as
	// one: what their handlers ask of the store is sent in the same round trips. It is
	// for handlers that wait for nothing else.
	Together int

	// Limit is how long Reconcile has for one item.
	Limit time.Duration

	// Parked, if set, is called with each item that this process has parked,
	// once that is stored and logged. It is for telling people; what it cannot
	// do is not tried again. Its context ends within seconds.
	Parked func(ctx context.Context, id string)
}

// Tasks are one [Task] for every kind. The zero value has none, and [Due.Run]
// refuses it.
type Tasks struct{ all []Task }

// NewTasks checks that every one of [Kinds] has exactly one task, with a
// reconciler and a limit. The error names every kind that is not so.
func NewTasks(all ...Task) (Tasks, error) {
	var problems []error
	found := make(map[Kind]int)
	for _, t := range all {
		found[t.Kind]++
		if !slices.Contains(Kinds(), t.Kind) {
			problems = append(problems, fmt.Errorf("there is no kind of work %q", t.Kind))
		}
		if t.Reconcile == nil {
			problems = append(problems, fmt.Errorf("the task for %s has no reconciler", t.Kind))
		}
		if t.Limit <= 0 {
			problems = append(problems, fmt.Errorf("the task for %s has no limit", t.Kind))
		}
	}
	for _, k := range Kinds() {
		if n := found[k]; n != 1 {
			problems = append(problems, fmt.Errorf("%s has %d tasks and must have one", k, n))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return Tasks{}, err
	}
	return Tasks{slices.Clone(all)}, nil
}
