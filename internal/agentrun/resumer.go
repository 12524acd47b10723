package agentrun

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
)

// Resume makes sure that a settled batch has its resume run, whose id is
// derived from the batch's. If a message has ended the batch, its text is the
// prompt of that run. It is what the due index calls; a batch that is
// not settled is left alone without an error. The batch of a run that is not
// executed here is never resumed: [ErrElsewhere].
func (r *Runner) Resume(ctx context.Context, id approvals.BatchID) error {
	return retryConflicts(func(int) error { return r.resume(ctx, id) })
}

// ResumeRunID returns the id of the run that takes up the answers of a batch.
func ResumeRunID(id approvals.BatchID) (approvals.RunID, error) {
	return derivedID[approvals.RunID]("run", "resume", string(id))
}

func (r *Runner) resume(ctx context.Context, id approvals.BatchID) error {
	runID, err := ResumeRunID(id)
	if err != nil {
		return err
	}
	ctx = r.c.Store.Prefetch(ctx, approvals.Reads{Batches: []approvals.BatchID{id}, Runs: []approvals.RunID{runID}})
	b, err := r.c.Store.Batch(ctx, id)
	if err != nil {
		return err
	}
	if !b.Settled() {
		return nil
	}
	switch _, err := r.c.Store.Run(ctx, runID); {
	case err == nil:
		return nil
	case !errors.Is(err, approvals.ErrNotFound):
		return err
	}
	ctx = r.c.Store.Prefetch(ctx, approvals.Reads{Runs: []approvals.RunID{b.Run}, Threads: []string{b.Thread}})
	parent, err := r.c.Store.Run(ctx, b.Run)
	if err != nil {
		return err
	}
	if b.Executor != "" || parent.Executor != "" {
		return fmt.Errorf("%w: batch %s of run %s", ErrElsewhere, id, parent.ID)
	}
	if parent.Status != RunDeferred || parent.Deferred != id {
		return fmt.Errorf("batch %s is settled, but run %s is %s and does not wait for it", id, parent.ID, parent.Status)
	}
	thread, err := r.c.Store.Thread(ctx, parent.Thread)
	if err != nil {
		return err
	}
	if thread.Active != parent.ID {
		// Either another replica has just resumed it, or something is wrong;
		// the next look tells.
		return fmt.Errorf("%w: run %s is not the active one of %s", approvals.ErrConflict, parent.ID, thread.ID)
	}
	run := Run{
		ID: runID, Thread: thread.ID, Origin: parent.Origin, Parent: parent.ID, Batch: id,
		Agent: parent.Agent, Requester: parent.Requester, Prompt: carried(parent), CallsOnly: parent.CallsOnly, Via: parent.Via, Instructions: parent.Instructions,
		Status: RunQueued, From: thread.Messages, To: thread.Messages, Usage: parent.Usage, CreatedAt: r.c.Now(),
	}
	thread.Active = runID
	out := Commit{Thread: &thread, Resumes: &b}
	if err := r.takeUp(ctx, &run, &thread, &out); err != nil {
		return err
	}
	out.Runs = append(out.Runs, run)
	if err := r.c.Store.Commit(ctx, out); err != nil {
		return fmt.Errorf("resume batch %s: %w", id, err)
	}
	return nil
}

// carried returns the prompt of a run that deferred again before the model read
// it: it goes with the next stage.
func carried(parent Run) string {
	if parent.Parent != "" && parent.Steps == 0 {
		return parent.Prompt
	}
	return ""
}
