package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// CommitTimed stores the bytes of a memo that is work of its own, if the memo still
// has this version, 0 for none; otherwise it is [approvals.ErrConflict]. In the same
// step the memo becomes due at a time, and is no longer due if that is zero. The
// surface is the kind of that work, which must be [Webhooks], [ToolChanges] or
// [Removals].
//
// Like [Store.CommitMemo] it is no more durable than the server makes it: whoever
// relies on it calls [Store.Confirm], or makes a durable commit in the same
// partition afterwards.
func (s *Store) CommitTimed(ctx context.Context, id, surface string, data []byte, version int64, due time.Time) error {
	kind := Kind(surface)
	if kind != Webhooks && kind != ToolChanges && kind != Removals {
		return fmt.Errorf("%w: memos of %s are no work of their own", approvals.ErrInvalid, surface)
	}
	k, p, err := s.memo(id, surface)
	if err != nil {
		return err
	}
	ch := newChangeOf(p, k)
	if err := ch.put(k, version, version+1, data); err != nil {
		return err
	}
	w := newDueChanges(s, p, ch)
	if due.IsZero() {
		w.done(kind, id)
	} else {
		w.at(kind, id, due)
	}
	w.finish()
	return wrap(s.apply(ctx, ch), "commit %s of %s", surface, id)
}

// Timed returns the ids of a partition that are due in the kind of work, now or
// later, the earliest first. What is parked is not among them.
func (s *Store) Timed(ctx context.Context, surface string, partition int) ([]string, error) {
	if !isKind(Kind(surface)) {
		return nil, fmt.Errorf("%w: there is no kind of work %q", approvals.ErrInvalid, surface)
	}
	if partition < 0 || partition >= approvals.Partitions {
		return nil, fmt.Errorf("%w: there is no partition %d", approvals.ErrInvalid, partition)
	}
	due := s.partition(partition).due(Kind(surface))
	found, err := due.until(ctx, s.client, maxScore, -1).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("list what is due in %s: %w", surface, err)
	}
	var all []string
	for _, e := range due.entries(partition, found) {
		all = append(all, e.id)
	}
	return all, nil
}
