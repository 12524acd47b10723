package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/state"
)

func adminRedraw(ctx context.Context, in *call) error {
	return act(ctx, in, func(a admin, args []string) (done, error) {
		if len(args) > 0 {
			return a.redrawOne(ctx, approvals.BatchID(args[0]))
		}
		return a.redraw(ctx)
	})
}

// redrawOne redraws the messages that show a request.
func (a admin) redrawOne(ctx context.Context, id approvals.BatchID) (done, error) {
	b, err := a.store.Batch(ctx, id)
	if errors.Is(err, approvals.ErrNotFound) {
		return done{}, fmt.Errorf("batch %q: %w: bot admin list shows the requests that wait, and bot admin run the batches of a run", string(id), approvals.ErrNotFound)
	}
	if err == nil {
		err = slackui.Redraw(ctx, a.store, time.Now, b)
	}
	return redrawn(1), err
}

// redraw redraws the messages that show the requests that wait. It goes on after a request
// that fails, and reports the failures at the end.
func (a admin) redraw(ctx context.Context) (done, error) {
	ctx = state.Unawaited(ctx) // the cards on which people click meanwhile go first
	var cursor approvals.Cursor
	var problems []error
	n := 0
	for {
		page, next, err := a.waiting(ctx, cursor, 100)
		if err != nil {
			return done{}, errors.Join(append(problems, fmt.Errorf("after %s: %w", redrawn(n).words, err))...)
		}
		for _, b := range page {
			if err := slackui.Redraw(ctx, a.store, time.Now, b); err != nil {
				problems = append(problems, fmt.Errorf("redraw %s: %w", b.ID, err))
				continue
			}
			n++
		}
		if cursor = next; cursor == "" {
			if len(problems) > 0 {
				err = fmt.Errorf("%s, and %d failed: %w", redrawn(n).words, len(problems), errors.Join(problems...))
			}
			return redrawn(n), err
		}
	}
}

func redrawn(n int) done {
	return done{counted(n, "request will be redrawn", "requests will be redrawn"), map[string]any{"redrawn": n}}
}
