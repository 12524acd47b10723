package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

var _ approvals.Store = (*Store)(nil)

// Batch implements [approvals.Store]. Callers that read the same version share what it
// points to, and must not modify it.
func (s *Store) Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error) {
	p, err := s.partitionOf(string(id))
	if err != nil {
		return approvals.Batch{}, err
	}
	b, version, err := load(ctx, s.conn, p.batch(string(id)), func(doc []byte) (approvals.Batch, error) {
		return recentBatches.get(doc, readBatch)
	})
	b.Version = version
	return b, wrap(err, "load batch %s", id)
}

// recentBatches are those that were read lately, one at a time.
var recentBatches decoded[approvals.Batch]

// Args implements [approvals.Store].
func (s *Store) Args(ctx context.Context, id approvals.BatchID, d approvals.Digest) (json.RawMessage, error) {
	p, err := s.partitionOf(string(id))
	if err != nil {
		return nil, err
	}
	raw, err := s.raw(ctx, p.args(string(id), d))
	return raw, wrap(err, "load arguments %s of %s", d.Short(), id)
}

// ArgsOf implements [approvals.Store].
func (s *Store) ArgsOf(ctx context.Context, of []approvals.ArgsKey) (map[approvals.ArgsKey]json.RawMessage, error) {
	if len(of) == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	reads := map[approvals.ArgsKey]*redis.StringCmd{}
	for _, k := range of {
		p, err := s.partitionOf(string(k.Batch))
		if err != nil {
			return nil, err
		}
		if reads[k] == nil {
			reads[k] = pipe.Get(ctx, string(p.args(string(k.Batch), k.Digest)))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("load arguments of %d calls: %w", len(of), err)
	}
	found := map[approvals.ArgsKey]json.RawMessage{}
	for k, read := range reads {
		switch raw, err := read.Bytes(); {
		case errors.Is(err, redis.Nil):
		case err != nil:
			return nil, fmt.Errorf("load arguments %s of %s: %w", k.Digest.Short(), k.Batch, err)
		case len(raw) > 0:
			if found[k], err = unpack(raw); err != nil {
				return nil, fmt.Errorf("load arguments %s of %s: %w: %w", k.Digest.Short(), k.Batch, approvals.ErrUnreadable, err)
			}
		}
	}
	return found, nil
}

// CommitBatch implements [approvals.Store]. It derives the due work: the card
// and the Homes are to be drawn ([Cards], [Homes]); time moves the batch next
// at [Deadlines]; a settled batch is to be resumed ([Resumes]), or its answers
// delivered to the executor of its run ([Deliveries]); endpoints are to be told
// what happened to a batch that has external calls, or that another executor asked
// about and wants to be told of ([Announcements]); and people are to be notified
// ([Notices]) of a reminder, of an escalation, that an amendment has cleared their
// decisions, or, where participants asked for the calls too, that nobody is left to
// approve.
func (s *Store) CommitBatch(ctx context.Context, c approvals.BatchCommit) error {
	p, err := s.partitionOf(string(c.Batch.ID))
	if err != nil {
		return err
	}
	ch := newChangeOfBatch(p, c.Batch, newRequest(c.Request), c.Keep, s.now())
	if v := c.Batch.Version; v > 0 && v == c.Before.Version {
		if len(c.Events)+len(c.Args) > 0 {
			return fmt.Errorf("%w: batch %s has facts, but no new version", approvals.ErrInvalid, c.Batch.ID)
		}
		ch.stays(v)
		return wrap(s.applyBehind(ctx, ch), "remember a request to batch %s", c.Batch.ID)
	}
	w := newDueChanges(s, p, ch)
	if err := putBatch(ch, p, w, c.Before, c.Batch, c.Events, c.Args); err != nil {
		return err
	}
	w.finish()
	return wrap(s.applyBehind(ctx, ch), "commit batch %s", c.Batch.ID)
}

// Answered implements [approvals.Store]. A request is known for at least ten minutes,
// and for as long as people may decide about the batch, but for no more than 90 days
// without a deadline; or for as long as its commit said.
func (s *Store) Answered(ctx context.Context, id approvals.BatchID, r approvals.RequestID) (bool, error) {
	p, err := s.partitionOf(string(id))
	if err != nil {
		return false, err
	}
	pipe := s.client.Pipeline()
	field := pipe.HGet(ctx, string(p.batch(string(id))), fieldRequests)
	alone := pipe.Exists(ctx, string(p.request(string(id), r)))
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return false, fmt.Errorf("look up request %s of %s: %w", r, id, err)
	}
	return alone.Val() == 1 || remembersRequest(field.Val(), r), nil
}

func batchOf(doc []byte, version int64, err error) (approvals.Batch, error) {
	if err != nil {
		return approvals.Batch{}, err
	}
	b, err := readBatch(doc)
	b.Version = version
	return b, err
}

func readBatch(doc []byte) (approvals.Batch, error) {
	b, err := decodeBatch(doc)
	if err != nil {
		return approvals.Batch{}, fmt.Errorf("%w: %w", approvals.ErrUnreadable, err)
	}
	return b, nil
}

// tells reports whether people are to be notified of the fact.
func tells(b approvals.Batch, e approvals.Event) bool {
	switch e := e.(type) {
	case approvals.Reminded, approvals.Escalated:
		return true
	case approvals.Opened:
		return len(b.Participants) > 0 // it may be that nobody is left to approve
	case approvals.Amended:
		return len(e.Cleared)+len(b.Participants) > 0
	default:
		return false
	}
}

// answers is the kind of work that takes up the answers of the batch.
func answers(b approvals.Batch) Kind {
	if b.Executor != "" {
		return Deliveries
	}
	return Resumes
}

// putBatch adds to the change everything that a new state of a batch brings.
func putBatch(ch *change, p partition, w *dueChanges, before, b approvals.Batch,
	events []approvals.Event, args map[approvals.Digest]json.RawMessage,
) error {
	id := string(b.ID)
	d, err := encodeBatch(b)
	if err != nil {
		return fmt.Errorf("encode batch %s: %w", id, err)
	}
	var more []any
	if before.Version == 0 && ch.memory != fieldRequests {
		more = []any{fieldRequests, formatVersion(b.Version) + ":"} // it has no request of its own
	}
	if err := ch.put(p.batch(id), before.Version, b.Version, d, more...); err != nil {
		return err
	}
	for digest, raw := range args {
		ch.setOnce(p.args(id, digest), string(pack(raw)))
	}
	kept := b.Digests()
	for _, digest := range before.Digests() {
		if !slices.Contains(kept, digest) { // the content of a preview of arguments that were edited
			ch.unlink(string(p.args(id, digest)))
		}
	}
	if len(events) > 0 {
		facts, err := encodeFacts(events)
		if err != nil {
			return fmt.Errorf("encode a fact of %s: %w", id, err)
		}
		ch.xadd(p.facts(), fieldEvent, pack(facts))
	}
	putInbox(ch, p, before, b)
	w.now(Cards, id)
	w.now(Homes, id)
	if b.Executor != "" && !b.Untold || len(b.Calls) > 0 {
		w.now(Announcements, id)
	}
	if at := b.Next(); !at.IsZero() {
		w.at(Deadlines, id, at)
	} else if !before.Next().IsZero() { // otherwise it was never there
		w.done(Deadlines, id)
	}
	if slices.ContainsFunc(events, func(e approvals.Event) bool { return tells(b, e) }) {
		w.now(Notices, id)
	}
	if b.Settled() && !before.Settled() {
		w.now(answers(b), id)
	}
	return nil
}
