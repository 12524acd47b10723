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
func (b *bench) storm(ctx context.Context) (err error) {
	b.said("storm: %d deadlines at once", b.Deadlines)
	seen, err := b.draw(ctx)
	if err != nil {
		return err
	}
	c := b.configuration(b.fresh())
	s, err := b.store(ctx, c.Redis.Prefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	expired, err := b.ask(ctx, s, b.Deadlines, "storm", rule{deadline: b.Now()})
	if err != nil {
		return err
	}
	clicked, err := b.ask(ctx, s, others*60, "click", rule{})
	if err == nil {
		err = b.shown(ctx, s, seen, slices.Concat(expired, clicked))
	}
	if err != nil {
		return err
	}
	sent, err := b.clicksOn(seen, clicked)
	if err != nil {
		return err
	}
	began := b.Now()
	r, err := b.replica(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	before, err := b.redis.cost(ctx)
	if err != nil {
		return err
	}
	var settled, drawn time.Duration
	over, watched := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(over)
		var err error
		settled, drawn, err = b.weathered(ctx, s, began)
		watched <- err
	}()
	with, err := load{addrs: []string{r.addr}, conns: connections, every: time.Second / others, over: over, now: b.Now}.send(ctx, sent)
	if err = errors.Join(err, <-watched); err != nil {
		return err
	}
	after, err := b.redis.cost(ctx)
	if err != nil {
		return err
	}
	without := times{}
	if rest := sent[len(with.each):]; len(rest) > 0 {
		if without, err = (load{addrs: []string{r.addr}, conns: connections, every: time.Second / others, most: 10 * b.Length, now: b.Now}).send(ctx, rest); err != nil {
			return err
		}
	}
	n := float64(b.Deadlines)
	spent := after.minus(before)
	return b.table(Table{
		Name: "storm", About: fmt.Sprintf(stormAbout, b.Deadlines, others),
		Columns: []string{"settled s", "drawn s", "click p50 ms", "click p99 ms", "clicks", "failed", "without: p50 ms", "p99 ms", "commands", "CPU ms"},
		Rows: []Row{{"deadlines", []float64{
			settled.Seconds(), drawn.Seconds(), ms(with.at(0.5)), ms(with.at(0.99)), float64(len(with.each)), float64(with.failed),
			ms(without.at(0.5)), ms(without.at(0.99)), spent.commands / n, ms(spent.process) / n,
		}}},
	})
}

// weathered returns how long it took until all deadlines were settled, and until
// nothing was left to do.
func (b *bench) weathered(ctx context.Context, s *state.Store, began time.Time) (settled, drawn time.Duration, err error) {
	due := state.NewDue(s, state.DueOptions{})
	for {
		now, err := due.Backlog(ctx)
		if err != nil {
			return 0, 0, err
		}
		if _, left := now.OldestDue[state.Deadlines]; !left && settled == 0 {
			settled = b.Now().Sub(began)
		}
		if settled > 0 && quietEnough(now.OldestDue, b.Now()) {
			return settled, b.Now().Sub(began), nil
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return 0, 0, err
		}
	}
}

// quietEnough reports whether nothing is due but what the clicks of the last second
// led to.
func quietEnough(due map[state.Kind]time.Time, now time.Time) bool {
	for _, at := range due {
		if now.Sub(at) > time.Second {
			return false
		}
	}
	return true
}
