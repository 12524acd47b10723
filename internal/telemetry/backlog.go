package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign/countersign/internal/agentrun"
)

// A Backlog is what waits in the store, for all processes together.
type Backlog struct {
	Waiting       int64                // requests in which a call waits for people
	OldestWaiting time.Time            // when the first of them was opened; zero without one
	InDoubt       int64                // calls about which people are asked what became of them
	ParkedRuns    int64                // runs that wait for an operator
	Parked        map[string]int64     // work that was given up, by kind
	OldestDue     map[string]time.Time // since when the first item that is due waits, by kind
}

// A Source reads what is not counted by wrapping.
type Source struct {
	Kinds   []string // of due work
	Backlog func(ctx context.Context) (Backlog, error)
	// Ready says why this process should get no work.
	Ready func(ctx context.Context) error
	// Counts are the items of due work that this process has had, by kind and by
	// what became of them.
	Counts func() map[string]map[string]int64
	// Weak is how many settings of Redis keep less than this process was told to rely on.
	Weak func() int
	// Busy says how busy this process is with the runs of each agent.
	Busy func() []agentrun.Busy
}

const (
	// fresh is how long a backlog is reported that was read: reading it costs
	// about 400 cheap commands in one pipeline.
	fresh = 10 * time.Second
	// scrapeTimeout is how long reading it may take: with what the rest of an answer
	// takes, less than the five seconds that some scrapers wait.
	scrapeTimeout = 3 * time.Second
)

// Watch reports what the source reads whenever the metrics are asked for.
func (m *Metrics) Watch(s Source) error {
	if m == nil {
		return nil
	}
	return m.registry.Register(&backlogCollector{source: s, now: m.now})
}

type backlogCollector struct {
	source Source
	now    func() time.Time

	mu   sync.Mutex
	at   time.Time
	last Backlog
	err  error
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

var (
	descWaiting = desc("approvals_waiting", "Requests in which a call waits for people, in all of the store.")
	descOldest  = desc("approvals_oldest_waiting_age_seconds", "How long the oldest of them has waited; 0 without one.")
	descInDoubt = desc("calls_in_doubt", "Calls that may or may not have taken effect, and about which people are asked, in all of the store.")
	descRuns    = desc("runs_parked", "Runs that wait for an operator, because every attempt failed.")
	descParked  = desc("due_parked", "Items of due work that were given up after many failures, by kind.", "kind")
	descLate    = desc("due_oldest_age_seconds", "How long the oldest item that is due has waited, by kind; 0 without one.", "kind")
	descStore   = desc("store_up", "Whether the backlog could be read from Redis: the gauges of the backlog are missing if not.")
	descReady   = desc("ready", "Whether this process takes work, as /readyz says.")
	descWeak    = desc("redis_settings_weak", "Settings of Redis that keep less than redis.durability requires, when this process looked last.")
	descWorking = desc("runs_working", "Runs that this process works on now, by agent.", "agent")
	descPutOff  = desc("runs_put_off_total", "How often a run had to wait because this process works on as many of its agent or of its requester as it may, by agent.", "agent")
	descItems   = desc("due_items_total", "Items of due work that this process had, by kind and what became of them.", "kind", "outcome")
)

// Describe implements [prometheus.Collector].
func (b *backlogCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descWaiting, descOldest, descInDoubt, descRuns, descParked, descLate, descStore, descReady, descWeak, descWorking, descPutOff, descItems} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (b *backlogCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(descReady, truth(b.source.Ready(ctx) == nil))
	gauge(descWeak, float64(b.source.Weak()))
	for kind, counts := range b.source.Counts() {
		for outcome, n := range counts {
			ch <- prometheus.MustNewConstMetric(descItems, prometheus.CounterValue, float64(n), kind, outcome)
		}
	}
	for _, r := range b.source.Busy() {
		gauge(descWorking, float64(r.Runs), r.Agent)
		ch <- prometheus.MustNewConstMetric(descPutOff, prometheus.CounterValue, float64(r.PutOff), r.Agent)
	}
	last, at, err := b.read(ctx)
	gauge(descStore, truth(err == nil))
	if err != nil {
		return
	}
	now := b.now()
	gauge(descWaiting, float64(last.Waiting))
	gauge(descOldest, age(now, last.OldestWaiting))
	gauge(descInDoubt, float64(last.InDoubt))
	gauge(descRuns, float64(last.ParkedRuns))
	for _, k := range b.source.Kinds {
		gauge(descParked, float64(last.Parked[k]), k)
		gauge(descLate, age(at, last.OldestDue[k]), k) // it may have begun since it was read
	}
}

// read returns what was read a moment ago, or reads it, and when that was.
func (b *backlogCollector) read(ctx context.Context) (Backlog, time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.now(); b.at.IsZero() || now.Sub(b.at) >= fresh {
		b.last, b.err = b.source.Backlog(ctx)
		b.at = now
	}
	return b.last, b.at, b.err
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func age(now, since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return seconds(now.Sub(since))
}
