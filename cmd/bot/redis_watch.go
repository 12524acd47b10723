package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/state"
)

// redisLooks is how often the settings of Redis are compared with what the
// configuration promises, about: processes do it at different times.
const redisLooks = time.Minute

// A redisWatch compares the settings of Redis with the configuration while the bot runs,
// as the start does, and notices a Redis that was emptied or is older. What it finds is in
// the log once, in a metric, and in /readyz; the bot goes on, because every replica has the same
// Redis. The nil one finds nothing.
type redisWatch struct {
	promised config.Redis
	servers  func(ctx context.Context) ([]state.Server, error)
	holds    func(ctx context.Context) error // see [state.Past.Holds]
	log      *slog.Logger
	known    map[doctor.Finding]bool // what was said; nil before the first look
	problems atomic.Int64
}

func newRedisWatch(promised config.Redis, servers func(ctx context.Context) ([]state.Server, error), holds func(ctx context.Context) error, log *slog.Logger) *redisWatch {
	if promised.Durability == state.None {
		return nil
	}
	return &redisWatch{promised: promised, servers: servers, holds: holds, log: log}
}

// weak is how many settings were found to keep less than is promised.
func (w *redisWatch) weak() int {
	if w == nil {
		return 0
	}
	return int(w.problems.Load())
}

// run looks at Redis until ctx ends.
func (w *redisWatch) run(ctx context.Context) {
	if w == nil {
		return
	}
	for {
		next := time.NewTimer(redisLooks*3/4 + rand.N(redisLooks/2)) //nolint:gosec // jitter is no secret
		select {
		case <-next.C:
			w.look(ctx)
		case <-ctx.Done():
			next.Stop()
			return
		}
	}
}

// look compares the settings once. If a server does not answer, what was found before
// stays. That Redis is away is reported elsewhere.
func (w *redisWatch) look(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, doctor.Timeout)
	defer cancel()
	servers, err := w.servers(asking)
	if err != nil {
		return
	}
	judged := doctor.JudgeRedis(w.promised, servers)
	switch err := w.holds(asking); {
	case errors.Is(err, state.ErrEmptied), errors.Is(err, state.ErrOlder):
		judged = append(judged, doctor.Finding{
			Mark: doctor.IsProblem, Text: err.Error(),
			Advice: "restore a backup, or restart the bot to go on without what was lost; see docs/operate.md",
		})
	case errors.Is(err, state.ErrLayout):
		judged = append(judged, doctor.Finding{Mark: doctor.IsProblem, Text: err.Error(), Advice: "use the version that made it, or a newer one"})
	case errors.Is(err, state.ErrConverting), errors.Is(err, state.ErrLayoutChanged): // [bot.followLayout] ends the bot and says so
	case err != nil:
		return
	}
	var problems int64
	unknown, found := false, map[doctor.Finding]bool{}
	for _, f := range judged {
		about := []any{slog.String("what", f.Text), slog.String("advice", f.Advice)}
		switch f.Mark {
		case doctor.IsProblem:
			problems++
			found[f] = true
			if !w.known[f] {
				w.log.ErrorContext(ctx, "Redis keeps less than redis.durability requires", about...)
			}
		case doctor.NotChecked:
			found[f] = true
			if w.known != nil && !w.known[f] { // the start has said it
				unknown = true
				w.log.WarnContext(ctx, "could not check Redis", about...)
			}
		case doctor.IsFine, doctor.IsWarning:
		}
	}
	w.known = found
	if before := w.problems.Swap(problems); before > 0 && problems == 0 && !unknown {
		w.log.InfoContext(ctx, "Redis keeps what redis.durability requires again")
	}
}
