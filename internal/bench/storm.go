package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/state"
)

const stormAbout = `A bot comes back to work and finds that %d requests have expired. Meanwhile people click on others, %d times a second. "Settled" is when
the last has its outcome, "drawn" when nothing is left to do. The clicks without a storm are those of the same bot afterwards.`

// others is how often people click in a second during a storm.
const others = 25

// storm measures what many deadlines at once do to the clicks of people.
func (b *bench) storm(ctx context.Context) error {
	seen, err := b.draw(ctx)
	if err != nil {
		return err
	}
	got, err := b.storms(ctx, seen, 1)
	if err != nil {
		return err
	}
	n := float64(b.Deadlines)
	return b.table(Table{
		Name: "storm", About: fmt.Sprintf(stormAbout, b.Deadlines, others),
		Columns: []string{"settled s", "drawn s", "click p50 ms", "click p99 ms", "clicks", "failed", "without: p50 ms", "p99 ms", "commands", "CPU ms"},
		Rows: []Row{{"deadlines", []float64{
			got.settled.Seconds(), got.drawn.Seconds(), ms(got.with.at(0.5)), ms(got.with.at(0.99)), float64(len(got.with.each)), float64(got.with.failed),
			ms(got.without.at(0.5)), ms(got.without.at(0.99)), got.spent.commands / n, ms(got.spent.process) / n,
		}}},
	})
}

// A stormResult is what was measured while many deadlines were due.
type stormResult struct {
	settled, drawn time.Duration
	with, without  times // clicks
	spent          cost
}

// storms measures many deadlines at once with so many replicas.
func (b *bench) storms(ctx context.Context, seen drawn, replicas int) (out stormResult, err error) {
	b.said("storm: %d deadlines at once, %s", b.Deadlines, replicaWords(replicas))
	var running ends
	defer func() { err = errors.Join(err, running.close()) }()
	c := b.configuration(b.fresh())
	s, err := b.store(ctx, c.Redis.Prefix)
	if err != nil {
		return out, err
	}
	running.after(s.Close)
	expired, err := b.ask(ctx, s, b.Deadlines, "storm", rule{deadline: b.Now()})
	if err != nil {
		return out, err
	}
	clicked, err := b.ask(ctx, s, others*(10+b.Deadlines/50), "click", rule{}) // for longer than it should last
	if err == nil {
		err = b.shown(ctx, s, seen, slices.Concat(expired, clicked))
	}
	if err != nil {
		return out, err
	}
	sent, err := b.clicksOn(seen, clicked)
	if err != nil {
		return out, err
	}
	began := b.Now()
	addrs, err := b.group(ctx, &running, c, replicas)
	if err != nil {
		return out, err
	}
	before, err := b.redis.cost(ctx)
	if err != nil {
		return out, err
	}
	over, watched := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(over)
		var err error
		out.settled, out.drawn, err = b.weathered(ctx, s, began)
		watched <- err
	}()
	// They are enough for the pace; on a slow machine more clicks at once would only
	// make one another too late.
	clicks := load{addrs: addrs, conns: connections / 4, every: time.Second / others, now: b.Now}
	during := clicks
	during.over = over
	out.with, err = during.send(ctx, sent)
	if err = errors.Join(err, <-watched); err != nil {
		return out, err
	}
	after, err := b.redis.cost(ctx)
	if err != nil {
		return out, err
	}
	out.spent = after.minus(before)
	if rest := sent[len(out.with.each):]; len(rest) > 0 {
		clicks.most = 10 * b.Length
		out.without, err = clicks.send(ctx, rest)
	}
	return out, err
}

// weathered returns how long it took until all deadlines were settled, and until
// nothing was left to do.
func (b *bench) weathered(ctx context.Context, s *state.Store, began time.Time) (settled, drawn time.Duration, err error) {
	due := state.NewDue(s, state.DueOptions{})
	for {
		looked := b.Now()
		now, err := due.Backlog(ctx)
		if err != nil {
			return 0, 0, err
		}
		if _, left := now.OldestDue[state.Deadlines]; !left && settled == 0 {
			settled = looked.Sub(began)
		}
		if settled > 0 && quietEnough(now.OldestDue, looked, began.Add(settled)) {
			return settled, looked.Sub(began), nil
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return 0, 0, err
		}
	}
}

// quietEnough reports whether nothing is due but what the clicks of the last second led
// to, which were made after everything was settled.
func quietEnough(due map[state.Kind]time.Time, now, settled time.Time) bool {
	for _, at := range due {
		if now.Sub(at) > time.Second || at.Before(settled) {
			return false
		}
	}
	return true
}
