package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// report says what a call did whose end this worker can no longer store, because
// its run was given to another worker meanwhile. The outcome is for people: it is
// on the card that asks about the call, and it decides nothing. It is in the log
// in any case.
func (x *executor) report(ctx context.Context, e Entry) {
	told := executionOf(e.Finish, "", x.session.now())
	said := false
	var err error
	// The other worker asks people when it has done what else there is to do.
	for wait := 10 * time.Millisecond; !said && pause(ctx, wait); wait *= 2 {
		var over bool
		said, over, err = x.tell(ctx, e, told)
		if over || err != nil && !errors.Is(err, approvals.ErrConflict) {
			break
		}
	}
	attrs := []slog.Attr{
		slog.String("call", string(e.Call)), slog.String("tool", e.Tool),
		slog.String("state", string(told.State)), slog.Bool("told", said),
	}
	if err != nil {
		attrs = append(attrs, slog.Any("err", err))
	}
	x.session.log(ctx, slog.LevelWarn, "call finished after its run was taken over", attrs...)
}

// tell records the execution in the batch that asks about the call. over says that
// there is none and will be none.
func (x *executor) tell(ctx context.Context, e Entry, told approvals.Execution) (said, over bool, err error) {
	store := x.session.claim.store
	run, err := store.Run(ctx, e.Run)
	if err != nil {
		return false, false, err
	}
	if run.Deferred == "" {
		return false, run.Status != RunRunning && run.Status != RunQueued, nil
	}
	b, err := store.Batch(ctx, run.Deferred)
	if err != nil {
		return false, false, err
	}
	asked, ok := b.Approval(e.Call)
	if !ok || !asked.InDoubt() {
		return false, true, nil // it was not asked about: another execution of it has an outcome
	}
	if told, err = quotable(ctx, store, b.ID, asked, told); err != nil {
		return false, false, err
	}
	next, events, err := b.Apply(approvals.Report{Call: e.Call, Execution: told, At: x.session.now()})
	if err != nil || len(events) == 0 {
		return err == nil, true, err
	}
	err = store.Commit(ctx, Commit{
		Request: approvals.RequestID(fmt.Sprintf("late:%s:%s:%s:%d", e.Run, e.Fence, e.Call, b.Version)),
		Moves:   &BatchMove{Before: b, Batch: next, Events: events},
	})
	return err == nil, false, err
}
