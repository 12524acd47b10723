package slackui

import (
	"context"
	"errors"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/delivery"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/reply"
)

// Redraw makes everything due again that shows the batch: its cards, the digests that list
// it, and what its thread says about the run. Use it when messages show what is no longer
// stored, because the store was replaced by an older copy. The processes that draw redraw
// them as fast as Slack allows; Redraw does not wait for that.
func Redraw(ctx context.Context, m memo.Store, now func() time.Time, b approvals.Batch) error {
	p := &delivery.Placements{Memos: m, Now: now, Digests: &delivery.Digests{Memos: m, Now: now}}
	return errors.Join(p.Redraw(ctx, b.ID), (&reply.Replies{Memos: m, Now: now}).Redraw(ctx, b.Run))
}
