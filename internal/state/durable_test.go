package state_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// An ack is something that people or tools are told after, and which may be
// made again if nobody was.
type ack struct {
	Name string
	Make func() error
}

// acks are every way in which a store is asked for something durable. What they
// need is there already.
func acks(t *testing.T, s *state.Store) []ack {
	t.Helper()
	ctx, id := t.Context(), ids{4}
	opens := openBatch(t, id.batch("b"), id.run("r"), 2, time.Time{})
	require.NoError(t, s.CommitBatch(ctx, approvals.BatchCommit{Batch: opens.Batch}))
	click := decide(t, opens.Batch, approvals.Approve, "click")
	run := agentrun.Run{ID: id.run("new"), Status: agentrun.RunQueued, CreatedAt: start0}
	entry := agentrun.Entry{Run: id.run("r"), Call: "call", Tool: "delete_file", State: agentrun.EntryStarted, Fence: "f", At: start0}
	sheet, err := approvals.NewSheet(listed(opens.Batch), start0)
	require.NoError(t, err)
	return []ack{
		{"a decision", func() error { return madeOnce(s.CommitBatch(ctx, click)) }},
		{"a decision that was made before", func() error {
			return madeOnce(s.CommitBatch(ctx, approvals.BatchCommit{Request: "again", Before: click.Batch, Batch: click.Batch}))
		}},
		{"a run", func() error { return s.Commit(ctx, agentrun.Commit{Request: "run", Runs: []agentrun.Run{run}}) }},
		{"the beginning of a call", func() error {
			return s.Commit(ctx, agentrun.Commit{Request: "begin", Entries: []agentrun.Entry{entry}})
		}},
		{"a sheet", func() error { return s.CommitSheet(ctx, approvals.SheetCommit{Request: "show", Sheet: sheet}) }},
		{"a memo that is kept", func() error {
			_, version, err := s.Memo(ctx, string(id.run("r")), "record")
			if err != nil {
				return err
			}
			return s.KeepMemo(ctx, string(id.run("r")), "record", []byte("x"), version)
		}},
		{"what was read", func() error { return s.Confirm(ctx, string(opens.Batch.ID)) }},
	}
}

// madeOnce is nil for a commit that was made, now or before.
func madeOnce(err error) error {
	if errors.Is(err, approvals.ErrAnswered) {
		return nil
	}
	return err
}
