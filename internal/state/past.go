package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// ErrOlder says that Redis has gone back to a time before what this process has read.
var ErrOlder = errors.New("redis does not hold facts that this process has read: an older copy was restored, or a server took over that had not received them")

// A Past notices that Redis has lost what it held. Nothing trims facts, so one that was
// there is there. It is not safe for concurrent use.
type Past struct {
	store *Store
	last  [approvals.Partitions]string // fact of each partition, at the last look
	older bool
}

// NewPast returns a past that begins with its first [Past.Holds].
func NewPast(s *Store) *Past { return &Past{store: s} }

// Holds is [Store.Holds], and reports with [ErrOlder] that a fact is gone that was there at
// an earlier call. That stays until the process ends, because new facts do not bring back
// what was lost.
func (p *Past) Holds(ctx context.Context) error {
	if err := p.store.Holds(ctx); err != nil {
		if errors.Is(err, ErrEmptied) {
			*p = Past{store: p.store}
		}
		return err
	}
	if p.older {
		return ErrOlder
	}
	pipe := p.store.client.Pipeline()
	var before, now [approvals.Partitions]*redis.XMessageSliceCmd
	for n, id := range p.last {
		facts := string(p.store.partition(n).facts())
		if id != "" {
			before[n] = pipe.XRange(ctx, facts, id, id)
		}
		now[n] = pipe.XRevRangeN(ctx, facts, "+", "-", 1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("read the last facts: %w", err)
	}
	for n := range p.last {
		if before[n] != nil && len(before[n].Val()) == 0 {
			p.older = true
			return ErrOlder
		}
		if last := now[n].Val(); len(last) > 0 {
			p.last[n] = last[0].ID
		}
	}
	return nil
}
