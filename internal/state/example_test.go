package state_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// A run is committed, and that alone makes it due. One task for each kind says
// what the process does about it.
func ExampleDue_Run() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	store, err := state.Open(ctx, state.Options{Client: redis.NewClient(&redis.Options{Addr: server.Addr()})})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close() //nolint:errcheck // an example
	run := agentrun.Run{ID: approvals.RunID(approvals.NewID("run", 7, "clean-up")), Status: agentrun.RunQueued}
	if err := store.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{run}}); err != nil {
		fmt.Println(err)
		return
	}

	var all []state.Task
	for _, kind := range state.Kinds() {
		nothing := func(context.Context, string) error { return nil }
		all = append(all, state.Task{Kind: kind, Reconcile: nothing, Limit: time.Minute})
	}
	_, err = state.NewTasks(all[1:]...)
	fmt.Println(err)

	all[0].Reconcile = func(ctx context.Context, id string) error {
		r, err := store.Run(ctx, approvals.RunID(id))
		if err != nil {
			return err
		}
		r.Status = agentrun.RunCompleted
		if err := store.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{r}}); err != nil {
			return err
		}
		fmt.Println(id, "is completed")
		stop()
		return nil
	}
	tasks, err := state.NewTasks(all...)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(state.NewDue(store, state.DueOptions{}).Run(ctx, tasks))
	// Output:
	// runs has 0 tasks and must have one
	// run-07-clean-up is completed
	// <nil>
}
