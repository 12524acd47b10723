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

// Redraw has everything drawn anew that shows the batch: its cards, the digests that list
// it, and what its thread says of the run. It is for messages that show what is not stored
// any more, because the store was replaced by an older copy. The processes that draw do it
// as fast as Slack allows; Redraw does not wait for that.
func Redraw(ctx context.Context, m memo.Store, now func() time.Time, b approvals.Batch) error {
	p := &delivery.Placements{Memos: m, Now: now, Digests: &delivery.Digests{Memos: m, Now: now}}
	return errors.Join(p.Redraw(ctx, b.ID), (&reply.Replies{Memos: m, Now: now}).Redraw(ctx, b.Run))
}
