package state

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

var _ agentrun.Store = (*Store)(nil)

// Thread implements [agentrun.Store].
func (s *Store) Thread(ctx context.Context, id agentrun.ThreadID) (agentrun.Thread, error) {
	p, err := s.partitionOf(string(id))
	if err != nil {
		return agentrun.Thread{}, err
	}
	t, version, err := load(ctx, s.conn, p.thread(string(id)), decodeThread)
	t.Version = version
	return t, wrap(err, "load thread %s", id)
}

// Run implements [agentrun.Store].
func (s *Store) Run(ctx context.Context, id approvals.RunID) (agentrun.Run, error) {
	p, err := s.partitionOf(string(id))
	if err != nil {
		return agentrun.Run{}, err
	}
	r, version, err := load(ctx, s.conn, p.run(string(id)), decodeRun)
	r.Version = version
	return r, wrap(err, "load run %s", id)
}

// Journal implements [agentrun.Store]. A run without entries has an empty one,
// and an entry that cannot be decoded is [agentrun.ErrUnreadable].
func (s *Store) Journal(ctx context.Context, id approvals.RunID) ([]agentrun.Entry, error) {
	p, err := s.partitionOf(string(id))
	if err != nil {
		return nil, err
	}
	fields, err := s.client.HGetAll(ctx, string(p.journal(string(id)))).Result()
	if err != nil {
		return nil, fmt.Errorf("load journal of %s: %w", id, err)
	}
	var out []agentrun.Entry
	for f, doc := range fields {
		call, ok := strings.CutPrefix(f, fieldDoc+":")
		if !ok {
			continue
		}
		e, err := decodeEntry([]byte(doc))
		if err != nil {
			return nil, fmt.Errorf("decode journal of %s: %w: %w", id, agentrun.ErrUnreadable, err)
		}
		if e.Version, err = parseVersion(fields[fieldVersion+":"+call]); err != nil {
			return nil, fmt.Errorf("decode journal of %s: %w: %w", id, agentrun.ErrUnreadable, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// Commit implements [agentrun.Store]. From each run it derives when a worker
// has to look ([Runs]) and, unless it is Undrawn, that its reply is to be drawn
// ([Replies]); from the batch that it opens or moves what [Store.CommitBatch] derives.
// What it resumes is no longer due in [Resumes] or [Deliveries].
func (s *Store) Commit(ctx context.Context, c agentrun.Commit) error {
	ids := idsOf(c)
	p, err := s.partitionOf(ids...)
	if err != nil {
		return err
	}
	ch := changeFor(p, c)
	w := newDueChanges(s, p, ch)
	if err := putCommit(ch, p, w, c); err != nil {
		return err
	}
	ends := []int{ch.count} // of the conditions of each part
	for _, part := range c.With {
		if err := putCommit(ch, p, w, part); err != nil {
			return err
		}
		ends = append(ends, ch.count)
	}
	w.finish()
	failed, err := s.commitBehind(ctx, ch, s.barrier)
	if part, _ := slices.BinarySearch(ends, failed); err == nil && failed > 0 && part > 0 {
		err = &agentrun.PartError{Part: part - 1}
	}
	return wrap(cmp.Or(err, conflict(failed, nil)), "commit %s", ids[0])
}

// changeFor returns the change for a commit. One that its caller does not repeat is
// remembered by a document that it stores, if it stores one that may.
func changeFor(p partition, c agentrun.Commit) *change {
	switch {
	case c.Request != "":
	case len(c.Memos) > 0:
		return newChangeOf(p, p.memo(c.Memos[0].Surface, c.Memos[0].ID))
	case len(c.Runs) > 0:
		return newChangeOf(p, p.run(string(c.Runs[0].ID)))
	case c.Thread != nil:
		return newChangeOf(p, p.thread(string(c.Thread.ID)))
	}
	return newChange(p, p.request("", newRequest(c.Request)), c.Keep)
}

// putCommit adds the conditions and the writes of a commit, without those of its With.
func putCommit(ch *change, p partition, w *dueChanges, c agentrun.Commit) error {
	if o := c.Owner; o != nil {
		if o.Fence == "" {
			return fmt.Errorf("%w: a condition on no owner", approvals.ErrInvalid)
		}
		ch.wantField(p.run(string(o.Run)), fieldOwner, string(o.Fence))
	}
	for _, m := range c.Memos {
		if err := putMemo(ch, p, m); err != nil {
			return err
		}
	}
	if c.Thread != nil {
		if err := putThread(ch, p, w, *c.Thread); err != nil {
			return err
		}
	}
	for _, r := range c.Runs {
		if err := putRun(ch, p, w, r, c.Undrawn); err != nil {
			return err
		}
	}
	if c.Append != nil {
		if err := putMessages(ch, p, *c.Append, c.Opens); err != nil {
			return err
		}
	}
	for _, e := range c.Entries {
		if err := putEntry(ch, p, e); err != nil {
			return err
		}
	}
	if o := c.Opens; o != nil {
		if err := putBatch(ch, p, w, approvals.Batch{}, o.Batch, o.Events, o.Args); err != nil {
			return err
		}
	}
	if m := c.Moves; m != nil {
		if err := putBatch(ch, p, w, m.Before, m.Batch, m.Events, nil); err != nil {
			return err
		}
	}
	if b := c.Resumes; b != nil {
		ch.wantVersion(p.batch(string(b.ID)), fieldVersion, b.Version)
		w.done(answers(*b), string(b.ID))
	}
	return nil
}

// idsOf returns the ids of all documents of the commit.
func idsOf(c agentrun.Commit) []string {
	var ids []string
	if c.Owner != nil {
		ids = append(ids, string(c.Owner.Run))
	}
	if c.Thread != nil {
		ids = append(ids, string(c.Thread.ID))
	}
	for _, r := range c.Runs {
		ids = append(ids, string(r.ID))
	}
	if c.Append != nil {
		ids = append(ids, string(c.Append.Thread))
	}
	for _, e := range c.Entries {
		ids = append(ids, string(e.Run))
	}
	if c.Opens != nil {
		ids = append(ids, string(c.Opens.Batch.ID))
	}
	if c.Moves != nil {
		ids = append(ids, string(c.Moves.Batch.ID))
	}
	if c.Resumes != nil {
		ids = append(ids, string(c.Resumes.ID))
	}
	for _, m := range c.Memos {
		ids = append(ids, m.ID)
	}
	for _, part := range c.With {
		ids = append(ids, idsOf(part)...)
	}
	return ids
}

// load reads a document, decodes it and returns its version.
func load[T any](ctx context.Context, s *conn, k hashKey, decode func([]byte) (T, error)) (doc T, version int64, err error) {
	d, version, err := s.document(ctx, k)
	if err == nil {
		doc, err = decode(d)
	}
	return doc, version, err
}

// document reads the fields v and d.
func (s *conn) document(ctx context.Context, k hashKey) ([]byte, int64, error) {
	if cmd, ok := s.prefetched(ctx, string(k)).(*redis.SliceCmd); ok {
		return documentOf(cmd)
	}
	return documentOf(ask(ctx, s, func(c redis.Cmdable) *redis.SliceCmd { return readDocument(ctx, c, k) }))
}

func readDocument(ctx context.Context, c redis.Cmdable, k hashKey) *redis.SliceCmd {
	return c.HMGet(ctx, string(k), fieldVersion, fieldDoc)
}

func documentOf(cmd *redis.SliceCmd) ([]byte, int64, error) {
	fields, err := cmd.Result()
	if err != nil {
		return nil, 0, err
	}
	v, ok := fields[0].(string)
	d, ok2 := fields[1].(string)
	if !ok || !ok2 {
		return nil, 0, approvals.ErrNotFound
	}
	version, err := parseVersion(v)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", approvals.ErrUnreadable, err)
	}
	return []byte(d), version, nil
}

// raw reads a string key.
func (s *conn) raw(ctx context.Context, k stringKey) (json.RawMessage, error) {
	cmd, ok := s.prefetched(ctx, string(k)).(*redis.StringCmd)
	if !ok {
		cmd = s.client.Get(ctx, string(k))
	}
	b, err := cmd.Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, approvals.ErrNotFound
	}
	if err != nil || len(b) == 0 {
		return nil, err
	}
	text, err := unpack(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", approvals.ErrUnreadable, err)
	}
	return text, nil
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
