package state

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// A loop works on one kind in one call of [Due.Run]. Only the goroutine of run touches it;
// handlers send what became of them, and the sweeper leaves hints.
type loop struct {
	d      *Due
	task   Task
	hints  *hints
	shared *lane
	lane   *member // nil if it has no place in the lane

	dirty    [approvals.Partitions]bool  // to be looked at
	soon     [approvals.Partitions]score // the next entry that is not due yet
	queue    []entry                     // found and not begun
	awaited  awaited                     // told of and not begun
	inflight map[string]score            // as they were begun, and moved if they were seen otherwise since
	ended    [64]entry                   // the last that were handled, as they were begun
	ends     int                         // how many were
	workers  int                         // groups that are handled at the same time
	busy     int                         // of these
	done     chan []result
	overdue  map[string]string // to be parked when met again: id to reason
	rests    [approvals.Partitions]rest

	failing time.Duration // how long to wait after a look that failed
	resume  <-chan time.Time
}

// A rest is for a partition in which the store did not take what became of an
// item: nothing of it is handled until then.
type rest struct {
	until time.Time
	times int // in a row
}

// longestRest bounds a rest, and so how late work can be once the store has
// recovered and nothing else is committed in its partition.
const longestRest = 30 * time.Second

// An entry is a member of a due set as it was seen.
type entry struct {
	partition int
	id        string
	at        score
}

type result struct {
	entry
	verdict
	awaited bool
}

// moved is the score of what is in flight and was made due again.
const moved score = -1

// groups is how many groups of a kind with [Task.Together] are handled at the same
// time. One is sent or worked out while Redis answers others; more would only keep
// Redis and the CPU from people.
const groups = 4

func newLoop(d *Due, t Task, a *lane) *loop {
	t.Together = max(t.Together, 1)
	workers := d.o.Workers
	if t.Together > 1 {
		workers = min(workers, groups)
	}
	return &loop{
		d: d, task: t, hints: newHints(), shared: a, lane: a.join(t), workers: workers,
		inflight: make(map[string]score), done: make(chan []result, workers), overdue: make(map[string]string),
	}
}

// due is the index of the loop's work in a partition.
func (l *loop) due(partition int) dueIndex { return l.d.store.partition(partition).due(l.task.Kind) }

func (l *loop) run(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	for ctx.Err() == nil {
		l.launch(ctx, work)
		timer, stop := l.timer()
		select {
		case <-ctx.Done():
		case <-l.hints.ready:
			l.heed(l.hints.take())
		case group := <-l.done:
			l.finished(group)
		case <-timer:
		case <-l.lane.ready():
		case <-l.resume:
			l.resume = nil
		}
		stop()
	}

	l.lane.done()
	grace := time.AfterFunc(l.d.o.Grace, cancel)
	defer grace.Stop()
	for len(l.inflight) > 0 {
		l.finished(<-l.done)
	}
}

// heed makes the loop look at the partitions in which there may be work. After a sweep
// what was found earlier is read again: another process may have done it by now.
func (l *loop) heed(t told) {
	for n := range l.dirty {
		l.dirty[n] = l.dirty[n] || t.found[n]
		if t.committed[n] {
			l.rests[n].until = time.Time{}
		}
	}
	for n, at := range t.later {
		l.soon[n] = earliest(l.soon[n], at)
	}
	l.told(t.awaited)
	if !t.swept {
		return
	}
	for _, e := range l.queue {
		l.dirty[e.partition] = true
	}
	l.queue = nil
	if l.failing == 0 || l.busy == l.workers {
		l.d.alive(l.task.Kind)
	}
}

func (l *loop) finished(group []result) {
	l.busy--
	l.lane.give()
	for _, r := range group {
		r.again = r.again || l.inflight[r.id] == moved
		delete(l.inflight, r.id)
		l.ended[l.ends%len(l.ended)] = r.entry
		l.ends++
		l.became(r)
	}
}

// became heeds what became of an item.
func (l *loop) became(r result) {
	switch {
	case r.lost != nil:
		l.rest(r.partition, r.lost)
	case r.kept:
		l.rests[r.partition] = rest{}
		l.d.kept(l.task.Kind, r.partition)
	}
	if r.asked && r.awaited && l.awaited.put(seen{entry: entry{r.partition, r.id, r.next}, last: l.d.store.now()}) {
		r.again = false
	} else {
		l.soon[r.partition] = earliest(l.soon[r.partition], r.next)
	}
	if r.again {
		l.dirty[r.partition] = true
	}
	if r.overdue == "" {
		delete(l.overdue, r.id)
	} else {
		l.overdue[r.id] = r.overdue
	}
}

// rest leaves a partition alone for a while. Items that were handled at the same
// time make it no longer.
func (l *loop) rest(n int, cause error) {
	l.d.lost(l.task.Kind, n, cause)
	now, r := l.d.store.now(), &l.rests[n]
	if now.Before(r.until) {
		return
	}
	r.times++
	wait := max(min(l.d.o.Backoff(r.times), longestRest), shortest)
	r.until = now.Add(wait - rand.N(wait/4)) //nolint:gosec // jitter is no secret
	l.dirty[n] = true                        // a look sets the timer
}

// resting reports whether the partition is left alone now. It reckons in scores, as
// the timer does: the loop would spin through what a score leaves out of a time.
func (l *loop) resting(n int) bool {
	until := l.rests[n].until
	return !until.IsZero() && scoreOf(l.d.store.now()) < scoreOf(until)
}

// timer fires when the next entry that is known becomes due.
func (l *loop) timer() (<-chan time.Time, func() bool) {
	var first score
	for n, at := range l.soon {
		if at == 0 || l.dirty[n] {
			continue
		}
		if at <= scoreOf(l.d.store.now()) {
			l.dirty[n], l.soon[n] = true, 0
			at = 1
		}
		if first == 0 || at < first {
			first = at
		}
	}
	if at := l.awaited.next(l.d.store.now()); at != 0 && (first == 0 || at < first) {
		first = at
	}
	if first == 0 {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(max(first.time().Sub(l.d.store.now()), 0))
	return t.C, t.Stop
}

// look reads the partitions that are to be looked at and reports whether there
// is something in the queue now.
func (l *loop) look(ctx context.Context) bool {
	if !slices.Contains(l.dirty[:], true) {
		return false
	}
	s := l.d.store
	now := s.now()
	limit := int64(2*l.workers*l.task.Together + 1) // more than can be in flight
	pipe := s.client.Pipeline()
	var found [approvals.Partitions]*redis.ZSliceCmd
	for n, dirty := range l.dirty {
		if dirty && l.resting(n) {
			l.dirty[n], l.soon[n] = false, scoreOf(l.rests[n].until)
			continue
		}
		if dirty {
			found[n] = l.due(n).until(ctx, pipe, scoreOf(now.Add(horizon)), limit)
		}
	}
	if pipe.Len() == 0 || !l.agrees(ctx) {
		return false
	}
	if _, err := pipe.Exec(ctx); err != nil {
		l.failed(ctx, err)
		return false
	}
	if l.failing > 0 {
		s.log.InfoContext(ctx, "looking for work again", slog.String("kind", string(l.task.Kind)))
		l.failing = 0
	}
	l.d.alive(l.task.Kind)
	for n, cmd := range found {
		if cmd != nil {
			l.take(n, l.due(n).entries(n, cmd.Val()), now)
			// There may be more behind the limit, so look again once these are begun.
			l.dirty[n] = l.soon[n] == 0 && int64(len(cmd.Val())) == limit
		}
	}
	slices.SortFunc(l.queue, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	return len(l.queue) > 0
}

// take puts what is due of the first entries of a partition into the queue.
func (l *loop) take(partition int, first []entry, now time.Time) {
	l.soon[partition] = 0
	for _, e := range first {
		if e.at > scoreOf(now) {
			l.soon[partition] = e.at
			break
		}
		switch begun, is := l.inflight[e.id]; {
		case is && begun != e.at:
			l.inflight[e.id] = moved
		case is:
		case l.awaited.find(e.id) != nil: // it may have been moved by work that is not awaited
			l.awaited.found(e, now)
		default:
			l.queue = append(l.queue, e)
		}
	}
	if due := len(first) > 0 && first[0].at <= scoreOf(now); !due && l.rests[partition].times > 0 {
		l.rests[partition] = rest{} // someone else has done it
		l.d.kept(l.task.Kind, partition)
	}
}

// agrees reports whether the clocks agree. If not, nothing is begun for a while.
func (l *loop) agrees(ctx context.Context) bool {
	if c := l.d.o.Clock; c != nil {
		if err := c.Agrees(ctx); err != nil {
			l.failed(ctx, err)
			return false
		}
	}
	return true
}

// failed notes that Redis could not be read: said once, then tried again.
func (l *loop) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if l.failing == 0 {
		l.d.store.log.WarnContext(ctx, "cannot look for work; trying again until Redis answers",
			slog.String("kind", string(l.task.Kind)), slog.Any("err", err))
	}
	l.failing = longerAfter(l.failing)
	l.dirty[0] = true // only a look ends it, also if what was to be begun is the work of another by then
	l.resume = time.After(l.failing)
}
