package state

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// A Backlog is what waits, of all processes together.
type Backlog struct {
	Waiting       int64              // batches in which a call waits for people
	OldestWaiting time.Time          // when the first of them was opened; zero without one
	InDoubt       int64              // calls about which people are asked what became of them; of 1,000 batches at most
	ParkedRuns    int64              // runs that wait for an operator
	Parked        map[Kind]int64     // items of due work that were given up
	OldestDue     map[Kind]time.Time // since when the first item that is due now waits; missing without one
}

// Most batches with a call in doubt that a backlog looks at, in a partition and in all.
const (
	doubtfulHere = 100
	doubtfulAll  = 1000
)

// Backlog reads what waits, in one round trip, and in others if calls are in doubt or if
// much work is due. It is for people and alerts: the parts are not of one moment.
func (d *Due) Backlog(ctx context.Context) (Backlog, error) {
	s := d.store
	now := s.now()
	pipe := s.client.Pipeline()
	var waiting, parkedRuns []*redis.IntCmd
	var first, parked, doubtful []*redis.StringSliceCmd
	var due dueReads
	for n := range approvals.Partitions {
		p := s.partition(n)
		all := p.list(approvals.Everything)
		waiting = append(waiting, all.length(ctx, pipe))
		first = append(first, all.after(ctx, pipe, "", 1))
		doubtful = append(doubtful, p.list(approvals.Doubtful).after(ctx, pipe, "", doubtfulHere))
		parkedRuns = append(parkedRuns, pipe.ZCard(ctx, string(p.parkedRuns())))
		parked = append(parked, pipe.HKeys(ctx, string(p.parked())))
		due.first(ctx, pipe, p, scoreOf(now))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return Backlog{}, fmt.Errorf("read the backlog: %w", err)
	}
	out := Backlog{Parked: map[Kind]int64{}, OldestDue: map[Kind]time.Time{}}
	var err error
	if out.InDoubt, err = s.inDoubt(ctx, doubtful); err != nil {
		return Backlog{}, fmt.Errorf("read which calls are in doubt: %w", err)
	}
	for n := range approvals.Partitions {
		out.Waiting += waiting[n].Val()
		out.ParkedRuns += parkedRuns[n].Val()
		all := s.partition(n).list(approvals.Everything)
		for _, member := range first[n].Val() {
			out.OldestWaiting = earlier(out.OldestWaiting, openedAt(all.place(member)))
		}
		for _, field := range parked[n].Val() {
			k, _ := splitItem(field)
			out.Parked[k]++
		}
	}
	out.OldestDue, err = due.oldest(ctx, s.client, now)
	return out, wrap(err, "read what is due")
}

// dueReads read since when the first entry of each kind is due.
type dueReads []dueRead

// A dueRead has asked for entries of one kind in a partition, or of any kind if the kind is
// empty.
type dueRead struct {
	partition
	kind  Kind
	found *redis.ZSliceCmd
}

// dueAtOnce is how many entries of a partition are read at once, of whatever kinds.
const dueAtOnce = 32

// first asks for the first entries of a partition.
func (d *dueReads) first(ctx context.Context, pipe redis.Pipeliner, p partition, now score) {
	if !p.apart {
		*d = append(*d, dueRead{p, "", pipe.ZRangeWithScores(ctx, string(p.due("").key), 0, dueAtOnce)})
		return
	}
	d.each(ctx, pipe, p, now)
}

// each asks for the first entry of each kind in a partition.
func (d *dueReads) each(ctx context.Context, pipe redis.Pipeliner, p partition, now score) {
	for _, k := range Kinds() {
		*d = append(*d, dueRead{p, k, p.due(k).until(ctx, pipe, now, 1)})
	}
}

// oldest returns since when the first entry of each kind is due that is due now. Where a
// partition has more than what was read, it asks for each kind.
func (d dueReads) oldest(ctx context.Context, client redis.UniversalClient, now time.Time) (map[Kind]time.Time, error) {
	var more dueReads
	pipe, oldest := client.Pipeline(), map[Kind]time.Time{}
	for _, r := range d {
		if r.kind == "" && len(r.found.Val()) > dueAtOnce {
			more.each(ctx, pipe, r.partition, scoreOf(now))
			continue
		}
		for _, z := range r.found.Val() {
			k := cmp.Or(r.kind, kindAt(z.Score))
			if at := r.due(k).at(z.Score); k != "" && at <= scoreOf(now) {
				oldest[k] = earlier(oldest[k], at.time())
			}
		}
	}
	if len(more) == 0 {
		return oldest, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	of, err := more.oldest(ctx, client, now)
	for k, at := range of {
		oldest[k] = earlier(oldest[k], at)
	}
	return oldest, err
}

// inDoubt counts the calls in doubt of the batches on these lists. A batch that an older
// version settled is still on its list.
func (s *Store) inDoubt(ctx context.Context, lists []*redis.StringSliceCmd) (calls int64, err error) {
	var ids []string
	for n, l := range lists {
		for _, member := range l.Val() {
			ids = append(ids, batchAt(s.partition(n).list(approvals.Doubtful).place(member)))
		}
	}
	batches, err := s.batches(ctx, ids[:min(len(ids), doubtfulAll)])
	for _, b := range batches {
		for _, a := range b.Approvals {
			if a.InDoubt() && a.Status == approvals.Pending {
				calls++
			}
		}
	}
	return calls, err
}

// openedAt is when the batch at a place of a list was opened.
func openedAt(place string) time.Time {
	digits, _, _ := strings.Cut(place, "|")
	at, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(at)
}

// earlier returns the earlier of two times. A zero time does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
