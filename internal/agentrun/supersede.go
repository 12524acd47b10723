package agentrun

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
)

// A PendingError is an [ErrPending] with the batch that is waited for.
type PendingError struct{ Batch approvals.Batch }

// Error is for the log.
func (e *PendingError) Error() string { return fmt.Sprintf("%s: batch %s", ErrPending, e.Batch.ID) }

// Unwrap returns [ErrPending].
func (e *PendingError) Unwrap() error { return ErrPending }

// supersede returns what the message of a new run makes of the batch that its
// thread waits for: nil if the batch stays open, or if the thread waits for
// none.
//
// The message is committed with it. So an approval that comes in meanwhile is
// either in the batch that is ended, or finds it ended; and no message ends
// anything without being in the thread's queue, for [Runner.Resume] to find.
func (r *Runner) supersede(ctx context.Context, thread Thread, newer Run) (*BatchMove, error) {
	agent, ok := r.c.Agents(newer.Agent)
	if !ok || agent.Pending == PendingKeep {
		return nil, nil
	}
	run, err := r.c.Store.Run(ctx, thread.Active)
	if err != nil {
		return nil, err
	}
	if run.Status != RunDeferred {
		return nil, nil
	}
	b, err := r.c.Store.Batch(ctx, run.Deferred)
	if errors.Is(err, approvals.ErrNotFound) || errors.Is(err, approvals.ErrUnreadable) {
		return nil, nil // there is no open batch
	}
	if err != nil {
		return nil, err
	}
	switch {
	case b.Settled():
		return nil, nil
	case agent.Pending == PendingRefuse:
		return nil, &PendingError{Batch: b}
	case run.Requester != newer.Requester, run.Agent != newer.Agent:
		return nil, nil
	}
	next, events, err := b.Apply(approvals.Withdraw{By: newer.Requester, Reason: approvals.Superseded, At: newer.CreatedAt})
	if err != nil {
		return nil, fmt.Errorf("end batch %s: %w", b.ID, err)
	}
	return &BatchMove{Before: b, Batch: next, Events: events}, nil
}

// takeUp gives a resume run the message that has ended its batch, if one has:
// that is the first in the queue, and its run is over with this. A message is a
// new request, with the limits of one.
func (r *Runner) takeUp(ctx context.Context, run *Run, thread *Thread, out *Commit) error {
	if len(thread.Queue) == 0 {
		return nil
	}
	first, err := r.c.Store.Run(ctx, thread.Queue[0])
	if err != nil {
		return err
	}
	if first.Supersedes != run.Batch {
		return nil
	}
	if run.Prompt != "" {
		run.Prompt += "\n\n"
	}
	run.Prompt += first.Prompt
	run.Instructions, run.Usage = first.Instructions, Usage{}
	first.Status, first.EndedAt = RunMerged, run.CreatedAt
	thread.Queue = thread.Queue[1:]
	out.Runs = append(out.Runs, first)
	return nil
}
