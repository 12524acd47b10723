package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Memo returns the bytes that a surface keeps about a document, and their
// version: nil and 0 if it keeps none. The id may also be one that the surface
// made with [approvals.NewID] for something that is no document.
func (s *Store) Memo(ctx context.Context, id, surface string) (data []byte, version int64, err error) {
	k, _, err := s.memo(id, surface)
	if err != nil {
		return nil, 0, err
	}
	data, version, err = s.document(ctx, k)
	if errors.Is(err, approvals.ErrNotFound) {
		return nil, 0, nil
	}
	return memoOf(surface, data), version, wrap(err, "load memo %s of %s", surface, id)
}

// packMemo returns what is stored of a memo. There are many of those of requests, so these
// are packed, which older versions do not expect.
func packMemo(p partition, surface string, data []byte) []byte {
	if p.apart || !isOfRequests(surface) {
		return data
	}
	return pack(data)
}

// memoOf returns the memo of what is stored. What cannot be unpacked is returned as it is:
// the surface finds out that it cannot read it, and knows what to do then.
func memoOf(surface string, stored []byte) []byte {
	if !isOfRequests(surface) {
		return stored
	}
	if data, err := unpack(stored); err == nil {
		return data
	}
	return stored
}

// MemoVersion returns only the version of the memo, 0 if there is none. It tells whether
// what was read of a long one still holds.
func (s *Store) MemoVersion(ctx context.Context, id, surface string) (int64, error) {
	k, _, err := s.memo(id, surface)
	if err != nil {
		return 0, err
	}
	v, err := ask(ctx, s.conn, func(c redis.Cmdable) *redis.StringCmd { return c.HGet(ctx, string(k), fieldVersion) }).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("load the version of memo %s of %s: %w", surface, id, err)
	}
	version, err := parseVersion(v)
	return version, wrap(err, "load the version of memo %s of %s", surface, id)
}

// CommitMemo stores the bytes if the memo still has this version, 0 for none;
// otherwise [approvals.ErrConflict]. What is drawn can be drawn again, so a
// memo is no more durable than the server makes it: what is acknowledged needs
// [Store.KeepMemo].
//
// With drawn > 0 it also says that the surface, which is then a [Kind], has
// done its work for that version of the document: the due entry goes in the
// same step, unless the document has moved on. Then the memo is stored all the
// same and the entry stays, because there is more to do. If there is no memo and
// data is nil, none is stored.
func (s *Store) CommitMemo(ctx context.Context, id, surface string, data []byte, version, drawn int64) error {
	ch, k, p, err := s.memoChange(agentrun.MemoChange{MemoRef: agentrun.MemoRef{ID: id, Surface: surface}, Version: version, Data: data})
	if err != nil {
		return err
	}
	if drawn > 0 {
		doc, err := p.document(Kind(surface), id)
		if err != nil {
			return err
		}
		done, none := newChangeOf(p, k), version == 0 && data == nil
		if none { // there is no document to remember it
			done = newRepeatable(p)
		}
		done.wantVersion(doc, fieldVersion, drawn)
		if none {
			done.wantVersion(k, fieldVersion, 0)
		} else if err := done.put(k, version, version+1, packMemo(p, surface, data)); err != nil {
			return err
		}
		w := newDueChanges(s, p, done)
		w.done(Kind(surface), id)
		w.finish()
		failed, err := s.commit(ctx, done)
		if err != nil || failed == 0 || (none && failed == 1) {
			return wrap(err, "commit memo %s of %s", surface, id)
		}
		if none {
			return fmt.Errorf("commit memo %s of %s: %w", surface, id, approvals.ErrConflict)
		}
		// Which check failed does not matter: the second change has only one.
	}
	return wrap(s.apply(ctx, ch), "commit memo %s of %s", surface, id)
}

// Redraw stores the bytes like [Store.CommitMemo]. In the same step the document becomes
// due for work of the kind, so that what was drawn of it is drawn again.
func (s *Store) Redraw(ctx context.Context, id, surface, kind string, data []byte, version int64) error {
	ch, _, p, err := s.memoChange(agentrun.MemoChange{MemoRef: agentrun.MemoRef{ID: id, Surface: surface}, Version: version, Data: data})
	if err != nil {
		return err
	}
	if _, err := p.document(Kind(kind), id); err != nil {
		return err
	}
	w := newDueChanges(s, p, ch)
	w.now(Kind(kind), id)
	w.finish()
	return wrap(s.apply(ctx, ch), "commit memo %s of %s, to be drawn again", surface, id)
}

// MemoParts is Memo, with the parts of the memo by their names.
func (s *Store) MemoParts(ctx context.Context, id, surface string) (data []byte, parts map[string][]byte, version int64, err error) {
	k, _, err := s.memo(id, surface)
	if err != nil {
		return nil, nil, 0, err
	}
	fields, err := s.client.HGetAll(ctx, string(k)).Result()
	if err != nil {
		return nil, nil, 0, fmt.Errorf("load memo %s of %s: %w", surface, id, err)
	}
	if fields[fieldVersion] == "" {
		return nil, nil, 0, nil
	}
	parts = make(map[string][]byte)
	for f, v := range fields {
		if name, ok := strings.CutPrefix(f, fieldPart+":"); ok {
			parts[name] = []byte(v)
		}
	}
	version, err = parseVersion(fields[fieldVersion])
	return memoOf(surface, []byte(fields[fieldDoc])), parts, version, wrap(err, "load memo %s of %s", surface, id)
}

// ChangeMemo stores a memo and its parts like CommitMemo.
func (s *Store) ChangeMemo(ctx context.Context, m agentrun.MemoChange) error {
	ch, _, _, err := s.memoChange(m)
	if err != nil {
		return err
	}
	return wrap(s.apply(ctx, ch), "commit memo %s of %s", m.Surface, m.ID)
}

// KeepMemo is [Store.CommitMemo] for what is acknowledged: it returns once the memo is as
// durable as a commit that was answered. An [approvals.ErrNotDurable] says that it is
// stored and may be lost.
func (s *Store) KeepMemo(ctx context.Context, id, surface string, data []byte, version int64) error {
	ch, _, _, err := s.memoChange(agentrun.MemoChange{MemoRef: agentrun.MemoRef{ID: id, Surface: surface}, Version: version, Data: data})
	if err != nil {
		return err
	}
	return wrap(s.applyBehind(ctx, ch), "keep memo %s of %s", surface, id)
}

// RevertMemo takes back a change of a memo that was to store the bytes is as this version,
// and of which it is not known whether it was stored: it stores the bytes to if the memo
// has this version and holds exactly the bytes is, or if it still has the version before,
// so that the change is refused when it arrives later. Otherwise it is
// [approvals.ErrConflict]. After a failover the same version of a memo may be the change of
// another process.
func (s *Store) RevertMemo(ctx context.Context, id, surface string, is, to []byte, version int64) error {
	for tries := 2; ; tries-- { // between the two, the change may arrive
		err := s.replaceMemo(ctx, id, surface, is, to, version)
		if errors.Is(err, approvals.ErrConflict) {
			err = s.CommitMemo(ctx, id, surface, to, version-1, 0)
		}
		if !errors.Is(err, approvals.ErrConflict) || tries == 1 {
			return err
		}
	}
}

// replaceMemo stores the bytes to if the memo has this version and holds exactly the bytes is.
func (s *Store) replaceMemo(ctx context.Context, id, surface string, is, to []byte, version int64) error {
	ch, k, p, err := s.memoChange(agentrun.MemoChange{MemoRef: agentrun.MemoRef{ID: id, Surface: surface}, Version: version, Data: to})
	if err != nil {
		return err
	}
	ch.wantField(k, fieldDoc, string(packMemo(p, surface, is)))
	return wrap(s.apply(ctx, ch), "revert memo %s of %s", surface, id)
}

// memoChange returns a change that stores the memo.
func (s *Store) memoChange(m agentrun.MemoChange) (*change, hashKey, partition, error) {
	k, p, err := s.memo(m.ID, m.Surface)
	if err != nil {
		return nil, "", partition{}, err
	}
	ch := newChangeOf(p, k)
	return ch, k, p, putMemo(ch, p, m)
}

func putMemo(ch *change, p partition, m agentrun.MemoChange) error {
	k := p.memo(m.Surface, m.ID)
	var set, drop []any
	for name, part := range m.Set {
		set = append(set, fieldPart+":"+name, []byte(part))
	}
	for _, name := range m.Drop {
		drop = append(drop, fieldPart+":"+name)
	}
	for pairs := range slices.Chunk(set, chunk) {
		ch.hset(k, pairs...)
	}
	for fields := range slices.Chunk(drop, chunk) {
		ch.hdel(k, fields...)
	}
	if m.Version > 0 && slices.Contains(namesOfRuns, m.Surface) {
		ch.persist(k) // it may have been left to expire with another run
	}
	if err := ch.put(k, m.Version, m.Version+1, packMemo(p, m.Surface, m.Data)); err != nil {
		return err
	}
	if m.Surface == digestMemo {
		ch.expire(k, keepDigest)
	}
	return nil
}

// What is remembered of a message that lists requests of a channel belongs to no run
// with which it could be removed. Requests change within their deadlines; one that
// changes later than this is listed in a new message.
const (
	digestMemo = "digest"
	keepDigest = 90 * 24 * time.Hour
)

func (s *Store) memo(id, surface string) (hashKey, partition, error) {
	p, err := s.partitionOf(id)
	if err != nil {
		return "", partition{}, err
	}
	if surface == "" || strings.Contains(surface, ":") {
		return "", partition{}, fmt.Errorf("%w: a surface is not called %q", approvals.ErrInvalid, surface)
	}
	return p.memo(surface, id), p, nil
}
