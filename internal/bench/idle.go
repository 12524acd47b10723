package bench

import (
	"context"
	"errors"
)

// idle measures what a bot costs that has nothing to do.
func (b *bench) idle(ctx context.Context) error {
	b.said("idle")
	t := Table{
		Name: "idle", About: "Bots with nothing to do: what they ask of Redis in a second, all together.",
		Columns: []string{"commands/s", "round trips/s", "per replica", "Redis CPU %", "process CPU %"},
	}
	for _, n := range []int{1, 2} {
		r, err := b.idling(ctx, n)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, r)
	}
	return b.table(t)
}

func (b *bench) idling(ctx context.Context, n int) (_ Row, err error) {
	var running ends
	defer func() { err = errors.Join(err, running.close()) }()
	if _, err := b.group(ctx, &running, b.configuration(b.fresh()), n); err != nil {
		return Row{}, err
	}
	seconds := max(atLeast(b, 4.0, 3), 8*b.Length.Seconds()) // several sweeps of each, or one
	if err := sleep(ctx, b.Length); err != nil {
		return Row{}, err
	}
	before, err := b.redis.cost(ctx)
	if err != nil {
		return Row{}, err
	}
	if err := sleep(ctx, duration(seconds)); err != nil {
		return Row{}, err
	}
	after, err := b.redis.cost(ctx)
	if err != nil {
		return Row{}, err
	}
	spent := after.minus(before)
	return Row{replicaWords(n), []float64{
		spent.commands / seconds, spent.trips / seconds, spent.commands / seconds / float64(n),
		100 * spent.server.Seconds() / seconds, 100 * spent.process.Seconds() / seconds,
	}}, nil
}
