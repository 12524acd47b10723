package bench

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/state"
)

// A subject is a server that is measured.
type subject struct {
	name  string
	addrs []string // of its replicas
	conns int
	want  string // in every answer
	// sent are the requests of a round, which counts from 0.
	sent func(round int) ([]request, error)
	// done, if set, waits until all work that follows from the answers is done. It
	// returns what looking at what is due has cost. The cost of that work counts.
	done func(ctx context.Context) (looks cost, err error)
	// used returns the CPU time of the subject's own process, and whether that is
	// known. It is nil if the subject runs in this process.
	used func() (time.Duration, bool)
}

// measured are the columns of [bench.measure].
var measured = []string{"req/s", "p50 ms", "p99 ms", "CPU ms", "Redis CPU ms", "commands", "round trips", "AOF bytes", "failed"}

// The indexes of some of these columns.
const (
	perSecond  = 0
	midTime    = 1
	slowTime   = 2
	processCPU = 3
	commands   = 5
	failures   = 8
)

// measure sends a subject the requests of a round, and returns what they took and
// cost, as [measured] has it.
func (b *bench) measure(ctx context.Context, s subject, round int) ([]float64, error) {
	sent, err := s.sent(round)
	if err != nil {
		return nil, err
	}
	own, _ := cpuOf(s.used)
	before, err := b.redis.cost(ctx)
	if err != nil {
		return nil, err
	}
	took, err := b.load(s).send(ctx, sent)
	if err != nil {
		return nil, err
	}
	var looks cost
	if s.done != nil {
		if looks, err = s.done(ctx); err != nil {
			return nil, err
		}
	}
	after, err := b.redis.cost(ctx)
	if err != nil {
		return nil, err
	}
	owned, known := cpuOf(s.used)
	spent := after.minus(before).minus(looks)
	spent.process += owned - own
	spent = spent.each(float64(max(1, len(took.each))))
	used := ms(spent.process)
	if !known {
		used = unknown
	}
	return []float64{
		took.perSecond(), ms(took.at(0.5)), ms(took.at(0.99)), used, ms(spent.server),
		spent.commands, spent.trips, spent.aof, float64(took.failed),
	}, nil
}

// cpuOf returns the CPU time that another process has used, none if there is none, and
// whether it is known.
func cpuOf(used func() (time.Duration, bool)) (time.Duration, bool) {
	if used == nil {
		return 0, true
	}
	return used()
}

// load sends requests for three times as long as they should take on a machine with
// nothing else to do, and at least so long that a busy one answers some.
func (b *bench) load(s subject) load {
	return load{addrs: s.addrs, conns: s.conns, want: s.want, most: max(5*time.Second, 3*b.Length), now: b.Now}
}

// inTurn measures each subject in each round, one after the other, and returns the
// medians of each by its name.
func (b *bench) inTurn(ctx context.Context, all []subject) (map[string][]float64, error) {
	rounds := map[string][][]float64{}
	for i := range b.Rounds {
		for _, s := range all {
			got, err := b.measure(ctx, s, i)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			rounds[s.name] = append(rounds[s.name], got)
		}
	}
	middle := map[string][]float64{}
	for name, got := range rounds {
		middle[name] = median(got)
	}
	return middle, nil
}

// A versus is a column with the requests per second of the subject ours, divided by
// those of the row.
type versus struct{ column, ours string }

// compared measures the subjects in turn and prints the last one first. Of the CPU
// that of the load is subtracted, which is that of the base.
func (b *bench) compared(ctx context.Context, t Table, base string, ours []versus, all []subject) error {
	middle, err := b.inTurn(ctx, all)
	if err != nil {
		return err
	}
	for _, v := range ours {
		t.Columns = append(t.Columns, v.column)
	}
	t.Columns = append(t.Columns, measured...)
	for _, s := range slices.Backward(all) {
		m := slices.Clone(middle[s.name])
		if m[processCPU] != unknown {
			m[processCPU] = max(0, m[processCPU]-middle[base][processCPU])
		}
		var ratios []float64
		for _, v := range ours {
			ratios = append(ratios, middle[v.ours][perSecond]/m[perSecond])
		}
		t.Rows = append(t.Rows, Row{s.name, append(ratios, m...)})
	}
	return b.table(t)
}

// drained returns when all that is due is done, and which commands and round trips it took
// to look. Nothing else may use the bench's own stores meanwhile.
func (b *bench) drained(ctx context.Context, s *state.Store) (looks cost, err error) {
	due, before := state.NewDue(s, state.DueOptions{}), b.own.cost()
	for {
		now, err := due.Backlog(ctx)
		if err != nil || len(now.OldestDue) == 0 {
			return b.own.cost().minus(before), err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return cost{}, err
		}
	}
}

// asked counts what the stores of the bench ask of Redis.
type asked struct{ commands, trips atomic.Int64 }

func (a *asked) cost() cost {
	return cost{commands: float64(a.commands.Load()), trips: float64(a.trips.Load())}
}

// DialHook implements [redis.Hook].
func (a *asked) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (a *asked) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		a.commands.Add(1)
		a.trips.Add(1)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (a *asked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		a.commands.Add(int64(len(all)))
		a.trips.Add(1)
		return next(ctx, all)
	}
}
