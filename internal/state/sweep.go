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

	"github.com/countersign/countersign/internal/approvals"
)

//go:embed sweep.lua
var sweepSource string

var sweepScript = redis.NewScript(sweepSource)

// A sweeper tells the loops of one call of [Due.Run] where to look for work: it
// receives the wake-ups of all kinds on one subscription, and now and then asks
// every partition, with one command for all kinds, which of them have work. The
// loops themselves read what there is.
type sweeper struct {
	d     *Due
	loops []*loop

	subscribed chan struct{} // ready when a subscription has begun
}

func newSweeper(d *Due, loops []*loop) *sweeper {
	return &sweeper{d: d, loops: loops, subscribed: make(chan struct{}, 1)}
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
	sub := s.d.store.client.Subscribe(ctx, s.d.store.wakes())
	defer sub.Close() //nolint:errcheck // nothing is written on it
	messages := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-messages:
			if !ok {
				return
			}
			switch m := m.(type) {
			case *redis.Message:
				_, entries, _ := parseWakes(m.Payload)
				for _, l := range s.loops {
					if e, ok := entries[l.task.Kind]; ok {
						l.hints.committed(e)
					}
				}
			case *redis.Subscription:
				select {
				case s.subscribed <- struct{}{}:
				default: // the sweep that is to come is late enough
				}
			}
		}
	}
}

// sweepOn sweeps at once and then again and again: twice as often while nothing
// is subscribed to, and soon after a failure.
func (s *sweeper) sweepOn(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	every := s.d.o.Sweep / 2
	var failing time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.subscribed:
			every = s.d.o.Sweep
			timer.Reset(time.Millisecond) // never to a time that is over: see wires_test.go of cmd/bot
			continue
		case <-timer.C:
		}
		err := s.sweep(ctx)
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
			failing = longerAfter(failing)
			timer.Reset(failing)
		}
	}
}

// longerAfter is how long to wait after another look that failed.
func longerAfter(wait time.Duration) time.Duration {
	return min(max(2*wait, 50*time.Millisecond), 2*time.Second)
}

// sweep asks every partition. What some of them answered is passed on even if
// others did not answer; that is then no sweep.
func (s *sweeper) sweep(ctx context.Context) error {
	if c := s.d.o.Clock; c != nil {
		if err := c.Check(ctx); err != nil {
			return err
		}
	}
	answers, err := s.ask(ctx, sweepScript.EvalSha)
	if slices.ContainsFunc(answers, func(a *redis.Cmd) bool { return redis.HasErrorPrefix(a.Err(), "NOSCRIPT") }) {
		answers, err = s.ask(ctx, sweepScript.Eval)
	}
	found := make([]places, len(s.loops))
	for n, a := range answers {
		kinds, failed := a.Int64Slice()
		if failed != nil {
			err = failed
			continue
		}
		for _, k := range kinds {
			found[k-1][n] = true
		}
	}
	for i, l := range s.loops {
		l.hints.swept(found[i], err == nil)
	}
	return err
}

// ask returns the answer of each partition, and an error if one has none.
func (s *sweeper) ask(ctx context.Context, run func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd) ([]*redis.Cmd, error) {
	until := scoreOf(s.d.store.now().Add(near)).String()
	pipe := s.d.store.client.Pipeline()
	answers := make([]*redis.Cmd, approvals.Partitions)
	for n := range answers {
		keys := make([]string, len(s.loops))
		for i, l := range s.loops {
			keys[i] = string(s.d.store.partition(n).due(l.task.Kind))
		}
		answers[n] = run(ctx, pipe, keys, until)
	}
	_, err := pipe.Exec(ctx)
	return answers, err
}

// places are partitions.
type places [approvals.Partitions]bool

// hints are what a loop has not taken yet of what its sweeper told it.
type hints struct {
	ready chan struct{}

	mu   sync.Mutex
	told told
}

type told struct {
	committed places  // someone has just committed there
	awaited   []entry // which people wait for: someone has just committed these
	found     places  // there is work, or will be soon
	swept     bool    // everything else was looked at, too
}

func newHints() *hints { return &hints{ready: make(chan struct{}, 1)} }

// committed says that there is work where the entry is: the entry itself if it has an id.
func (h *hints) committed(e entry) {
	h.tell(func(t *told) {
		if e.id == "" || len(t.awaited) >= mostAwaited {
			t.committed[e.partition] = true
			return
		}
		t.awaited = append(t.awaited, e)
	})
}

func (h *hints) swept(found places, whole bool) {
	h.tell(func(t *told) {
		for n, yes := range found {
			t.found[n] = t.found[n] || yes
		}
		t.swept = t.swept || whole
	})
}

func (h *hints) tell(what func(*told)) {
	h.mu.Lock()
	what(&h.told)
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default: // it is about to take them
	}
}

func (h *hints) take() told {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.told
	h.told = told{}
	return t
}
