package agentrun

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/countersign/countersign/internal/approvals"
)

// Park stops a run that no worker gets any further, with words for people: it
// is not continued automatically, and its thread waits until someone has it
// tried again with [Runner.Retry] or ends it with [Runner.Abandon]. It refuses
// a run that a worker has ([ErrRunHeld]), or that is final ([ErrRunEnded]); one
// that is parked stays as it is.
func (r *Runner) Park(ctx context.Context, id approvals.RunID, words string) error {
	return retryConflicts(func(int) error { return r.park(ctx, id, words) })
}

func (r *Runner) park(ctx context.Context, id approvals.RunID, words string) error {
	run, err := r.c.Store.Run(ctx, id)
	if err != nil {
		return err
	}
	switch run.Status {
	case RunParked:
		return nil
	case RunDeferred, RunMerged, RunCompleted, RunFailed:
		return fmt.Errorf("%w: run %s is %s", ErrRunEnded, id, run.Status)
	case RunWaiting:
		return fmt.Errorf("%w: run %s waits for its turn", approvals.ErrInvalid, id)
	case RunRunning:
		if held, err := r.held(ctx, run); err != nil {
			return err
		} else if held {
			return fmt.Errorf("%w: run %s", ErrRunHeld, id)
		}
	case RunQueued:
	}
	// A worker that claims the run meanwhile moves its version; one whose lease
	// has ended, and who does not know it yet, finds the version moved.
	request := approvals.RequestID(fmt.Sprintf("park:%s:%d", id, run.Version))
	parked(&run, words)
	if err := r.c.Store.Commit(ctx, Commit{Request: request, Runs: []Run{run}}); err != nil {
		return fmt.Errorf("park run %s: %w", id, err)
	}
	r.c.Log.ErrorContext(ctx, "run parked", slog.String("run", string(id)))
	return nil
}

// Retry lets a worker continue a parked run: the cause is mended, say the
// policy can be asked again. It refuses a run that is not parked ([ErrRunHeld] or
// [ErrRunEnded]). People are asked about a call of the run that is in doubt.
func (r *Runner) Retry(ctx context.Context, id approvals.RunID) error {
	run, err := r.c.Store.Run(ctx, id)
	if err != nil {
		return err
	}
	switch run.Status {
	case RunDeferred, RunMerged, RunCompleted, RunFailed:
		return fmt.Errorf("%w: run %s is %s", ErrRunEnded, id, run.Status)
	case RunWaiting, RunQueued, RunRunning:
		return fmt.Errorf("%w: run %s is %s", ErrRunHeld, id, run.Status)
	case RunParked:
	}
	request := approvals.RequestID(fmt.Sprintf("retry:%s:%d", id, run.Version))
	run.Status, run.Failure = RunQueued, ""
	if err := r.c.Store.Commit(ctx, Commit{Request: request, Runs: []Run{run}}); err != nil {
		return fmt.Errorf("retry run %s: %w", id, err)
	}
	return nil
}
