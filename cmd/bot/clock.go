package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// A timely store takes no request, decision or claim while the clock of this process is
// wrong, because their times say whether they were in time. Runs that have begun use the
// store itself, and go on.
type timely struct {
	anytime

	store *state.Store
	clock *state.Clock
}

func newTimely(s *state.Store, c *state.Clock) timely { return timely{anytime: s, store: s, clock: c} }

// anytime is what a wrong clock does not harm: reading, and taking back what was not
// acknowledged. It lists methods instead of embedding the store, so that a new way to
// store something does not compile until [timely] has a method for it.
type anytime interface {
	Args(ctx context.Context, id approvals.BatchID, d approvals.Digest) (json.RawMessage, error)
	ArgsOf(ctx context.Context, of []approvals.ArgsKey) (map[approvals.ArgsKey]json.RawMessage, error)
	Answered(ctx context.Context, id approvals.BatchID, r approvals.RequestID) (bool, error)
	Sheet(ctx context.Context, id approvals.SheetID) (approvals.Sheet, error)
	Run(ctx context.Context, id approvals.RunID) (agentrun.Run, error)
	Inbox(ctx context.Context, keys []approvals.ListKey, after approvals.Cursor, limit int) ([]approvals.Batch, approvals.Cursor, error)
	Memo(ctx context.Context, id, surface string) (data []byte, version int64, err error)
	MemoParts(ctx context.Context, id, surface string) (data []byte, parts map[string][]byte, version int64, err error)
	Prefetch(ctx context.Context, r approvals.Reads) context.Context
	Confirm(ctx context.Context, id string) error
	RevertMemo(ctx context.Context, id, surface string, is, to []byte, version int64) error
}

// Batch implements [approvals.Store]. Whether a deadline has passed is not judged by a wrong
// clock: people would read that it is too late, and that the call won't run.
func (s timely) Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error) {
	b, err := s.store.Batch(ctx, id)
	if ends := b.Deadline(); err == nil && !ends.IsZero() && !time.Now().Before(ends) {
		err = s.clock.Agrees(ctx)
	}
	return b, err
}

// CommitBatch implements [approvals.Store].
func (s timely) CommitBatch(ctx context.Context, c approvals.BatchCommit) error {
	if err := s.clock.Agrees(ctx); err != nil {
		return err
	}
	return s.store.CommitBatch(ctx, c)
}

// CommitSheet implements [approvals.SheetStore].
func (s timely) CommitSheet(ctx context.Context, c approvals.SheetCommit) error {
	if err := s.clock.Agrees(ctx); err != nil {
		return err
	}
	return s.store.CommitSheet(ctx, c)
}

// CommitMemo is for the records of requests.
func (s timely) CommitMemo(ctx context.Context, id, surface string, data []byte, version, drawn int64) error {
	if err := s.clock.Agrees(ctx); err != nil {
		return err
	}
	return s.store.CommitMemo(ctx, id, surface, data, version, drawn)
}

// KeepMemo is for the records of requests, and the claims in them.
func (s timely) KeepMemo(ctx context.Context, id, surface string, data []byte, version int64) error {
	if err := s.clock.Agrees(ctx); err != nil {
		return err
	}
	return s.store.KeepMemo(ctx, id, surface, data, version)
}

// ChangeMemo is for the records of requests.
func (s timely) ChangeMemo(ctx context.Context, m agentrun.MemoChange) error {
	if err := s.clock.Agrees(ctx); err != nil {
		return err
	}
	return s.store.ChangeMemo(ctx, m)
}

// memos are the records of Slack. What a person is promised there, an absence with its end,
// is not stored while the clock of this process is wrong.
type memos struct {
	*state.Store

	clock *state.Clock
}

// KeepMemo is for what a person is promised.
func (m memos) KeepMemo(ctx context.Context, id, surface string, data []byte, version int64) error {
	if err := m.clock.Agrees(ctx); err != nil {
		return err
	}
	return m.Store.KeepMemo(ctx, id, surface, data, version)
}
