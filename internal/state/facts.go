package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// A Feed reads the events of batches, as they were committed. One for each
// process is enough: all its followers share a subscription.
type Feed struct {
	c       *conn
	batches listeners // every change of a batch wakes [Cards]
	changes listeners // and every change of a run that has a reply wakes [Replies] or undrawnSteps
}

// NewFeed returns the feed of the store.
func NewFeed(s *Store) *Feed {
	return &Feed{c: s.conn, batches: listeners{kinds: []Kind{Cards}}, changes: listeners{kinds: []Kind{Cards, Replies, undrawnSteps}}}
}

// Facts returns at most limit facts of a partition that come after the one with
// the id after, or from the first if that is empty, in the order in which they
// were committed. It does not wait for new ones.
func (f *Feed) Facts(ctx context.Context, partition int, after string, limit int64) ([]approvals.StoredEvent, error) {
	if partition < 0 || partition >= approvals.Partitions || limit <= 0 {
		return nil, fmt.Errorf("%w: %d facts of partition %d", approvals.ErrInvalid, limit, partition)
	}
	entries, err := f.factsAfter(ctx, partition, after, limit)
	if err != nil {
		return nil, err
	}
	var out []approvals.StoredEvent
	for _, e := range entries {
		facts, err := e.facts()
		if err != nil {
			return nil, err
		}
		out = append(out, facts...)
	}
	return out[:min(int64(len(out)), limit)], nil
}

// Watch returns a channel that is ready after each change of a batch, or of a run that
// has a reply ([Replies]), in the partition of the id, and a function to be called when it
// is not read any more. A change may be missed while the connection to the server is
// interrupted, so a caller looks by itself once in a while. A thousand watchers share one
// subscription.
func (f *Feed) Watch(id string) (changed <-chan struct{}, leave func(), err error) {
	p, err := f.c.partitionOf(id)
	if err != nil {
		return nil, nil, err
	}
	changed, leave = f.changes.listen(f.c, p.n)
	return changed, leave, nil
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

// Follow yields the facts of a partition that come after a place, in the order in which
// they were committed, each once, and waits for more until ctx ends. It ends after an
// error, and can be called again with the place of the last fact. It reads after each
// commit that changes a batch, and every few seconds in case a wake-up was lost.
func (f *Feed) Follow(ctx context.Context, partition int, after string) iter.Seq2[approvals.StoredEvent, error] {
	return func(yield func(approvals.StoredEvent, error) bool) {
		if partition < 0 || partition >= approvals.Partitions {
			yield(approvals.StoredEvent{}, fmt.Errorf("%w: partition %d", approvals.ErrInvalid, partition))
			return
		}
		woken, leave := f.batches.listen(f.c, partition) //nolint:contextcheck // followers share the subscription, so it does not end with this one
		defer leave()
		for {
			more, err := f.yieldAfter(ctx, partition, &after, yield)
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
}

// followSweep is how often a follower looks without being woken, give or take a
// quarter.
var followSweep = 5 * time.Second

// Events yields the facts that a partition has, in the order in which they were
// committed. It ends after an error, and does not wait for new ones.
func (f *Feed) Events(ctx context.Context, partition int) iter.Seq2[approvals.StoredEvent, error] {
	return func(yield func(approvals.StoredEvent, error) bool) {
		var after string
		if _, err := f.yieldAfter(ctx, partition, &after, yield); err != nil {
			yield(approvals.StoredEvent{}, err)
		}
	}
}

// factsAtOnce is how many entries with facts are read at a time.
const factsAtOnce = 500

// yieldAfter yields the facts that there are after a place, and moves the place on. more is
// false if no more are wanted.
func (f *Feed) yieldAfter(ctx context.Context, partition int, after *string, yield func(approvals.StoredEvent, error) bool) (more bool, err error) {
	for {
		entries, err := f.factsAfter(ctx, partition, *after, factsAtOnce)
		if err != nil {
			return false, err
		}
		for _, e := range entries {
			facts, err := e.facts()
			if err != nil {
				return false, err
			}
			for _, fact := range facts {
				if *after = fact.ID; !yield(fact, nil) {
					return false, nil
				}
			}
		}
		if len(entries) < factsAtOnce {
			return true, nil
		}
	}
}

// factsAfter reads at most limit entries with facts of a partition, the first of which
// may be one that was read in part.
func (f *Feed) factsAfter(ctx context.Context, partition int, after string, limit int64) ([]factEntry, error) {
	from, within, err := entryAfter(after)
	if err != nil {
		return nil, err
	}
	streams, err := f.c.client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{string(f.c.partition(partition).facts()), from},
		Count:   limit,
		Block:   -1,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read facts of partition %d: %w", partition, err)
	}
	var out []factEntry
	for _, stream := range streams {
		for _, m := range stream.Messages {
			stored, _ := m.Values[fieldEvent].(string)
			raw, err := unpack([]byte(stored))
			if err != nil {
				return nil, fmt.Errorf("decode fact %s of partition %d: %w", m.ID, partition, err)
			}
			out = append(out, factEntry{partition: partition, id: m.ID, raw: raw})
		}
	}
	if read, _, _ := strings.Cut(after, "."); within > 0 && len(out) > 0 && out[0].id == read {
		out[0].read = within
	}
	return out, nil
}

// A factEntry is an entry of the stream of a partition: what one change of a batch
// brought. Its text is one fact, or an array of several.
type factEntry struct {
	partition int
	id        string // the place of its last fact; those before it have a point and their number behind
	raw       []byte
	read      int // so many of its facts come before the place that was asked for
}

// encodeFacts returns the text of an entry with these facts.
func encodeFacts(events []approvals.Event) ([]byte, error) {
	all := []byte{'['}
	for i, e := range events {
		raw, err := approvals.EncodeEvent(e)
		if err != nil || len(events) == 1 {
			return raw, err
		}
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, raw...)
	}
	return append(all, ']'), nil
}

// facts returns the facts of the entry that were not read.
func (e factEntry) facts() ([]approvals.StoredEvent, error) {
	texts := []json.RawMessage{e.raw}
	if bytes.HasPrefix(e.raw, []byte("[")) {
		if err := json.Unmarshal(e.raw, &texts); err != nil {
			return nil, fmt.Errorf("decode facts %s of partition %d: %w", e.id, e.partition, err)
		}
	}
	var out []approvals.StoredEvent
	for i, text := range texts {
		if i < e.read {
			continue
		}
		event, err := approvals.DecodeEvent(text)
		if err != nil {
			return nil, fmt.Errorf("decode fact %s of partition %d: %w", e.id, e.partition, err)
		}
		id := e.id
		if i < len(texts)-1 {
			id += "." + strconv.Itoa(i+1)
		}
		out = append(out, approvals.StoredEvent{ID: id, Event: event})
	}
	return out, nil
}

// StoredAt is when the fact at a place was stored, by the clock of its Redis. Within a
// partition it never goes back.
func StoredAt(place string) (time.Time, error) {
	at, _, _ := strings.Cut(place, "-")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %.100q is not the place of a fact", approvals.ErrInvalid, place)
	}
	return time.UnixMilli(ms).UTC(), nil
}

// entryAfter returns the entry after which to read for the facts after a place, and how
// many facts of the next one come before the place.
func entryAfter(place string) (id string, within int, err error) {
	entry, number, inside := strings.Cut(place, ".")
	if place == "" {
		return "0", 0, nil
	}
	if !inside {
		return place, 0, nil
	}
	at, n, _ := strings.Cut(entry, "-")
	ms, err1 := strconv.ParseUint(at, 10, 64)
	seq, err2 := strconv.ParseUint(n, 10, 64)
	within, err3 := strconv.Atoi(number)
	if err := errors.Join(err1, err2, err3); err != nil || within < 1 || ms == 0 {
		return "", 0, fmt.Errorf("%w: %.100q is not the place of a fact", approvals.ErrInvalid, place)
	}
	if seq == 0 {
		return fmt.Sprintf("%d-%d", ms-1, uint64(math.MaxUint64)), within, nil
	}
	return fmt.Sprintf("%d-%d", ms, seq-1), within, nil
}
