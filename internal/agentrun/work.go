package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Work claims the run and continues it until it ends, defers, or the runner
// drains. A run that another worker holds, or that must not run now, is left
// alone without an error. The due index calls Work.
//
// An error means that the store, the policy or ctx failed: the run is as it
// was, and is to be looked at again.
func (r *Runner) Work(ctx context.Context, id approvals.RunID) error {
	if r.isDraining() {
		return nil
	}
	run, err := r.c.Store.Run(ctx, id)
	if err != nil {
		return err
	}
	if run.Executor != "" {
		return fmt.Errorf("%w: run %s", ErrElsewhere, id)
	}
	at, ok := run.Due()
	if !ok {
		return nil
	}
	now, err := r.readClocks(ctx)
	if err != nil {
		return fmt.Errorf("claim run %s: %w", id, err)
	}
	if now.store.Before(at) && run.Status == RunRunning {
		return nil
	}
	give, err := r.places.take(run)
	if err != nil {
		return err
	}
	defer give()
	return r.workOn(ctx, run, now)
}

// clocks are the times of this process and of the store. The process is asked
// first, so that a worker never takes its lease for longer than the store does.
type clocks struct{ here, store time.Time }

func (r *Runner) readClocks(ctx context.Context) (clocks, error) {
	here := r.c.Now()
	store, err := r.c.LeaseTime(ctx)
	return clocks{here, store}, err
}

// workOn claims the run and continues it.
func (r *Runner) workOn(ctx context.Context, run Run, now clocks) error {
	c, err := r.take(ctx, run, now)
	if c == nil || err != nil {
		return err
	}
	return r.continueRun(ctx, newWorker(r, c), false)
}

// held reports whether the lease of a running run is not over.
func (r *Runner) held(ctx context.Context, run Run) (bool, error) {
	now, err := r.c.LeaseTime(ctx)
	if err != nil {
		return false, fmt.Errorf("judge the lease of run %s: %w", run.ID, err)
	}
	return now.Before(run.LeaseEnds), nil
}

// take claims a run for a new worker. Without an error and without a claim,
// someone else was faster or has it.
func (r *Runner) take(ctx context.Context, run Run, now clocks) (*claim, error) {
	thread, err := r.c.Store.Thread(ctx, run.Thread)
	if err != nil {
		return nil, err
	}
	if thread.Active != run.ID {
		if now, err := r.c.Store.Run(ctx, run.ID); err != nil || now.Version != run.Version {
			return nil, err // someone has had it meanwhile
		}
		return nil, fmt.Errorf("run %s is %s but not the active run of %s", run.ID, run.Status, thread.ID)
	}
	c := r.newClaim(run.ID)
	run = c.on(run, now)
	err = c.store.Commit(ctx, Commit{Runs: []Run{run}})
	if errors.Is(err, approvals.ErrConflict) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("claim run %s: %w", run.ID, err)
	}
	c.taken(run, thread, now)
	return c, nil
}

// continueRun works on a claimed run and releases it when the work has ended or
// failed. waited says that a caller waits for its calls, see [Runner.Execute].
func (r *Runner) continueRun(ctx context.Context, w *worker, waited bool) error {
	c := w.session.claim
	held, cancel := context.WithCancelCause(ctx)
	var holding sync.WaitGroup
	holding.Go(func() { c.hold(held, cancel) })

	w.executor.unwaited = c.run.CallsOnly && !waited
	err := w.loop(held)
	lost := errors.Is(context.Cause(held), errClaimLost)
	cancel(nil)
	holding.Wait()

	switch {
	case err == nil:
		return nil
	case lost || errors.Is(err, errClaimLost):
		return nil // the worker that holds the run continues it
	case w.executor.uncertain():
		return err // the end of the lease shows what is in doubt
	}
	if errors.As(err, new(*notHereError)) {
		r.c.Log.InfoContext(ctx, "run left to the other replicas", slog.String("run", string(c.run.ID)), slog.Any("err", err))
	}
	var from time.Time
	if !errors.Is(err, errDraining) && ctx.Err() == nil {
		from = r.c.Now().Add(putOff)
	}
	as := RunQueued
	if c.run.CallsOnly && (waited || errors.Is(err, errNobodyWaits)) && !w.session.journal.anyBegun() {
		as = RunWaiting // for the next caller
	}
	if rel := w.session.release(ctx, from, as); rel != nil && !errors.Is(rel, errClaimLost) {
		err = errors.Join(err, rel)
	}
	if errors.Is(err, errDraining) || errors.Is(err, errNobodyWaits) {
		return nil
	}
	return err
}

// putOff is how long a run waits at least after a step that failed. The due
// index, which counts the failures, makes it longer each time.
const putOff = time.Second
