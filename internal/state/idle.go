package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// isIdle reports whether a thread has neither an active run nor a queued one. The run of
// a thread whose calls wait for people, or whose run is parked, is active.
func isIdle(t agentrun.Thread) bool { return t.Active == "" && len(t.Queue) == 0 }

// runField is the field of a thread that says that a run is one of its runs.
func runField(run string) string { return fieldRun + ":" + run }

// sweepID is the item of [Removals] for the idle threads of a partition.
func sweepID(partition int) string { return approvals.NewID("idle", partition, "threads") }

// putIdle stores since when a thread is idle, and that [Retention] has to look at it. A
// thread that is used again stays in the index until [Retention] looks at it.
func putIdle(ch *change, p partition, thread string, since, now time.Time) {
	ch.zadd(p.idle(), thread, scoreOf(since))
	due := p.due(Removals)
	ch.write("ZADD", string(due.key), "NX", due.stored(scoreOf(now.Add(longestLook))).String(), due.member(sweepID(p.n)))
}

// idleThreads returns at most limit threads of a partition that are idle since then
// or longer, the longest first.
func (s *Store) idleThreads(ctx context.Context, p partition, since time.Time, limit int64) ([]entry, error) {
	found, err := s.client.ZRangeByScoreWithScores(ctx, string(p.idle()), &redis.ZRangeBy{
		Min: "-inf", Max: scoreOf(since).String(), Count: limit,
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("list idle threads: %w", err)
	}
	var all []entry
	for _, z := range found {
		id, _ := z.Member.(string)
		all = append(all, entry{p.n, id, score(z.Score)})
	}
	return all, nil
}

// Idle returns how many threads are idle, and since when the oldest of them is; the zero
// time if there are none. Some may be in use again.
func (b Browser) Idle(ctx context.Context) (threads int64, since time.Time, err error) {
	pipe := b.store.client.Pipeline()
	counts, firsts := make([]*redis.IntCmd, approvals.Partitions), make([]*redis.ZSliceCmd, approvals.Partitions)
	for n := range counts {
		key := string(b.store.partition(n).idle())
		counts[n], firsts[n] = pipe.ZCard(ctx, key), pipe.ZRangeWithScores(ctx, key, 0, 0)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, time.Time{}, fmt.Errorf("count idle threads: %w", err)
	}
	for n := range counts {
		threads += counts[n].Val()
		for _, first := range firsts[n].Val() {
			since = earlier(since, score(first.Score).time().UTC())
		}
	}
	return threads, since, nil
}

// firstIdle returns since when the oldest idle thread of a partition is idle, or the zero
// time if there is none.
func (s *Store) firstIdle(ctx context.Context, p partition) (time.Time, error) {
	first, err := s.client.ZRangeWithScores(ctx, string(p.idle()), 0, 0).Result()
	if err != nil || len(first) == 0 {
		return time.Time{}, wrap(err, "look for idle threads")
	}
	return score(first[0].Score).time(), nil
}

// moveIdle makes [Retention] treat a thread as idle since then, or forget it if that is
// zero. It does nothing if the thread has become idle again meanwhile.
func (s *Store) moveIdle(ctx context.Context, e entry, since time.Time) error {
	p := s.partition(e.partition)
	ch := newRepeatable(p)
	ch.wantScore(p.idle(), e.id, e.at)
	if since.IsZero() {
		ch.zrem(p.idle(), e.id)
	} else {
		ch.zadd(p.idle(), e.id, scoreOf(since))
	}
	if err := s.apply(ctx, ch); err != nil && !errors.Is(err, approvals.ErrConflict) {
		return fmt.Errorf("put off thread %s: %w", e.id, err)
	}
	return nil
}
