package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/approvals"
)

// An Agent is a model with instructions, tools and limits.
type Agent struct {
	Name         string
	Instructions string
	Model        Model
	Tools        []Tool
	Limits       Limits
	Pending      PendingRule
}

// Config is what a [Runner] works with. All fields but NewFence, Lease,
// Parallel and Log are required.
type Config struct {
	Store    Store
	Policy   approvals.Policy
	Agents   func(name string) (Agent, bool)
	Now      func() time.Time
	NewFence func() Fence  // nil: random
	Lease    time.Duration // how long a claim lasts without renewal; 0 means 30 s
	Parallel int           // calls of one step that run at the same time; 0 means 8
	Log      *slog.Logger
}

// A Runner runs agents. It holds no run: everything between two steps is in
// the store, and any runner can go on with it.
type Runner struct {
	c        Config
	draining chan struct{}
	drain    func()
}

// NewRunner returns a runner.
func NewRunner(c Config) *Runner {
	if c.NewFence == nil {
		c.NewFence = func() Fence { return Fence(uuid.NewString()) }
	}
	if c.Lease <= 0 {
		c.Lease = 30 * time.Second
	}
	if c.Parallel <= 0 {
		c.Parallel = 8
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	draining := make(chan struct{})
	return &Runner{c: c, draining: draining, drain: sync.OnceFunc(func() { close(draining) })}
}

// Drain makes every Work return at its next commit, the run released for
// another worker to claim at once. It does not wait.
func (r *Runner) Drain() { r.drain() }

func (r *Runner) isDraining() bool {
	select {
	case <-r.draining:
		return true
	default:
		return false
	}
}

// Work claims the run and goes on with it until it ends, defers, or the runner
// drains. A run that somebody else has, or that is not to be run now, is left
// alone without an error. It is what the due index calls.
//
// An error means that the store, the policy or ctx failed: the run is as it
// was, and is to be looked at again.
func (r *Runner) Work(ctx context.Context, id approvals.RunID) error {
	if r.isDraining() {
		return nil
	}
	run, err := r.c.Store.Run(ctx, id)
	if err != nil {
		return fmt.Errorf("load run %s: %w", id, err)
	}
	if at, ok := run.Due(); !ok || r.c.Now().Before(at) && run.Status == RunRunning {
		return nil
	}
	c, err := r.take(ctx, run)
	if c == nil || err != nil {
		return err
	}
	return r.goOn(ctx, c)
}

// goOn works on a claimed run, and lets go of it in the way that fits how the
// work came to its end.
func (r *Runner) goOn(ctx context.Context, c *claim) error {
	held, cancel := context.WithCancelCause(ctx)
	var holding sync.WaitGroup
	holding.Go(func() { c.hold(held, cancel) })

	w := newWorker(r, c)
	err := w.loop(held)
	lost := errors.Is(context.Cause(held), errClaimLost)
	cancel(nil)
	holding.Wait()

	switch {
	case err == nil:
		return nil
	case lost || errors.Is(err, errClaimLost):
		return nil // whoever has the run goes on with it
	case w.executor.uncertain():
		return err // the end of the lease shows what is in doubt
	}
	var from time.Time
	if !errors.Is(err, errDraining) && ctx.Err() == nil {
		from = r.c.Now().Add(putOff)
	}
	if rel := c.release(ctx, from); rel != nil && !errors.Is(rel, errClaimLost) {
		err = errors.Join(err, rel)
	}
	if errors.Is(err, errDraining) {
		return nil
	}
	return err
}

// putOff is how long a run waits at least after a step that failed. The due
// index, which counts the failures, makes it longer each time.
const putOff = time.Second
