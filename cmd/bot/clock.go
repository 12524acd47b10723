package main

import (
	"context"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// A timely store takes no request, decision or claim while the clock of this process is
// wrong: they say when something happened, and by that whether it was in time. What has
// begun to run is stored by the store itself, and goes on.
type timely struct {
	*state.Store

	clock *state.Clock
}

// CommitBatch implements [approvals.Store].
func (s timely) CommitBatch(ctx context.Context, c approvals.BatchCommit) error {
	if err := s.clock.Agrees(ctx); err != nil {
		return err
	}
	return s.Store.CommitBatch(ctx, c)
}

// CommitSheet implements [approvals.SheetStore].
func (s timely) CommitSheet(ctx context.Context, c approvals.SheetCommit) error {
	if err := s.clock.Agrees(ctx); err != nil {
		return err
	}
	return s.Store.CommitSheet(ctx, c)
}

// CommitMemo is for the records of requests.
func (s timely) CommitMemo(ctx context.Context, id, surface string, data []byte, version, drawn int64) error {
	if err := s.clock.Agrees(ctx); err != nil {
		return err
	}
	return s.Store.CommitMemo(ctx, id, surface, data, version, drawn)
}

// ChangeMemo is for the records of requests.
func (s timely) ChangeMemo(ctx context.Context, m agentrun.MemoChange) error {
	if err := s.clock.Agrees(ctx); err != nil {
		return err
	}
	return s.Store.ChangeMemo(ctx, m)
}
