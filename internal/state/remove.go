package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// The memos that surfaces keep beside a run, a batch and a thread. The memos of a new
// surface have to be listed here, or they are never removed; a test in cmd/bot looks for
// such keys.
var (
	memosOfRuns    = []string{string(Replies), string(Webhooks), "intake", "intake-state"}
	memosOfBatches = []string{string(Cards), string(Homes), string(Notices), string(Announcements)}
	memosOfThreads = []string{"chats"}

	// The memos that name a run and stay for a while when it is removed.
	namesOfRuns = []string{"intake-print", "intake-external", "intake-key"}
)

// isOfRequests reports whether there are memos of the surface beside each request.
func isOfRequests(surface string) bool {
	return slices.Contains(memosOfBatches, surface) || slices.Contains(memosOfRuns, surface) || slices.Contains(namesOfRuns, surface)
}

// The kinds of work on a run and on a batch. While there is some, or some is parked,
// the document stays.
var (
	workOnRuns    = []Kind{Runs, Replies, Webhooks}
	workOnBatches = []Kind{Resumes, Deliveries, Cards, Deadlines, Notices, Homes, Announcements}
)

// mostWords is how many keys and arguments one removal has at most: some hosted
// servers take no more than 3,999.
const mostWords = 3_900

// A part is what is removed together: a run with its batch. Its documents go after
// the rest of its keys, and only while what is to hold holds.
type part struct {
	hold      func(ch *change) // adds the conditions
	rest      []string         // keys
	documents func(ch *change)
}

// removeThread removes an idle thread, or returns until when it has to stay.
func (r *Retention) removeThread(ctx context.Context, e entry, now time.Time, age time.Duration) (until time.Time, err error) {
	s, p := r.store, r.store.partition(e.partition)
	fields, err := s.client.HGetAll(ctx, string(p.thread(e.id))).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("load thread: %w", err)
	}
	if fields[fieldDoc] == "" {
		return time.Time{}, errUsedAgain // nothing is there
	}
	version, err := parseVersion(fields[fieldVersion])
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", approvals.ErrUnreadable, err)
	}
	t, err := decodeThread([]byte(fields[fieldDoc]))
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", approvals.ErrUnreadable, err)
	}
	if !isIdle(t) {
		return time.Time{}, errUsedAgain
	}
	var runs []string
	for f := range fields {
		if run, ok := strings.CutPrefix(f, fieldRun+":"); ok {
			runs = append(runs, run)
		}
	}
	parts, until, err := r.parts(ctx, p, runs, now, age)
	if err != nil || until.After(now) {
		return until, err
	}
	thread := p.thread(e.id)
	begin := func() *change {
		ch := newChange(p, p.request("retention", newRequest("")), time.Minute)
		ch.wantVersion(thread, fieldVersion, version)
		ch.wantScore(p.idle(), e.id, e.at)
		return ch
	}
	last := part{hold: func(*change) {}, documents: func(ch *change) {
		for _, surface := range memosOfThreads {
			ch.unlink(string(p.memo(surface, e.id)))
		}
		ch.unlink(string(p.messages(e.id)))
		ch.unlink(string(thread))
		ch.zrem(p.idle(), e.id)
	}}
	return time.Time{}, s.removeParts(ctx, begin, append(parts, last))
}

// removeParts commits the removal of the parts, in their order and as many at once
// as one change may carry.
func (s *Store) removeParts(ctx context.Context, begin func() *change, parts []part) error {
	ch, empty := begin(), true
	flush := func() error {
		if empty {
			return nil
		}
		err := s.apply(ctx, ch)
		ch, empty = begin(), true
		return err
	}
	for _, next := range parts {
		const perKey = 4 // the key, and three words of a command
		own := next.own()
		if ch.words()+own+perKey*len(next.rest) > mostWords {
			if err := flush(); err != nil {
				return err
			}
		}
		next.hold(ch)
		empty = false
		for _, k := range next.rest {
			if ch.words()+own+perKey > mostWords {
				if err := flush(); err != nil {
					return err
				}
				next.hold(ch)
				empty = false
			}
			ch.unlink(k)
		}
		next.documents(ch)
	}
	return flush()
}

// own is how many words the conditions and the documents of the part are.
func (n part) own() int {
	ch := &change{}
	n.hold(ch)
	n.documents(ch)
	return ch.words()
}

// parts reads the runs of a thread with their batches, in the order of the runs.
func (r *Retention) parts(ctx context.Context, p partition, ids []string, now time.Time, age time.Duration) ([]part, time.Time, error) {
	runs, err := r.store.runsOf(ctx, p, ids)
	if err != nil {
		return nil, time.Time{}, err
	}
	batches, err := r.store.batchesOf(ctx, p, runs)
	if err != nil {
		return nil, time.Time{}, err
	}
	var parts []part
	var until time.Time
	for _, run := range runs {
		if !final(run.Status) {
			return nil, until, &staysError{fmt.Sprintf("run %s is %s", run.ID, run.Status)}
		}
		if run.EndedAt.Add(age).After(now) {
			until = later(until, run.EndedAt.Add(age))
		}
		var remains agentrun.Remains
		if run.Executor != "" {
			if remains, err = r.o.Remains(ctx, run); err != nil {
				return nil, until, fmt.Errorf("ask what stays of run %s: %w", run.ID, err)
			}
			until = later(until, remains.Until)
			if !remains.Used.IsZero() {
				until = later(until, remains.Used.Add(age))
			}
		}
		b, deferred := batches[run.Deferred]
		if deferred && !b.Settled() {
			return nil, until, &staysError{"batch " + string(b.ID) + " is open"}
		}
		of := partOfRun(p, run, remains)
		if deferred {
			of = partOfBatch(p, b).with(of)
		}
		parts = append(parts, of)
	}
	return parts, until, nil
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// final reports whether nothing changes a run any more.
func final(s agentrun.Status) bool {
	switch s {
	case agentrun.RunDeferred, agentrun.RunMerged, agentrun.RunCompleted, agentrun.RunFailed:
		return true
	case agentrun.RunWaiting, agentrun.RunQueued, agentrun.RunRunning, agentrun.RunParked:
	}
	return false
}

// wantNoWork: nothing is to be done about the document, and nothing was given up.
func (c *change) wantNoWork(p partition, kinds []Kind, id string) {
	for _, k := range kinds {
		c.wantNotDue(p.due(k), id)
		c.wantField(p.parked(), item(k, id), "")
	}
}

// with returns both parts as one, whose documents are removed together.
func (n part) with(o part) part {
	return part{
		hold:      func(ch *change) { n.hold(ch); o.hold(ch) },
		rest:      slices.Concat(n.rest, o.rest),
		documents: func(ch *change) { n.documents(ch); o.documents(ch) },
	}
}

func partOfBatch(p partition, b approvals.Batch) part {
	id := string(b.ID)
	of := part{
		hold: func(ch *change) {
			ch.wantVersion(p.batch(id), fieldVersion, b.Version)
			ch.wantNoWork(p, workOnBatches, id)
		},
		documents: func(ch *change) {
			for _, user := range slices.Sorted(maps.Keys(b.Deciders())) {
				ch.zrem(p.decided(user).key, p.decided(user).member(id))
			}
			ch.unlink(string(p.batch(id)))
		},
	}
	for _, surface := range memosOfBatches {
		of.rest = append(of.rest, string(p.memo(surface, id)))
	}
	for _, d := range slices.Compact(b.Digests()) {
		of.rest = append(of.rest, string(p.args(id, d)))
	}
	return of
}

func partOfRun(p partition, run agentrun.Run, remains agentrun.Remains) part {
	id, marker := string(run.ID), remains.Marker
	of := part{
		hold: func(ch *change) {
			ch.wantVersion(p.run(id), fieldVersion, run.Version)
			ch.wantNoWork(p, workOnRuns, id)
			if marker.ID != "" {
				ch.wantVersion(p.memo(marker.Surface, marker.ID), fieldVersion, marker.Version)
			}
		},
		documents: func(ch *change) {
			if marker.ID != "" {
				k := p.memo(marker.Surface, marker.ID)
				ch.hset(k, fieldVersion, marker.Version+1, fieldDoc, []byte(marker.Data))
				ch.expire(k, agentrun.NamesKept)
			}
			for _, name := range remains.Names {
				ch.expire(p.memo(name.Surface, name.ID), agentrun.NamesKept)
			}
			ch.unlink(string(p.journal(id)))
			ch.unlink(string(p.run(id)))
			ch.hdel(p.thread(string(run.Thread)), runField(id))
		},
	}
	for _, surface := range memosOfRuns {
		if (agentrun.MemoRef{ID: id, Surface: surface}) != marker.MemoRef {
			of.rest = append(of.rest, string(p.memo(surface, id)))
		}
	}
	return of
}

// runsOf loads runs, the oldest first. Those that are not there were removed before.
func (s *Store) runsOf(ctx context.Context, p partition, ids []string) (runs []agentrun.Run, err error) {
	for some := range slices.Chunk(ids, chunk) {
		docs, err := s.readAll(ctx, some, p.run)
		if err != nil {
			return nil, err
		}
		for i, doc := range docs {
			d, version, err := documentOf(doc)
			if errors.Is(err, approvals.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			run, err := decodeRun(d)
			if err != nil {
				return nil, fmt.Errorf("%w: run %s: %w", approvals.ErrUnreadable, some[i], err)
			}
			run.Version = version
			runs = append(runs, run)
		}
	}
	slices.SortStableFunc(runs, func(a, b agentrun.Run) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return runs, nil
}

// batchesOf loads the batches that the runs opened, except those that were removed
// before.
func (s *Store) batchesOf(ctx context.Context, p partition, runs []agentrun.Run) (map[approvals.BatchID]approvals.Batch, error) {
	var ids []string
	for _, run := range runs {
		if run.Deferred != "" {
			ids = append(ids, string(run.Deferred))
		}
	}
	all := make(map[approvals.BatchID]approvals.Batch)
	for some := range slices.Chunk(ids, chunk) {
		docs, err := s.readAll(ctx, some, p.batch)
		if err != nil {
			return nil, err
		}
		for i, doc := range docs {
			b, err := batchOf(documentOf(doc))
			if errors.Is(err, approvals.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("load batch %s: %w", some[i], err)
			}
			all[b.ID] = b
		}
	}
	return all, nil
}

// readAll reads documents in one round trip.
func (s *conn) readAll(ctx context.Context, ids []string, key func(id string) hashKey) ([]*redis.SliceCmd, error) {
	pipe := s.client.Pipeline()
	docs := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		docs[i] = readDocument(ctx, pipe, key(id))
	}
	_, err := pipe.Exec(ctx)
	return docs, wrap(err, "load %d documents", len(ids))
}
