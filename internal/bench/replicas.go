package bench

import (
	"context"
	"errors"
	"fmt"
)

const replicasAbout = `Up to %d replicas in one process, on one Redis: clicks over 64 connections with their drawing, what bots with nothing to do ask of
Redis in a second, all together, and %d deadlines at once. All replicas, the load and Redis share the cores of this machine, so more of
them are faster only as far as one of them waits.`

// replicas measures what more replicas bring, and cost.
func (b *bench) replicas(ctx context.Context) error {
	seen, err := b.draw(ctx)
	if err != nil {
		return err
	}
	t := Table{
		Name: "replicas", About: fmt.Sprintf(replicasAbout, b.Replicas, b.Deadlines),
		Columns: []string{"clicks/s", "p50 ms", "p99 ms", "CPU ms", "commands", "failed", "idle commands/s", "storm: settled s", "drawn s", "click p99 ms"},
	}
	for n := 1; n <= b.Replicas; n++ {
		got, err := b.clicksOfReplicas(ctx, seen, n)
		if err != nil {
			return err
		}
		idle, err := b.idling(ctx, n)
		if err != nil {
			return err
		}
		storm, err := b.storms(ctx, seen, n)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, Row{replicaWords(n), append(of(got, perSecond, midTime, slowTime, processCPU, commands, failures), idle.Values[0], storm.settled.Seconds(), storm.drawn.Seconds(), ms(storm.with.at(0.99)))})
	}
	return b.table(t)
}

// clicksOfReplicas measures clicks with their drawing, and returns what [measured] has.
func (b *bench) clicksOfReplicas(ctx context.Context, seen drawn, replicas int) (_ []float64, err error) {
	n := b.clicksOfARound()
	b.said("%d clicks on %s, %d rounds", n, replicaWords(replicas), b.Rounds)
	var running ends
	defer func() { err = errors.Join(err, running.close()) }()
	bot, err := b.clicked(ctx, &running, seen, n, replicas)
	if err != nil {
		return nil, err
	}
	middle, err := b.inTurn(ctx, []subject{bot})
	if err != nil {
		return nil, err
	}
	return middle[bot.name], nil
}

// of returns these of the values.
func of(values []float64, columns ...int) []float64 {
	some := make([]float64, len(columns))
	for i, c := range columns {
		some[i] = values[c]
	}
	return some
}
