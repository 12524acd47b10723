package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/redisserver"
	"github.com/countersign/countersign/internal/state"
)

// How long a stopping bot waits: for requests and commits in flight, then for
// calls that have started, and then for the last words to Slack and the last traces.
const (
	shutdownRequests = 5 * time.Second
	shutdownWork     = 20 * time.Second
	shutdownWords    = 3 * time.Second
)

// replicasMix is how long a run waits for a replica that has its agent and its tools:
// for about as long as an old replica is beside a new one.
const replicasMix = 30 * time.Second

func runServe(ctx context.Context, in *call) error {
	return serveConfig(ctx, in, func(config.Config) error { return nil })
}

// serveConfig runs the bot with the configuration that the flags name, if it is
// what the command needs. If the log is JSON, the error that ends it is in the log.
func serveConfig(ctx context.Context, in *call, needs func(config.Config) error) error {
	err := serveFlags(ctx, in, needs)
	if err == nil || errors.Is(err, errHelped) || !slices.Contains(in.environ, "COUNTERSIGN_LOG_FORMAT=json") {
		return err
	}
	config.Environment{LogFormat: "json"}.NewLogger(in.stderr).ErrorContext(ctx, "the bot ended", slog.String("err", approvals.Visible(err.Error())))
	return loggedError{err}
}

// A loggedError is in the log already.
type loggedError struct{ error }

// Unwrap returns the error that was logged.
func (e loggedError) Unwrap() error { return e.error }

func serveFlags(ctx context.Context, in *call, needs func(config.Config) error) error {
	path, data := in.flags.String("config", "", "The configuration `FILE`."), dataFlag(in)
	if _, err := in.parse(); err != nil {
		return err
	}
	hup, stop := hangups()
	defer stop()
	c, err := config.Read(*path)
	e, envErr := config.ReadEnvironment(in.environ)
	e.Data = *data
	if err == nil {
		err = errors.Join(c.Check(), needs(c), c.CheckModelKey(e))
		if !c.HasMCP() || c.MCPLock != "" { // else the tools are in Redis, and newBot checks them
			err = errors.Join(err, c.CheckPolicy(e, in.extra, time.Now))
		}
	}
	if err == nil {
		_, err = c.Redis.Target(e)
	}
	if err := errors.Join(err, envErr); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", e.Addr)
	if err != nil {
		return fmt.Errorf("listen on COUNTERSIGN_ADDR: %w", err)
	}
	log := e.NewLogger(in.stderr)
	for _, w := range c.Warnings() {
		log.WarnContext(ctx, "a setting is not for production", slog.String("warning", w.Text), slog.String("advice", w.Advice))
	}
	keep, err := openData(ctx, e.Data, log)
	if err != nil {
		if ctx.Err() != nil {
			err = nil // stopped before it began: Redis may read its log for minutes
		}
		return errors.Join(err, l.Close())
	}
	return errors.Join(serve(ctx, l, nil, c, e, in.extra, hup, func() {}, log), keep())
}

// serveBeside is serve for commands that run the bot beside something else.
func serveBeside(ctx context.Context, l, agents net.Listener, c config.Config, e config.Environment, extra config.ToolsFor, ready func(), log *slog.Logger) error {
	hup, stop := hangups()
	defer stop()
	return serve(ctx, l, agents, c, e, extra, hup, ready, log)
}

// hangups receives SIGHUP, which would otherwise end the process, until the returned
// function is called. A signal that arrives before it is read is kept.
func hangups() (hup <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// openData runs a private Redis on the data in the folder until the returned function is
// called. Without a folder it does nothing.
func openData(ctx context.Context, dir string, log *slog.Logger) (end func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	f, err := redisserver.Open(ctx, dir, log)
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	return f.Close, nil
}

// dataFlag is the flag of every command that needs the store.
func dataFlag(in *call) *string {
	var dir string
	in.flags.Func("data", "Instead of the Redis that REDIS_URL names, use a private one that keeps everything in this `FOLDER`. "+
		"It needs redis-server, and one bot at a time works on a folder.", func(value string) (err error) {
		if value == "" {
			return errors.New("names no folder")
		}
		dir, err = filepath.Abs(value)
		return err
	})
	return &dir
}

// serve runs the bot on the listener until ctx ends, then hands over: requests
// in flight are answered, runs are left at their next commit for another
// process. Remote agents reach it at the listener agents, or at http.listen if that is
// nil. It closes the listeners.
//
// It answers /healthz from the start, and everything else once Redis and Slack have been
// reached; then it calls ready. extra are tools that agents have besides those of their
// configuration. Each signal from hup makes it read its files again, even one that
// arrived before it could.
func serve(ctx context.Context, l, agents net.Listener, c config.Config, e config.Environment, extra config.ToolsFor, hup <-chan os.Signal, ready func(), log *slog.Logger) error {
	if agents != nil {
		defer agents.Close() //nolint:errcheck // the server of the agents has closed it, if there was one
	}
	var front gate
	server := newSlackServer(&front, log)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()

	b, err := newBot(ctx, c, e, extra, log, front.waits)
	if b == nil {
		if ctx.Err() != nil {
			err = nil // stopped before it began
		}
		return errors.Join(err, server.Close())
	}
	remote, err := b.serveRemote(ctx, agents, c)
	if err != nil {
		return errors.Join(err, server.Close(), b.store.Close())
	}
	metrics, err := b.serveMetrics(ctx, c)
	if err != nil {
		return errors.Join(err, remote.stop(ctx), server.Close(), b.store.Close())
	}
	defer metrics.close()
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	var servers, reconcilers sync.WaitGroup
	if b.servers != nil {
		servers.Go(func() { b.servers.Run(serving) })
	}
	reconcilers.Go(func() { b.reconcile(work) })
	reconcilers.Go(func() { b.redis.run(work) })
	changed := make(chan error, 1)
	reconcilers.Go(func() { b.followLayout(work, changed) })
	reconcilers.Go(func() { b.follow(work, c.Reload, hup) })
	if b.reviews != nil {
		reconcilers.Go(func() { b.reviews.Run(work) })
	}
	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	var receiving sync.WaitGroup
	receiving.Go(func() { b.receive(taking) })
	front.open(b.handler())
	log.InfoContext(ctx, "listening", slog.String("addr", l.Addr().String()))
	ready()

	select {
	case err = <-served:
		err = fmt.Errorf("serve HTTP: %w", err)
	case err = <-remote.failed():
		err = fmt.Errorf("serve remote agents: %w", err)
	case err = <-changed:
		err = fmt.Errorf("stopping: %w", err)
	case <-ctx.Done():
		log.InfoContext(ctx, "stopping")
	}
	b.stopping.Store(true)
	b.runner.Drain()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownRequests)
	defer cancel()
	stopTaking()
	err = errors.Join(err, remote.stop(closing), server.stop(closing))
	receiving.Wait()
	stopWork()
	err = errors.Join(err, remote.finish(context.WithoutCancel(ctx)))
	reconcilers.Wait()
	stopServing()
	servers.Wait()
	closing, cancel = context.WithTimeout(context.WithoutCancel(ctx), shutdownWords)
	defer cancel()
	err = errors.Join(err, b.close(closing))
	log.InfoContext(ctx, "stopped")
	return err
}

// followLayout sends an error once another process has changed the layout of the store, or
// has begun to and does not go back. It returns then, or when ctx ends.
func (b *bot) followLayout(ctx context.Context, changed chan<- error) {
	for began := false; ; {
		asking, cancel := context.WithTimeout(ctx, doctor.Timeout)
		err := b.store.Holds(asking)
		cancel()
		converting := errors.Is(err, state.ErrConverting)
		if errors.Is(err, state.ErrLayoutChanged) || converting && began {
			changed <- err
			return
		}
		began = converting
		next := time.NewTimer(redisLooks*3/4 + rand.N(redisLooks/2)) //nolint:gosec // jitter is no secret
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return
		}
	}
}

// A gate passes requests to a handler once there is one. Before that it answers
// 503, with a time after which to try again, and /readyz says what is waited for. The zero
// gate has no handler.
type gate struct {
	handler atomic.Pointer[http.Handler]
	awaited atomic.Pointer[string]
}

func (g *gate) waits(what string) { g.awaited.Store(&what) }

func (g *gate) open(h http.Handler) { g.handler.Store(&h) }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch h := g.handler.Load(); {
	case h != nil:
		(*h).ServeHTTP(w, r)
	case r.URL.Path == "/healthz":
		answer(w, http.StatusOK, "alive")
	default:
		w.Header().Set("Retry-After", "1")
		text := "starting"
		if what := g.awaited.Load(); what != nil && r.URL.Path == "/readyz" {
			text += ": it waits for " + *what + ", and the log says why"
		}
		answer(w, http.StatusServiceUnavailable, text)
	}
}
