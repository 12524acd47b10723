package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/bench"
	"github.com/countersign/countersign/internal/config"
)

var benchCommand = &command{
	name: "bench", short: "Measures the bot on this machine, beside simpler servers.", run: runBench,
	about: `
Measures the bot on this machine: how fast a click is decided, what a bot asks
of Redis that has nothing to do, how fast a hook is answered, and more. Beside
each figure stand those of servers that do only a part of it, measured in the
same run. It starts a redis-server of its own, or uses the one that --redis
names, which must be empty: never one that a bot uses. Slack is simulated. See
docs/operate.md.`,
	example: "bot bench --only click,hook",
}

func benchFlags(f *flag.FlagSet) *bench.Options {
	o := &bench.Options{}
	f.StringVar(&o.Redis, "redis", "", "Use the Redis at this `URL`, which must be empty, instead of a redis-server of its own.")
	f.BoolVar(&o.Busy, "busy", false, "Allow a Redis that holds other data. Keys of the measurements have a prefix of their own and are deleted at the end.")
	f.Func("only", "Measure only these: a comma-separated `LIST` of "+strings.Join(bench.Names(), ", ")+".", func(list string) error {
		o.Only = commaList(list)
		return nil
	})
	f.DurationVar(&o.Length, "duration", time.Second, "About how long one measurement takes: a `TIME` such as 5s.")
	f.IntVar(&o.Rounds, "rounds", 3, "Repeat each measurement so many `TIMES`, in turn with the others. The medians are printed.")
	f.IntVar(&o.Deadlines, "deadlines", 2000, "In the storm, so many `REQUESTS` expire at once.")
	f.Func("peer", "Measure clicks on a program of others too, in the same run: its `NAME=COMMAND`. May be given more than once; see docs/operate.md.", peersOf(&o.Peers))
	f.Func("agent", "Measure the steps of another agent too, in the same run: its `NAME=COMMAND`. May be given more than once; see docs/operate.md.", peersOf(&o.Agents))
	f.IntVar(&o.Pending, "pending", 2000, "So many `REQUESTS` wait for people while the views of a person are measured: up to 1000000, each of which takes about 5 kB of memory.")
	f.IntVar(&o.Replicas, "replicas", 4, "Compare up to so many `REPLICAS`.")
	f.IntVar(&o.Shards, "shards", 3, "Compare Redis Clusters of up to so many `SHARDS`, which are started for that.")
	f.BoolVar(&o.JSON, "json", false, "Print JSON.")
	return o
}

// peersOf adds each value of a flag to the peers.
func peersOf(all *[]bench.Peer) func(string) error {
	return func(text string) error {
		p, err := bench.ParsePeer(text)
		*all = append(*all, p)
		return err
	}
}

// runBench measures the bot, which is this program.
func runBench(ctx context.Context, in *call) error {
	o := benchFlags(in.flags)
	if _, err := in.parse(); err != nil {
		return err
	}
	if o.Length <= 0 || min(o.Rounds, o.Deadlines, o.Pending, o.Replicas, o.Shards) <= 0 {
		return in.wrong("--duration, --rounds, --deadlines, --pending, --replicas and --shards must be more than 0")
	}
	o.Stdout, o.Stderr, o.Now, o.Serve, o.Front = in.stdout, in.stderr, time.Now, serveBeside, front
	return bench.Run(ctx, *o)
}

// front is a bot that answers and does no due work.
func front(ctx context.Context, c config.Config, e config.Environment, log *slog.Logger) (http.Handler, func() error, error) {
	b, err := newBot(ctx, c, e, nil, log, func(string) {})
	if err != nil {
		return nil, nil, err
	}
	return b.handler(), func() error { return errors.Join(b.close(context.WithoutCancel(ctx))) }, nil
}
