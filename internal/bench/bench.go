// Package bench measures the bot on a real Redis against floors: the least that a
// server in Go does for the same request, measured in the same run on the same
// machine. The bot is the caller's, who runs it as `bot serve` does; the Slack is
// simulated, in this process. Its figures are for comparing two versions of the
// program and for sizing; they say nothing about Slack's own limits.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/state"
)

// Options say what is measured, and with what.
type Options struct {
	Redis     string        // the URL of a Redis for this alone; one of its own if it is empty
	Busy      bool          // Redis may hold data of others
	Only      []string      // of [Names]; all if it is empty
	Length    time.Duration // about how long one measurement takes
	Rounds    int           // how often each is made; the medians count
	Deadlines int           // how many requests expire at once
	Pending   int           // how many requests wait for people
	Replicas  int           // up to how many replicas are compared
	Shards    int           // up to how many shards of a Redis Cluster are compared
	Peers     []Peer        // answer clicks too
	Agents    []Peer        // run agents too
	JSON      bool
	Stdout    io.Writer
	Stderr    io.Writer
	Now       func() time.Time

	// Serve runs the bot on the listener until ctx ends, and calls ready once it is at
	// work. Agents reach it at the other listener, or as its configuration says if that
	// is nil.
	Serve func(ctx context.Context, l, agents net.Listener, c config.Config, e config.Environment, extra config.ToolsFor, ready func(), log *slog.Logger) error
	// Front returns the endpoints of a bot that does no due work: it decides and
	// draws nothing. The function ends it.
	Front func(ctx context.Context, c config.Config, e config.Environment, log *slog.Logger) (http.Handler, func() error, error)
}

// A scenario is one thing that is measured.
type scenario struct {
	name string
	run  func(b *bench, ctx context.Context) error
	// both says that it is measured with each setting of appendfsync.
	both bool
}

var scenarios = []scenario{
	{name: "click", run: (*bench).clicks, both: true},
	{name: "idle", run: (*bench).idle},
	{name: "hook", run: (*bench).hooks},
	{name: "gateway", run: (*bench).gateway},
	{name: "loop", run: (*bench).loop},
	{name: "steady", run: (*bench).steady},
	{name: "storm", run: (*bench).storm},
	{name: "pending", run: (*bench).pending},
	{name: "replicas", run: (*bench).replicas},
	{name: "shards", run: (*bench).shards},
}

// Names are the names of what can be measured.
func Names() []string {
	var all []string
	for _, s := range scenarios {
		all = append(all, s.name)
	}
	return all
}

// atLeast is the least amount of something from which figures can be read. In a run that
// is shorter than a tenth of a second, it is the other one: such a run only shows that
// everything works, as in tests.
func atLeast[T int | float64 | time.Duration](b *bench, full, short T) T {
	if b.Length < time.Second/10 {
		return short
	}
	return full
}

// bench is one run.
type bench struct {
	Options
	*world

	redis   *server
	own     asked            // by its own stores, not by the bots
	keeps   state.Durability // what Redis is set to now
	n       int              // of prefixes in use
	started int              // how often runs were started
	homes   int              // that people have opened
	out     report
}

// Run measures and prints.
func Run(ctx context.Context, o Options) (err error) {
	for _, name := range o.Only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("there is nothing called %q to measure; there is: %s", name, strings.Join(Names(), ", "))
		}
	}
	o.Stderr = &shared{w: o.Stderr}
	b := &bench{Options: o}
	if b.redis, err = open(ctx, o.Redis, o.Busy, o.Stderr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.redis.close(context.WithoutCancel(ctx))) }()
	if b.world, err = newWorld(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if b.out.Machine, err = b.machine(ctx); err != nil {
		return err
	}
	settings, err := b.redis.settings(ctx)
	if err != nil {
		return err
	}
	for _, s := range scenarios {
		if len(o.Only) > 0 && !slices.Contains(o.Only, s.name) {
			continue
		}
		for i, keeps := range settings {
			if i > 0 && !s.both {
				break
			}
			if b.keeps, err = keeps, b.redis.set(ctx, keeps); err != nil {
				return err
			}
			if err := s.run(b, ctx); err != nil {
				return fmt.Errorf("measure %s: %w", s.name, err)
			}
		}
	}
	if o.JSON {
		return b.out.json(o.Stdout)
	}
	return nil
}

// table prints a table, unless all is printed at the end, and keeps it.
func (b *bench) table(t Table) error {
	t.Redis = string(b.keeps)
	b.out.Tables = append(b.out.Tables, t)
	if b.JSON {
		return nil
	}
	return t.print(b.Stdout)
}

// A shared writer can be used by several goroutines: Redis and the bots write to the
// stream of the bench too.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// said tells the person who waits what is going on.
func (b *bench) said(format string, args ...any) {
	_, _ = fmt.Fprintf(b.Stderr, format+"\n", args...) // nothing can be done about an error
}
