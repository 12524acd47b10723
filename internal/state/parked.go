package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A ParkedItem is work that failed too often and waits for people.
type ParkedItem struct {
	Kind     Kind
	ID       string
	Reason   string // a class of errors, never their text; or Unreadable
	Attempts int
	Since    time.Time // zero if it is not known
}

// Unreadable is the reason of a [ParkedItem] whose record cannot be read. Only what is
// stored beside the record is known of it.
const Unreadable = "unreadable"

type storedParked struct {
	versioned

	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	Since    time.Time `json:"since"`
}

// parkAfter takes the item out of the due index and writes down why, if neither
// it nor the count of its attempts has changed since.
func (d *Due) parkAfter(ctx context.Context, t Task, e entry, reason string, n int, counted string, log []any,
) (verdict, error) {
	k := t.Kind
	record, err := encode(storedParked{current, reason, n, d.store.now().UTC()})
	if err != nil {
		return verdict{}, err
	}
	p := d.store.partition(e.partition)
	ch := d.change(p)
	ch.wantDue(p.due(k), e.id, e.at)
	ch.wantField(p.attempts(), item(k, e.id), counted)
	ch.notDue(p.due(k), e.id)
	ch.hdel(p.attempts(), item(k, e.id))
	ch.hset(p.parked(), item(k, e.id), record)
	if err := d.store.apply(ctx, ch); err != nil {
		return verdict{}, err
	}
	d.count(k, func(c *Counts) { c.Parked++ })
	d.store.log.ErrorContext(ctx, "work is parked: it failed too often and needs attention", log...)
	d.tell(ctx, t, e.id)
	return verdict{}, nil
}

// tell calls what the task has for a parked item. A panic of it ends there.
func (d *Due) tell(ctx context.Context, t Task, id string) {
	if t.Parked == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			d.store.log.ErrorContext(ctx, "telling people that work is parked failed",
				slog.String("kind", string(t.Kind)), slog.String("id", id), slog.Any("err", newPanicked(v)))
		}
	}()
	t.Parked(ctx, id)
}

// Parked returns everything that is parked, the oldest first. Of an item whose record
// cannot be read only the kind and the id are known, and its reason is [Unreadable].
func (d *Due) Parked(ctx context.Context) ([]ParkedItem, error) {
	pipe := d.store.client.Pipeline()
	cmds := make([]*redis.MapStringStringCmd, approvals.Partitions)
	for n := range cmds {
		cmds[n] = pipe.HGetAll(ctx, string(d.store.partition(n).parked()))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("list parked work: %w", err)
	}
	var out []ParkedItem
	for _, cmd := range cmds {
		for field, raw := range cmd.Val() {
			k, id := splitItem(field)
			r, err := decode[storedParked]([]byte(raw))
			if err != nil {
				d.store.log.WarnContext(ctx, "the record of parked work cannot be read", slog.String("kind", string(k)), slog.String("id", id), slog.Any("err", err))
				r = storedParked{Reason: Unreadable}
			}
			out = append(out, ParkedItem{k, id, r.Reason, r.Attempts, r.Since})
		}
	}
	slices.SortFunc(out, func(a, b ParkedItem) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// ParkedRuns returns at most limit runs that are parked, the longest first. Those that
// cannot be read are apart, with their ids and the times from which they are parked.
func (s *Store) ParkedRuns(ctx context.Context, limit int) (runs []agentrun.Run, unreadable []ParkedItem, err error) {
	first := func(a, b redis.Z) int { return cmp.Compare(a.Score, b.Score) }
	ids, since, err := s.ranked(ctx, redis.Pipeliner.ZRangeWithScores, partition.parkedRuns, func(_ partition, run string) string { return run }, first, limit)
	var docs []*redis.SliceCmd
	if err == nil {
		docs, err = s.readEach(ctx, ids, partition.run)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list parked runs: %w", err)
	}
	for i, doc := range docs {
		d, version, err := documentOf(doc)
		if errors.Is(err, approvals.ErrNotFound) {
			continue // removed since we looked
		}
		var r agentrun.Run
		if err == nil {
			r, err = decodeRun(d)
		}
		if err != nil {
			s.log.WarnContext(ctx, "a parked run cannot be read", slog.String("run", ids[i]), slog.Any("err", err))
			unreadable = append(unreadable, ParkedItem{Kind: Runs, ID: ids[i], Reason: Unreadable, Since: since[i].time().UTC()})
			continue
		}
		r.Version = version
		if r.Status == agentrun.RunParked { // ended since we looked
			runs = append(runs, r)
		}
	}
	return runs, unreadable, nil
}

// Unpark makes a parked item due at once, with all its attempts before it. An
// item that is not parked is [approvals.ErrNotFound].
func (d *Due) Unpark(ctx context.Context, k Kind, id string) error {
	s := d.store
	if !isKind(k) {
		return fmt.Errorf("%w: there is no kind of work %q", approvals.ErrInvalid, k)
	}
	p, err := s.partitionOf(id)
	if err != nil {
		return err
	}
	record, err := s.client.HGet(ctx, string(p.parked()), item(k, id)).Result()
	if errors.Is(err, redis.Nil) {
		return fmt.Errorf("unpark %s of %s: %w", k, id, approvals.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("unpark %s of %s: %w", k, id, err)
	}
	ch := d.change(p)
	ch.wantField(p.parked(), item(k, id), record)
	w := newDueChanges(s, p, ch)
	w.now(k, id)
	w.finish()
	return wrap(s.apply(ctx, ch), "unpark %s of %s", k, id)
}
