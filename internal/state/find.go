package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A storedSearch says how far the search has come for runs that no thread knows.
type storedSearch struct {
	versioned

	Server string    `json:"server,omitempty"` // of a cluster, that is searched; they are searched in the order of their addresses
	Cursor uint64    `json:"cursor,omitempty"`
	DoneAt time.Time `json:"done_at,omitzero"`
}

const (
	// scanned is how many keys one step of a search goes through, and nextStep when
	// the next step is.
	scanned  = 1000
	nextStep = time.Second
	// searched is how long after a search the next one is. Threads that ended in a
	// process of an older version since are found then.
	searched = 30 * 24 * time.Hour
)

// searchID is the item of [Removals] for the search.
var searchID = approvals.NewID("idle", 0, "search")

// Begin has runs looked for that were stored by a version which did not remove any:
// their threads do not know them, and are not known to be idle. It is called once
// when a process starts that works on what is due.
func (r *Retention) Begin(ctx context.Context) error {
	_, version, err := r.store.Memo(ctx, searchID, string(Removals))
	if err == nil && version == 0 {
		err = r.keepSearch(ctx, storedSearch{versioned: current}, 0, r.store.now())
	}
	if errors.Is(err, approvals.ErrConflict) { // another process was faster
		return nil
	}
	return wrap(err, "begin to look for old threads")
}

func (r *Retention) keepSearch(ctx context.Context, at storedSearch, version int64, due time.Time) error {
	data, err := encode(at)
	if err != nil {
		return fmt.Errorf("encode the search for old threads: %w", err)
	}
	return r.store.CommitTimed(ctx, searchID, string(Removals), data, version, due)
}

// search takes a step: it goes through some of the keys, and gives the runs among them
// to their threads.
func (r *Retention) search(ctx context.Context) error {
	data, version, err := r.store.Memo(ctx, searchID, string(Removals))
	if err != nil {
		return err
	}
	if version == 0 {
		return &waitError{longestLook}
	}
	at, err := decode[storedSearch](data)
	if err != nil {
		return fmt.Errorf("%w: the search for old threads: %w", approvals.ErrUnreadable, err)
	}
	now := r.store.now()
	if left := at.DoneAt.Add(searched).Sub(now); !at.DoneAt.IsZero() && left > 0 {
		return &waitError{left}
	}
	keys, next, err := r.store.scanRuns(ctx, at)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := r.find(ctx, placeOf(key).Run, now); err != nil {
			return err
		}
	}
	due := now.Add(nextStep)
	if !next.DoneAt.IsZero() {
		due = now.Add(searched)
	}
	return r.keepSearch(ctx, next, version, due)
}

// scanRuns lists the runs among some keys, and where to go on.
func (s *Store) scanRuns(ctx context.Context, at storedSearch) ([]string, storedSearch, error) {
	var mu sync.Mutex
	servers := []*redis.Client{}
	var client redis.Cmdable = s.client
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			servers = append(servers, c)
			return nil
		})
		if err != nil {
			return nil, at, fmt.Errorf("list the servers of the cluster: %w", err)
		}
		slices.SortFunc(servers, func(a, b *redis.Client) int { return cmp.Compare(a.Options().Addr, b.Options().Addr) })
		servers = slices.DeleteFunc(servers, func(c *redis.Client) bool { return c.Options().Addr < at.Server })
		if len(servers) == 0 {
			return nil, storedSearch{versioned: current, DoneAt: s.now().UTC()}, nil
		}
		client = servers[0]
		if addr := servers[0].Options().Addr; addr != at.Server { // the one before is done, or gone
			at.Server, at.Cursor = addr, 0
		}
	}
	keys, cursor, err := client.Scan(ctx, at.Cursor, s.pattern("run:*"), scanned).Result()
	if err != nil {
		return nil, at, fmt.Errorf("look for runs: %w", err)
	}
	next := storedSearch{versioned: current, Server: at.Server, Cursor: cursor}
	switch {
	case cursor != 0:
	case len(servers) > 1:
		next.Server = servers[1].Options().Addr
	default:
		next = storedSearch{versioned: current, DoneAt: s.now().UTC()}
	}
	return keys, next, nil
}

// find makes sure that the thread of a run knows the run, and that an idle thread is in
// the index of idle threads. A run without a thread is removed by itself.
func (r *Retention) find(ctx context.Context, id approvals.RunID, now time.Time) error {
	p, err := r.store.partitionOf(string(id))
	if err != nil {
		return nil //nolint:nilerr // the key is none of ours
	}
	runs, err := r.store.runsOf(ctx, p, []string{string(id)})
	if err != nil || len(runs) == 0 {
		return unlessStored(err)
	}
	run := runs[0]
	key := p.thread(string(run.Thread))
	pipe := r.store.client.Pipeline()
	doc := readDocument(ctx, pipe, key)
	known := pipe.HExists(ctx, string(key), runField(string(id)))
	idle := pipe.ZScore(ctx, string(p.idle()), string(run.Thread))
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("look for the thread of run %s: %w", id, err)
	}
	d, version, err := documentOf(doc)
	if errors.Is(err, approvals.ErrNotFound) {
		return r.removeAlone(ctx, p, run, now)
	}
	if err != nil {
		return err
	}
	t, err := decodeThread(d)
	if err != nil {
		return nil //nolint:nilerr // a newer version stored it, and knows its runs
	}
	late := isIdle(t) && errors.Is(idle.Err(), redis.Nil)
	if known.Val() && !late {
		return nil
	}
	ch := newChange(p, p.request("retention", newRequest("")), time.Minute)
	ch.wantVersion(key, fieldVersion, version)
	ch.hset(key, runField(string(id)), "")
	if late { // nobody knows since when, so its time begins now
		putIdle(ch, p, string(run.Thread), now, now)
	}
	if err := r.store.apply(ctx, ch); err != nil && !errors.Is(err, approvals.ErrConflict) {
		return fmt.Errorf("give run %s to its thread: %w", id, err)
	}
	return nil // whoever changed the thread meanwhile knows what is idle
}

// removeAlone removes a run whose thread is gone.
func (r *Retention) removeAlone(ctx context.Context, p partition, run agentrun.Run, now time.Time) error {
	age := r.o.Age()
	if age <= 0 || later(run.CreatedAt, run.EndedAt).Add(age).After(now) {
		return nil
	}
	parts, until, err := r.parts(ctx, p, []string{string(run.ID)}, now, age)
	if _, stays := errors.AsType[*staysError](err); stays || until.After(now) {
		return nil
	}
	if err != nil {
		return unlessStored(err)
	}
	err = r.store.removeParts(ctx, func() *change {
		ch := newChange(p, p.request("retention", newRequest("")), time.Minute)
		ch.wantVersion(p.thread(string(run.Thread)), fieldVersion, 0)
		return ch
	}, parts)
	return unlessStored(err)
}

// unlessStored is nil for errors that are about one document and not about the server:
// the search goes on without it.
func unlessStored(err error) error {
	for _, about := range []error{approvals.ErrNotFound, approvals.ErrUnreadable, agentrun.ErrUnreadable, approvals.ErrConflict} {
		if errors.Is(err, about) {
			return nil
		}
	}
	return err
}
