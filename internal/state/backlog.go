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
	ParkedRuns    int64              // runs that wait for an operator
	Parked        map[Kind]int64     // items of due work that were given up
	OldestDue     map[Kind]time.Time // since when the first item that is due now waits; missing without one
}

// Backlog reads what waits, in one round trip. It is for people and alerts: the
// parts are not of one moment.
func (d *Due) Backlog(ctx context.Context) (Backlog, error) {
	s := d.store
	pipe := s.client.Pipeline()
	var waiting, parkedRuns []*redis.IntCmd
	var first, parked []*redis.StringSliceCmd
	due := map[Kind][]*redis.ZSliceCmd{}
	for n := range approvals.Partitions {
		p := s.partition(n)
		list := string(p.list(approvals.Everything))
		waiting = append(waiting, pipe.ZCard(ctx, list))
		first = append(first, pipe.ZRange(ctx, list, 0, 0))
		parkedRuns = append(parkedRuns, pipe.ZCard(ctx, string(p.parkedRuns())))
		parked = append(parked, pipe.HKeys(ctx, string(p.parked())))
		for _, k := range Kinds() {
			due[k] = append(due[k], pipe.ZRangeWithScores(ctx, string(p.due(k)), 0, 0))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return Backlog{}, fmt.Errorf("read the backlog: %w", err)
	}
	out := Backlog{Parked: map[Kind]int64{}, OldestDue: map[Kind]time.Time{}}
	for n := range approvals.Partitions {
		out.Waiting += waiting[n].Val()
		out.ParkedRuns += parkedRuns[n].Val()
		for _, place := range first[n].Val() {
			out.OldestWaiting = earlier(out.OldestWaiting, openedAt(place))
		}
		for _, field := range parked[n].Val() {
			k, _ := splitItem(field)
			out.Parked[k]++
		}
	}
	now := s.now()
	for k, sets := range due {
		for _, set := range sets {
			for _, z := range set.Val() {
				if at := score(z.Score).time(); !at.After(now) {
					out.OldestDue[k] = earlier(out.OldestDue[k], at)
				}
			}
		}
	}
	return out, nil
}

// openedAt is when the batch at a place of a list was opened.
func openedAt(place string) time.Time {
	digits, _, _ := strings.Cut(place, "|")
	at, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return score(at).time()
}

// earlier is the earlier of two times, of which the zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
