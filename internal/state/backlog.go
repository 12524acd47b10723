package state

import (
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

// Backlog reads what waits, in one round trip, and in another one if calls are in doubt.
// It is for people and alerts: the parts are not of one moment.
func (d *Due) Backlog(ctx context.Context) (Backlog, error) {
	s := d.store
	now := s.now()
	pipe := s.client.Pipeline()
	var waiting, parkedRuns []*redis.IntCmd
	var first, parked, doubtful []*redis.StringSliceCmd
	due := map[Kind][]*redis.ZSliceCmd{}
	for n := range approvals.Partitions {
		p := s.partition(n)
		all := p.list(approvals.Everything)
		waiting = append(waiting, all.length(ctx, pipe))
		first = append(first, all.after(ctx, pipe, "", 1))
		doubtful = append(doubtful, p.list(approvals.Doubtful).after(ctx, pipe, "", doubtfulHere))
		parkedRuns = append(parkedRuns, pipe.ZCard(ctx, string(p.parkedRuns())))
		parked = append(parked, pipe.HKeys(ctx, string(p.parked())))
		for _, k := range Kinds() {
			due[k] = append(due[k], p.due(k).until(ctx, pipe, scoreOf(now), 1))
		}
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
			out.OldestWaiting = earlier(out.OldestWaiting, openedAt(all.place(n, member)))
		}
		for _, field := range parked[n].Val() {
			k, _ := splitItem(field)
			out.Parked[k]++
		}
	}
	for k, sets := range due {
		for n, set := range sets {
			for _, e := range s.partition(n).due(k).entries(n, set.Val()) {
				out.OldestDue[k] = earlier(out.OldestDue[k], e.at.time())
			}
		}
	}
	return out, nil
}

// inDoubt counts the calls in doubt of the batches on these lists. A batch that an older
// version settled is still on its list.
func (s *Store) inDoubt(ctx context.Context, lists []*redis.StringSliceCmd) (calls int64, err error) {
	var ids []string
	for n, l := range lists {
		for _, member := range l.Val() {
			ids = append(ids, batchAt(s.partition(n).list(approvals.Doubtful).place(n, member)))
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
