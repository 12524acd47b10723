package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// A Fact is an event with its place in the stream of its partition.
type Fact struct {
	ID    string
	Event approvals.Event
}

// Facts returns at most limit facts of a partition that come after the one with
// the id after, or from the first if that is empty, in the order in which they
// were committed. It does not wait for new ones.
func (s *Store) Facts(ctx context.Context, partition int, after string, limit int64) ([]Fact, error) {
	if partition < 0 || partition >= approvals.Partitions || limit <= 0 {
		return nil, fmt.Errorf("%w: %d facts of partition %d", approvals.ErrInvalid, limit, partition)
	}
	if after == "" {
		after = "0"
	}
	streams, err := s.client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{string(s.partition(partition).facts()), after},
		Count:   limit,
		Block:   -1,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read facts of partition %d: %w", partition, err)
	}
	var out []Fact
	for _, stream := range streams {
		for _, m := range stream.Messages {
			raw, _ := m.Values[fieldEvent].(string)
			e, err := approvals.DecodeEvent([]byte(raw))
			if err != nil {
				return nil, fmt.Errorf("decode fact %s of partition %d: %w", m.ID, partition, err)
			}
			out = append(out, Fact{ID: m.ID, Event: e})
		}
	}
	return out, nil
}
