package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/httpapi"
	"github.com/countersign/countersign/internal/outbox"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/telemetry"
	"github.com/countersign/countersign/internal/webhook"
)

// newMetrics returns the instruments of this process, or nil: without
// metrics.listen nothing is measured.
func newMetrics(c config.Config) *telemetry.Metrics {
	if c.Metrics.Listen == "" {
		return nil
	}
	built := readBuild()
	outcomes := []string{string(webhook.Delivered), string(webhook.Retry), string(webhook.Gone), string(webhook.Invalid), string(webhook.Interrupted)}
	return telemetry.New(telemetry.Config{Version: built.version, Revision: built.revision, Outcomes: outcomes, Now: time.Now})
}

// measured adds the hook that measures Redis to the options of a store.
func (b *bot) measured(o state.Options) state.Options {
	if h := b.metrics.Redis(); h != nil {
		o.Hooks = append(o.Hooks, h)
	}
	return o
}

// measuredWork is what this process does about due work, measured.
func (b *bot) measuredWork() []state.Task {
	all := b.work()
	for i, t := range all {
		if t.Kind == state.Runs {
			t.Reconcile = b.traces.Work(t.Reconcile)
		}
		all[i].Reconcile = b.metrics.Work(string(t.Kind), t.Reconcile)
	}
	return all
}

func (b *bot) started(k state.Kind, late time.Duration) { b.metrics.Started(string(k), late) }

// counted counts what a sender of webhooks sends.
func (b *bot) counted(s *webhook.Sender) outbox.Sender {
	if b.metrics == nil {
		return s
	}
	return countedSender{s, b.metrics}
}

type countedSender struct {
	*webhook.Sender

	metrics *telemetry.Metrics
}

// Send implements [outbox.Sender].
func (s countedSender) Send(ctx context.Context, e webhook.Endpoint, m webhook.Message) webhook.Outcome {
	o := s.Sender.Send(ctx, e, m)
	s.metrics.Webhook(string(o.Kind))
	return o
}

// watch has the metrics report what waits in the store.
func (b *bot) watch() error {
	var kinds []string
	for _, k := range state.Kinds() {
		kinds = append(kinds, string(k))
	}
	return b.metrics.Watch(telemetry.Source{Kinds: kinds, Backlog: b.backlog, Ready: b.ready, Weak: b.redis.weak, Counts: b.counts, Busy: b.runner.Busy})
}

func (b *bot) backlog(ctx context.Context) (telemetry.Backlog, error) {
	now, err := b.due.Backlog(ctx)
	if err != nil {
		return telemetry.Backlog{}, err
	}
	out := telemetry.Backlog{
		Waiting: now.Waiting, OldestWaiting: now.OldestWaiting, InDoubt: now.InDoubt, ParkedRuns: now.ParkedRuns,
		Parked: map[string]int64{}, OldestDue: map[string]time.Time{},
	}
	for k, n := range now.Parked {
		out.Parked[string(k)] = n
	}
	for k, at := range now.OldestDue {
		out.OldestDue[string(k)] = at
	}
	return out, nil
}

func (b *bot) counts() map[string]map[string]int64 {
	out := map[string]map[string]int64{}
	for k, c := range b.due.Counts() {
		out[string(k)] = map[string]int64{"done": c.Done, "delayed": c.Delayed, "failed": c.Failed, "parked": c.Parked}
	}
	return out
}

// A metricsServer listens for those who operate the bot. The nil one does not.
type metricsServer struct{ *http.Server }

// serveMetrics listens at metrics.listen, if that is set.
func (b *bot) serveMetrics(ctx context.Context, c config.Config) (*metricsServer, error) {
	if b.metrics == nil {
		return nil, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Metrics.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on metrics.listen: %w", err)
	}
	s := &metricsServer{&http.Server{
		Handler:           ownNames(b.operations(c.Metrics.Pprof), c.HTTP.Hosts),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      2 * time.Minute, // a profile is recorded while its answer is written
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(b.log.Handler(), slog.LevelWarn),
	}}
	go func() {
		if err := s.Serve(l); err != nil && err != http.ErrServerClosed { //nolint:errorlint // it is returned as it is
			b.log.ErrorContext(ctx, "the listener of the metrics ended", slog.Any("err", err))
		}
	}()
	b.log.InfoContext(ctx, "listening for metrics", slog.String("addr", l.Addr().String()), slog.Bool("pprof", c.Metrics.Pprof))
	return s, nil
}

// close ends the listener at once: nobody waits for a scrape.
func (s *metricsServer) close() {
	if s != nil {
		_ = s.Close() // the process stops
	}
}

// ownNames refuses requests that reach a listener on loopback under another name, see
// [httpapi.UnknownHost].
func ownNames(h http.Handler, names []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if httpapi.UnknownHost(r, names) {
			http.Error(w, "the listener does not answer under this name", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// operations serves the metrics, and profiles if they are wanted.
func (b *bot) operations(profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", b.metrics.Handler())
	if profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}
