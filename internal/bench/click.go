package bench

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/state"
)

// clickColumns are what is measured of a click.
var clickColumns = append([]string{"deciding / it", "drawing / it"}, measured...)

// measured are the columns of [bench.measure].
var measured = []string{"req/s", "p50 ms", "p99 ms", "CPU ms", "Redis CPU ms", "commands", "round trips", "AOF bytes", "failed"}

// The numbers of some of them.
const (
	perSecond  = 0
	processCPU = 3
)

const clickAbout = `Clicks over 64 connections: a distinct, valid decision each, of %d bytes. "Deciding" is a bot that does no due work; "with its
drawing" one that does all of it, whose cost counts until all cards are drawn. CPU is that of the whole process, less that of
"answers 200": the bot and, if it draws, the simulated Slack. The first two columns are requests per second, in proportion to the row's.`

// A target answers clicks.
type target struct {
	name  string
	addr  string
	store *state.Store // of the requests that the clicks are about; nil for a floor
	end   func() error
	draws bool
}

// clicks measures from a click to its answer.
func (b *bench) clicks(ctx context.Context) (err error) {
	n := max(64, int(b.Length.Seconds()*800))
	b.said("click: %d decisions, %d rounds, %s", n, b.Rounds, b.keeps)
	seen, err := b.draw(ctx)
	if err != nil {
		return err
	}
	var running ends
	defer func() { err = errors.Join(err, running.close()) }()
	targets, err := b.floors(ctx)
	if err != nil {
		return err
	}
	waiting := map[string][]approvals.Batch{}
	for _, draws := range []bool{false, true} {
		t, all, err := b.clicked(ctx, seen, n*b.Rounds, draws)
		if err != nil {
			return err
		}
		running.after(t.store.Close)
		running.after(t.end)
		targets, waiting[t.name] = append(targets, t), all
	}
	rounds := map[string][][]float64{}
	for i := range b.Rounds {
		for _, t := range targets {
			all := waiting[deciding]
			if t.store != nil {
				all = waiting[t.name]
			}
			sent, err := b.clicksOn(seen, all[i*n:(i+1)*n])
			if err != nil {
				return err
			}
			got, err := b.measureUntil(ctx, b.load(t.addr, connections), sent, func() (float64, error) {
				if !t.draws {
					return 0, nil
				}
				return b.drained(ctx, t.store)
			})
			if err != nil {
				return err
			}
			rounds[t.name] = append(rounds[t.name], got)
		}
	}
	return b.clickTable(seen, targets, rounds)
}

const (
	deciding    = "bot, deciding"
	withDrawing = "bot, with its drawing"
)

// clicked starts a bot and stores n requests whose cards are drawn.
func (b *bench) clicked(ctx context.Context, d drawn, n int, draws bool) (t target, all []approvals.Batch, err error) {
	c := b.configuration(b.fresh())
	s, err := b.store(ctx, c.Redis.Prefix)
	if err != nil {
		return t, nil, err
	}
	if all, err = b.ask(ctx, s, n, "click", rule{}); err == nil {
		err = b.shown(ctx, s, d, all)
	}
	if err != nil {
		return t, nil, errors.Join(err, s.Close())
	}
	if !draws {
		addr, end, err := b.front(ctx, c)
		return target{name: deciding, addr: addr, store: s, end: end}, all, err
	}
	r, err := b.replica(ctx, c)
	if err == nil {
		err = b.quiet(ctx, s)
	}
	return target{name: withDrawing, addr: r.addr, store: s, end: r.end, draws: true}, all, err
}

// front starts a bot that does no due work.
func (b *bench) front(ctx context.Context, c config.Config) (addr string, end func() error, err error) {
	h, stop, err := b.Front(ctx, c, b.environment(), b.log())
	if err != nil {
		return "", nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, errors.Join(err, stop())
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.Serve(l) }() // it ends with Close
	return l.Addr().String(), func() error { return errors.Join(s.Close(), stop()) }, nil
}

// measure sends the requests and returns what they took and cost, as [measured] has
// it.
func (b *bench) measure(ctx context.Context, l load, sent []request) ([]float64, error) {
	return b.measureUntil(ctx, l, sent, func() (float64, error) { return 0, nil })
}

// measureUntil counts the cost until end returns, which says how often it looked at
// what is due.
func (b *bench) measureUntil(ctx context.Context, l load, sent []request, end func() (looks float64, err error)) ([]float64, error) {
	before, err := b.redis.cost(ctx)
	if err != nil {
		return nil, err
	}
	took, err := l.send(ctx, sent)
	if err != nil {
		return nil, err
	}
	looks, err := end()
	if err != nil {
		return nil, err
	}
	after, err := b.redis.cost(ctx)
	if err != nil {
		return nil, err
	}
	spent, n := after.minus(before), float64(max(1, len(took.each)))
	spent.commands -= looks * backlogCommands
	spent.trips -= looks
	return []float64{
		took.perSecond(), ms(took.at(0.5)), ms(took.at(0.99)), ms(spent.process) / n, ms(spent.server) / n,
		spent.commands / n, spent.trips / n, spent.aof / n, float64(took.failed),
	}, nil
}

// load sends requests for three times as long as they should take on a machine with
// nothing else to do, and at least so long that a busy one answers some.
func (b *bench) load(addr string, conns int) load {
	return load{addr: addr, conns: conns, most: max(5*time.Second, 3*b.Length), now: b.Now}
}

// backlogCommands is how many commands one look of drained is.
var backlogCommands = float64(approvals.Partitions * (len(state.Kinds()) + 4))

// drained returns when all that is due is done, and how often it looked.
func (b *bench) drained(ctx context.Context, s *state.Store) (looks float64, err error) {
	due := state.NewDue(s, state.DueOptions{})
	for {
		now, err := due.Backlog(ctx)
		looks++
		if err != nil || len(now.OldestDue) == 0 {
			return looks, err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return looks, err
		}
	}
}
