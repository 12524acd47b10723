package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

var _ approvals.Feed = (*Feed)(nil)

// A Feed reads the events of batches, as they were committed. One for each
// process is enough: all its followers share a subscription.
type Feed struct {
	c       *conn
	batches listeners // every change of a batch wakes [Cards]
	changes listeners // and every change of a run [Replies]
}

// NewFeed returns the feed of the store.
func NewFeed(s *Store) *Feed {
	return &Feed{c: s.conn, batches: listeners{kinds: []Kind{Cards}}, changes: listeners{kinds: []Kind{Cards, Replies}}}
}

// Facts returns at most limit facts of a partition that come after the one with
// the id after, or from the first if that is empty, in the order in which they
// were committed. It does not wait for new ones.
func (f *Feed) Facts(ctx context.Context, partition int, after string, limit int64) ([]approvals.StoredEvent, error) {
	if partition < 0 || partition >= approvals.Partitions || limit <= 0 {
		return nil, fmt.Errorf("%w: %d facts of partition %d", approvals.ErrInvalid, limit, partition)
	}
	messages, err := f.factsAfter(ctx, partition, after, limit)
	if err != nil {
		return nil, err
	}
	var out []approvals.StoredEvent
	for _, m := range messages {
		e, err := eventOf(partition, m)
		if err != nil {
			return nil, err
		}
		out = append(out, approvals.StoredEvent{ID: m.ID, Event: e})
	}
	return out, nil
}

// Snapshot implements [approvals.Feed].
func (f *Feed) Snapshot(ctx context.Context, id approvals.BatchID) (approvals.Batch, string, error) {
	p, err := f.c.partitionOf(string(id))
	if err != nil {
		return approvals.Batch{}, "", err
	}
	// One transaction: no commit is between the two.
	pipe := f.c.client.TxPipeline()
	doc := readDocument(ctx, pipe, p.batch(string(id)))
	last := pipe.XRevRangeN(ctx, string(p.facts()), "+", "-", 1)
	if _, err := pipe.Exec(ctx); err != nil {
		return approvals.Batch{}, "", fmt.Errorf("load batch %s: %w", id, err)
	}
	b, err := batchOf(documentOf(doc))
	if err != nil {
		return approvals.Batch{}, "", fmt.Errorf("load batch %s: %w", id, err)
	}
	at := ""
	if len(last.Val()) > 0 {
		at = last.Val()[0].ID
	}
	return b, at, nil
}

// Follow implements [approvals.Feed]. It reads after every commit that
// concerns the partition, and every few seconds in case a wake-up was lost.
func (f *Feed) Follow(ctx context.Context, id approvals.BatchID, after string) iter.Seq2[approvals.StoredEvent, error] {
	return func(yield func(approvals.StoredEvent, error) bool) {
		p, err := f.c.partitionOf(string(id))
		if err != nil {
			yield(approvals.StoredEvent{}, err)
			return
		}
		f.follow(ctx, p.n, id, after, yield)
	}
}

// Watch returns a channel that is ready after each change of a run or a batch in
// the partition of the id, and a function to be called when it is not read any
// more. A change may be missed while the connection to the server is interrupted,
// so a caller looks by itself once in a while. A thousand watchers share one
// subscription.
func (f *Feed) Watch(id string) (changed <-chan struct{}, leave func(), err error) {
	p, err := f.c.partitionOf(id)
	if err != nil {
		return nil, nil, err
	}
	changed, leave = f.changes.listen(f.c, p.n)
	return changed, leave, nil
}

// FollowPartition is [Feed.Follow] of everything in a partition.
func (f *Feed) FollowPartition(ctx context.Context, partition int, after string) iter.Seq2[approvals.StoredEvent, error] {
	return func(yield func(approvals.StoredEvent, error) bool) {
		if partition < 0 || partition >= approvals.Partitions {
			yield(approvals.StoredEvent{}, fmt.Errorf("%w: partition %d", approvals.ErrInvalid, partition))
			return
		}
		f.follow(ctx, partition, "", after, yield)
	}
}

// LastFact returns the place of the last fact of a partition: what follows it is
// still to come. Without any fact it is empty.
func (f *Feed) LastFact(ctx context.Context, partition int) (string, error) {
	if partition < 0 || partition >= approvals.Partitions {
		return "", fmt.Errorf("%w: partition %d", approvals.ErrInvalid, partition)
	}
	last, err := f.c.client.XRevRangeN(ctx, string(f.c.partition(partition).facts()), "+", "-", 1).Result()
	if err != nil || len(last) == 0 {
		return "", wrap(err, "read the last fact of partition %d", partition)
	}
	return last[0].ID, nil
}

// follow yields the facts of a batch, or of the whole partition if id is empty.
func (f *Feed) follow(ctx context.Context, partition int, id approvals.BatchID, after string, yield func(approvals.StoredEvent, error) bool) {
	woken, leave := f.batches.listen(f.c, partition) //nolint:contextcheck // followers share the subscription, so it does not end with this one
	defer leave()
	for {
		more, err := f.batchFacts(ctx, partition, id, &after, yield)
		if err != nil && ctx.Err() == nil {
			yield(approvals.StoredEvent{}, err)
		}
		if err != nil || !more {
			return
		}
		look := time.NewTimer(followSweep*3/4 + rand.N(followSweep/2)) //nolint:gosec // jitter is no secret
		select {
		case <-ctx.Done():
		case <-woken:
		case <-look.C:
		}
		look.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// followSweep is how often a follower looks without being woken, give or take a
// quarter.
var followSweep = 5 * time.Second

// batchFacts yields what there is of the batch, or of everything, after a place and moves the
// place on. more is false if nothing more is wanted.
func (f *Feed) batchFacts(ctx context.Context, partition int, id approvals.BatchID, after *string, yield func(approvals.StoredEvent, error) bool) (more bool, err error) {
	for {
		messages, err := f.factsAfter(ctx, partition, *after, factsAtOnce)
		if err != nil {
			return false, err
		}
		for _, m := range messages {
			*after = m.ID
			raw, err := factOf(partition, m)
			if err != nil {
				return false, err
			}
			if !bytes.Contains(raw, []byte(id)) {
				continue // most are of other batches, and need not be understood
			}
			e, err := decodeFact(partition, m, raw)
			if err != nil {
				return false, err
			}
			if (id == "" || approvals.BatchOf(e) == id) && !yield(approvals.StoredEvent{ID: m.ID, Event: e}, nil) {
				return false, nil
			}
		}
		if len(messages) < factsAtOnce {
			return true, nil
		}
	}
}

// factsAfter reads facts of a partition as they are stored.
func (f *Feed) factsAfter(ctx context.Context, partition int, after string, limit int64) ([]redis.XMessage, error) {
	if after == "" {
		after = "0"
	}
	streams, err := f.c.client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{string(f.c.partition(partition).facts()), after},
		Count:   limit,
		Block:   -1,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read facts of partition %d: %w", partition, err)
	}
	var out []redis.XMessage
	for _, stream := range streams {
		out = append(out, stream.Messages...)
	}
	return out, nil
}

func eventOf(partition int, m redis.XMessage) (approvals.Event, error) {
	raw, err := factOf(partition, m)
	if err != nil {
		return nil, err
	}
	return decodeFact(partition, m, raw)
}

// factOf returns the text of a fact.
func factOf(partition int, m redis.XMessage) ([]byte, error) {
	stored, _ := m.Values[fieldEvent].(string)
	raw, err := unpack([]byte(stored))
	return raw, wrap(err, "decode fact %s of partition %d", m.ID, partition)
}

func decodeFact(partition int, m redis.XMessage, raw []byte) (approvals.Event, error) {
	e, err := approvals.DecodeEvent(raw)
	return e, wrap(err, "decode fact %s of partition %d", m.ID, partition)
}
