package agentrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// nowAsksMessage is the result of a call that needed nobody when it was asked
// about, and does now.
const nowAsksMessage = "The policy has changed: this call needs approval now. " + sameCallMessage

// sameCallMessage says how the caller has people asked about a call of [Runner.Execute].
const sameCallMessage = "It was not run. Make the same call again to ask for it."

// An Executed is how far the execution of a remote request is.
type Executed struct {
	Run    approvals.RunID // that executes the calls; empty if there is none yet
	Status Status          // of that run; [RunDeferred] while people are asked about a call in doubt
	Parts  []RequestPart   // the results, when it is completed or failed
	Words  string          // for people, when it failed or is parked
	Ended  time.Time
}

// Over reports whether nothing more becomes of the calls without people.
func (e Executed) Over() bool {
	return e.Status == RunCompleted || e.Status == RunFailed || e.Status == RunParked
}

// Execute executes the calls of a remote request here, once, for a caller that
// waits for them. The caller has claimed the decision, so it may not call Execute
// for another reason. The calls become those of a run of their own, which takes up
// the answers as any other would: the policy may still refuse, and the journal
// knows what has begun. That run begins nothing but in here: after a crash, or when
// the runner drains, it waits for the next caller. A call that had begun is in
// doubt, like any other: its run goes on without a caller.
//
// Calling it again for the same request returns what became of the calls, or how far they
// are if another worker has them.
func (r *Runner) Execute(ctx context.Context, id approvals.RunID) (Executed, error) {
	var run Run
	err := retryConflicts(func(int) (err error) {
		run, err = r.executing(ctx, id)
		return err
	})
	if err != nil {
		return Executed{}, err
	}
	now, err := r.readClocks(ctx)
	if err != nil {
		return Executed{}, fmt.Errorf("claim run %s: %w", run.ID, err)
	}
	if at, due := run.Due(); !r.isDraining() && (run.Status == RunWaiting || due && !now.store.Before(at)) {
		c, err := r.take(ctx, run, now)
		if err != nil {
			return Executed{}, err
		}
		if c != nil {
			return r.follow(ctx, c, id)
		}
	}
	return r.Executed(ctx, id)
}

// Continue is [Runner.Execute] for a remote request that was admitted Here a moment ago:
// the first call takes up the claim that came with the admission.
func (r *Runner) Continue(ctx context.Context, remote RemoteRun) (Executed, error) {
	if remote.begun == nil || !remote.begun.made.used.CompareAndSwap(false, true) {
		return r.Execute(ctx, remote.Run.ID)
	}
	return r.follow(ctx, remote.begun, remote.Run.ID)
}

// follow continues the claimed run that executes the calls of a remote request.
func (r *Runner) follow(ctx context.Context, c *claim, id approvals.RunID) (Executed, error) {
	w := newWorker(r, c)
	if err := r.continueRun(ctx, w, true); err != nil {
		return Executed{}, err
	}
	if run := c.snapshot(); run.Status == RunCompleted || run.Status == RunFailed {
		return executed(run, w.session.history[run.From:run.To]), nil
	}
	return r.Executed(ctx, id)
}

// Executed returns how far the execution of a remote request is.
func (r *Runner) Executed(ctx context.Context, id approvals.RunID) (Executed, error) {
	first, err := ExecutionRunID(id)
	if err != nil {
		return Executed{}, err
	}
	run, err := r.c.Store.Run(ctx, first)
	if errors.Is(err, approvals.ErrNotFound) {
		return Executed{}, nil
	}
	if err != nil {
		return Executed{}, err
	}
	for run.Status == RunDeferred { // people are asked about a call in doubt
		next, err := ResumeRunID(run.Deferred)
		if err != nil {
			return Executed{}, err
		}
		resumed, err := r.c.Store.Run(ctx, next)
		if errors.Is(err, approvals.ErrNotFound) {
			break
		}
		if err != nil {
			return Executed{}, err
		}
		run = resumed
	}
	messages, err := r.c.Store.Messages(ctx, run.Thread, run.From, run.To)
	if err != nil {
		return Executed{}, err
	}
	return executed(run, messages), nil
}

// executed is what became of the calls of a run with these messages.
func executed(run Run, messages []Message) Executed {
	e := Executed{Run: run.ID, Status: run.Status, Words: run.Failure, Ended: run.EndedAt}
	for _, m := range messages {
		if q, ok := m.(Request); ok {
			e.Parts = append(e.Parts, q.Parts...)
		}
	}
	return e
}

// executing returns the run that executes the calls, and makes it if there is
// none.
func (r *Runner) executing(ctx context.Context, id approvals.RunID) (Run, error) {
	remote, err := r.Remote(ctx, id)
	if err != nil {
		return Run{}, err
	}
	if remote.Run.Status == RunDeferred {
		// Its end is that of the request, and due in any case.
		if !remote.Batch.Settled() {
			return Run{}, fmt.Errorf("%w: batch %s", approvals.ErrOpen, remote.Batch.ID)
		}
		if err := r.Deliver(ctx, remote.Batch.ID); err != nil {
			return Run{}, err
		}
	}
	first, err := ExecutionRunID(id)
	if err != nil {
		return Run{}, err
	}
	run, err := r.c.Store.Run(ctx, first)
	if !errors.Is(err, approvals.ErrNotFound) {
		return run, err
	}
	thread, err := r.c.Store.Thread(ctx, remote.Run.Thread)
	if err != nil {
		return Run{}, err
	}
	if run, err = r.executionOf(remote, thread); err != nil {
		return Run{}, err
	}
	thread.Active = first
	err = r.c.Store.Commit(ctx, Commit{Request: approvals.RequestID("execute:" + string(id)), Thread: &thread, Runs: []Run{run}})
	if err != nil {
		return Run{}, fmt.Errorf("begin the execution of run %s: %w", id, err)
	}
	run.Version++
	return run, nil
}

// executionOf returns the run that executes the calls of a remote request, as it waits
// for a worker.
func (r *Runner) executionOf(remote RemoteRun, thread Thread) (Run, error) {
	id, err := ExecutionRunID(remote.Run.ID)
	return Run{
		ID: id, Thread: thread.ID, Origin: remote.Run.Origin, Parent: remote.Run.ID, Batch: remote.Batch.ID, CallsOnly: true,
		Agent: remote.Run.Agent, Requester: remote.Run.Requester,
		Status: RunWaiting, From: thread.Messages, To: thread.Messages, CreatedAt: r.c.Now(),
	}, err
}

// ExecutionRunID returns the id of the run that executes the calls of a remote
// request, if this bot does that.
func ExecutionRunID(id approvals.RunID) (approvals.RunID, error) {
	return derivedID[approvals.RunID]("run", "execute", string(id))
}
