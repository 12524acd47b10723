package state

import (
	"context"
	_ "embed"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed sweep.lua
var sweepSource string

var sweepScript = redis.NewScript(sweepSource)

// A sweeper tells the loops of one call of [Due.Run] where to look for work: it
// receives the wake-ups of all kinds on one subscription, and now and then asks
// partitions, with one command for all kinds, which of them have work. The loops
// themselves read what there is.
type sweeper struct {
	d     *Due
	loops []*loop

	schedule   *schedule
	subscribed chan struct{} // ready when a subscription has begun
}

func newSweeper(d *Due, loops []*loop) *sweeper {
	return &sweeper{d: d, loops: loops, schedule: newSchedule(d.o.Sweep), subscribed: make(chan struct{}, 1)}
}

// run ends with ctx. A sweep that Redis answers slowly does not delay wake-ups.
func (s *sweeper) run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { s.listen(ctx) })
	both.Go(func() { s.sweepOn(ctx) })
	both.Wait()
}

// listen passes the wake-ups on. A subscription that is new may have missed
// earlier ones, so everything is swept after it.
func (s *sweeper) listen(ctx context.Context) {
	s.d.store.follow(ctx, func(m any) {
		switch m := m.(type) {
		case *redis.Message:
			if w, ok := parseWakes(m.Payload); ok {
				s.pass(w)
			}
		case *redis.Subscription:
			select {
			case s.subscribed <- struct{}{}:
			default: // the sweep that is to come is late enough
			}
		}
	})
}

// pass tells the loops what a message says.
func (s *sweeper) pass(w news) {
	s.schedule.heard(w.partition)
	now := s.d.store.now()
	if w.from != "" || w.probe() {
		s.d.store.works.hears(w.from, now)
	}
	from := s.d.store.works.from(w.from, now)
	for _, l := range s.loops {
		if e, ok := w.entries[l.task.Kind]; ok {
			l.hints.committed(seen{entry: e, from: from})
		}
		if at, ok := w.later[l.task.Kind]; ok {
			l.hints.later(w.partition, at)
		}
	}
}

// sweepOn sweeps at once and then again and again, and soon after a failure.
func (s *sweeper) sweepOn(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	every := s.d.o.short()
	var failing time.Duration
	for {
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case <-s.subscribed:
			s.schedule.reset()
			timer.Reset(time.Millisecond) // never to a time that is over: see wires_test.go of cmd/bot
			continue
		case now = <-timer.C: // not that of the store: a clock that is set must not delay a sweep
		}
		err := s.sweep(ctx, s.schedule.round(now))
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if failing > 0 {
				s.d.store.log.InfoContext(ctx, "looking for work again")
			}
			failing = 0
			timer.Reset(every*3/4 + rand.N(max(every/2, 1))) //nolint:gosec // jitter is no secret
		default:
			if failing == 0 {
				s.d.store.log.WarnContext(ctx, "cannot look for work; trying again until Redis answers", slog.Any("err", err))
			}
			s.schedule.reset()
			failing = longerAfter(failing)
			timer.Reset(failing)
		}
	}
}

// longerAfter is how long to wait after another look that failed.
func longerAfter(wait time.Duration) time.Duration {
	return min(max(2*wait, 50*time.Millisecond), 2*time.Second)
}

// sweep asks these partitions, and looks in any case whether Redis answers. What some of
// them answered is passed on even if others did not answer; that is then no sweep.
func (s *sweeper) sweep(ctx context.Context, partitions []int) error {
	if err := s.answers(ctx); err != nil {
		return err
	}
	now := s.d.store.now()
	answers, err := s.ask(ctx, partitions, now, sweepScript.EvalSha)
	if slices.ContainsFunc(answers, func(a *redis.Cmd) bool { return redis.HasErrorPrefix(a.Err(), "NOSCRIPT") }) {
		answers, err = s.ask(ctx, partitions, now, sweepScript.Eval)
	}
	found := make([]told, len(s.loops))
	for i, a := range answers {
		firsts, failed := a.Int64Slice()
		if failed != nil {
			err = failed
			continue
		}
		for pair := range slices.Chunk(firsts, 2) {
			n := pair[0] - 1
			found[n].first(partitions[i], s.loops[n].due(partitions[i]).at(float64(pair[1])), now)
		}
	}
	for i, l := range s.loops {
		found[i].swept = err == nil
		l.hints.tell(found[i])
	}
	return err
}

// answers compares the clocks, if they are to be compared.
func (s *sweeper) answers(ctx context.Context) error {
	if c := s.d.o.Clock; c != nil {
		return c.Check(ctx)
	}
	return s.d.store.client.Ping(ctx).Err()
}

// ask returns the answer of each partition, and an error if one has none.
func (s *sweeper) ask(ctx context.Context, partitions []int, now time.Time, run func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd,
) ([]*redis.Cmd, error) {
	if len(partitions) == 0 {
		return nil, nil
	}
	until := scoreOf(now.Add(horizon))
	pipe := s.d.store.client.Pipeline()
	answers := make([]*redis.Cmd, len(partitions))
	for i, n := range partitions {
		var keys []string
		args := []any{s.d.store.wakes(), probeMessage(n, s.d.store.works.id)}
		for _, l := range s.loops {
			due := l.due(n)
			if !slices.Contains(keys, string(due.key)) {
				keys = append(keys, string(due.key))
			}
			args = append(args, due.from(), due.to(until))
		}
		answers[i] = run(ctx, pipe, keys, args...)
	}
	_, err := pipe.Exec(ctx)
	return answers, err
}
