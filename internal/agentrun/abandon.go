package agentrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Abandon ends a run that cannot be continued: calls without a result are
// recorded as interrupted, the run fails with these words, and the next run of
// its thread begins. If the history cannot be read, no run could continue it:
// the thread is closed, and the runs that wait in it fail. Abandon refuses a
// run that a worker holds ([ErrRunHeld]), or that is final ([ErrRunEnded]).
func (r *Runner) Abandon(ctx context.Context, id approvals.RunID, words string) error {
	return retryConflicts(func(attempt int) error { return r.abandon(ctx, id, words, attempt) })
}

func (r *Runner) abandon(ctx context.Context, id approvals.RunID, words string, attempt int) error {
	run, err := r.c.Store.Run(ctx, id)
	if err != nil {
		return err
	}
	now := r.c.Now()
	switch run.Status {
	case RunDeferred, RunMerged, RunCompleted, RunFailed:
		return fmt.Errorf("%w: run %s is %s", ErrRunEnded, id, run.Status)
	case RunRunning:
		if held, err := r.held(ctx, run); err != nil {
			return err
		} else if held {
			return fmt.Errorf("%w: run %s", ErrRunHeld, id)
		}
	case RunWaiting, RunQueued, RunParked:
	}
	thread, err := r.c.Store.Thread(ctx, run.Thread)
	if err != nil {
		return err
	}
	out := Commit{Request: approvals.RequestID(fmt.Sprintf("abandon:%s:%d:%d", id, run.Version, attempt))}
	run.Failure = words
	if run.Status == RunWaiting {
		thread.Queue = slices.DeleteFunc(slices.Clone(thread.Queue), func(q approvals.RunID) bool { return q == id })
		run.Status, run.EndedAt, out.Thread = RunFailed, now, &thread
		out.Runs = []Run{run}
		return r.c.Store.Commit(ctx, out)
	}
	if thread.Active != id {
		return fmt.Errorf("%w: run %s is not the active one of %s", approvals.ErrConflict, id, thread.ID)
	}
	err = r.closeCalls(ctx, &run, &thread, &out)
	if errors.Is(err, ErrUnreadable) || errors.Is(err, approvals.ErrNotFound) {
		thread.Closed = closedWords
		run.Failure += " " + closedWords
		err = r.failQueue(ctx, &thread, &out, now)
	}
	if err != nil {
		return err
	}
	run.Status = RunFailed
	if err := endRun(ctx, r.c.Store, &run, &thread, &out, now); err != nil {
		return err
	}
	out.Runs = append(out.Runs, run)
	return r.c.Store.Commit(ctx, out)
}

const closedWords = "The messages of this thread can no longer be read, so the thread is closed. Start a new thread."

// failQueue ends all that waits for a thread that is closed.
func (r *Runner) failQueue(ctx context.Context, thread *Thread, out *Commit, now time.Time) error {
	for _, id := range thread.Queue {
		waiting, err := r.c.Store.Run(ctx, id)
		if err != nil {
			return err
		}
		waiting.Status, waiting.Failure, waiting.EndedAt = RunFailed, thread.Closed, now
		out.Runs = append(out.Runs, waiting)
	}
	thread.Queue = nil
	return nil
}

// closeCalls answers what has no result in the run's history.
func (r *Runner) closeCalls(ctx context.Context, run *Run, thread *Thread, out *Commit) error {
	history, err := r.c.Store.Messages(ctx, thread.ID, 0, run.To)
	if err != nil {
		return err
	}
	entries, err := r.c.Store.Journal(ctx, run.ID)
	if err != nil {
		return err
	}
	if run.To == run.From {
		journal := journalOf(entries)
		err := conclude(ctx, r.c.Store, *run, out, r.c.Now(), func(id approvals.ToolCallID) approvals.Conclusion {
			return approvals.Conclusion{Execution: journal.execution(id, run.Failure, r.c.Now())}
		})
		if err != nil {
			return err
		}
	}
	parts := closing(history, journalOf(entries), nil, r.c.Now())
	if len(parts) == 0 {
		return nil
	}
	out.Append = &Append{Thread: thread.ID, At: run.To, Messages: []Message{Request{Parts: parts, Authors: []approvals.UserID{}, RunID: run.ID, At: r.c.Now()}}}
	run.To++
	thread.Messages = run.To
	return nil
}
