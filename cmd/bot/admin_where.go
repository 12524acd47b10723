package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// where replaces the error of a command that found nothing to repair at a run: it says
// where the run is, and what continues it. It returns every other error as it is.
func (a admin) where(ctx context.Context, id approvals.RunID, err error) error {
	if !errors.Is(err, agentrun.ErrRunEnded) && !errors.Is(err, agentrun.ErrRunHeld) {
		return err
	}
	r, unread := a.store.Run(ctx, id)
	if unread != nil {
		return err
	}
	switch r.Status {
	case agentrun.RunRunning:
		return errors.New("a process works on it; if that process has died, another one continues the run after runs.lease")
	case agentrun.RunQueued, agentrun.RunWaiting:
		return fmt.Errorf("it is not parked but %s: the bot begins it when it is its turn, or tries it again, by itself", r.Status)
	case agentrun.RunDeferred, agentrun.RunCompleted, agentrun.RunMerged, agentrun.RunFailed, agentrun.RunParked:
	}
	if next, missing := a.after(ctx, r); missing == nil {
		return fmt.Errorf("run %s continues it, and is %s", next.ID, next.Status)
	}
	if r.Status == agentrun.RunDeferred {
		return a.deferred(ctx, r)
	}
	return err
}

// deferred says what a run waits for that no other one continues.
func (a admin) deferred(ctx context.Context, r agentrun.Run) error {
	b, err := a.store.Batch(ctx, r.Deferred)
	if err != nil {
		return err
	}
	if b.Settled() {
		return fmt.Errorf("its calls are decided; bot admin run %s tells what became of them", r.ID)
	}
	return fmt.Errorf("it is not stuck: its calls wait for people, or for results from elsewhere; "+
		"it goes on when they have decided, or at its deadline; bot admin run %s tells what it waits for", r.ID)
}
