package memo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Redraw has the record redrawn, if there is one: it stores that Slack shows nothing of
// it, and makes its document due. While someone else holds a claim, Redraw waits: they
// would store again what they have drawn. Outdate must not be nil.
func (l Notes[T]) Redraw(ctx context.Context, id string) error {
	for {
		wait, err := l.outdate(ctx, id, false)
		if wait == 0 || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// redraw makes a record due to be drawn again, because something older may have been sent
// over it. While another process holds the claim, redraw waits: that process would store
// what it has drawn, which may be what is covered now. It tries until ctx ends, also after
// errors, and at least once.
func (l Notes[T]) redraw(ctx context.Context, id string) error {
	for {
		over := ctx.Err() != nil
		wait, err := l.outdate(ctx, id, over)
		if over || (wait == 0 && err == nil) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(wait, lookAgain(0))):
		}
	}
}

// outdate stores that Slack shows nothing of the record, and makes it due. Unless it is
// forced, it does nothing while someone holds a claim, and returns how long to wait.
func (l Notes[T]) outdate(ctx context.Context, id string, forced bool) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	for range Attempts {
		n, version, err := l.Load(ctx, id)
		if err != nil || version == 0 {
			return 0, err
		}
		if left := n.Until.Sub(l.Memos.Time()); n.Owner != "" && left > 0 && !forced {
			return min(left, time.Second), nil
		}
		l.Outdate(&n.Body)
		if err := l.storeDue(ctx, id, n, version); !errors.Is(err, approvals.ErrConflict) {
			return 0, err
		}
	}
	return 0, fmt.Errorf("have the %s of %s drawn again: %w", l.Surface, id, approvals.ErrConflict)
}
