package state

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// ErrLayout says that the store was laid out by a program with another number of
// partitions. Ids have their partition in them, and a sweep looks at all partitions
// that there are, so work in the others would never be found.
var ErrLayout = errors.New("the store has another number of partitions than this program")

// checkLayout compares the number of partitions with the one that is stored, if one
// is.
func (s *conn) checkLayout(ctx context.Context) error {
	stored, err := s.client.Get(ctx, string(s.partition(0).layout())).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read how the store is laid out: %w", err)
	}
	if stored != strconv.Itoa(approvals.Partitions) {
		return fmt.Errorf("%w: %.20q, not %d", ErrLayout, stored, approvals.Partitions)
	}
	return nil
}

// LayOut stores the number of partitions, which [Open] compares from then on. A
// process that will write calls it once.
func (s *conn) LayOut(ctx context.Context) error {
	if err := s.client.SetNX(ctx, string(s.partition(0).layout()), strconv.Itoa(approvals.Partitions), 0).Err(); err != nil {
		return fmt.Errorf("store how the store is laid out: %w", err)
	}
	return s.checkLayout(ctx)
}
