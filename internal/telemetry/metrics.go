package telemetry

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config is what a [Metrics] is made of.
type Config struct {
	Version  string   // of the program
	Revision string   // of its source
	Outcomes []string // of webhooks
	Now      func() time.Time
}

// Metrics are the instruments of one process, in a registry of their own. The nil
// Metrics measures nothing: its methods return what they are given.
type Metrics struct {
	registry *prometheus.Registry
	now      func() time.Time

	approvals approvalMetrics
	runs      runMetrics
	due       dueMetrics
	model     modelMetrics
	slack     slackMetrics
	redis     redisMetrics
	http      *prometheus.HistogramVec
	inFlight  *prometheus.GaugeVec
	webhooks  *prometheus.CounterVec
	checks    *prometheus.CounterVec
}

const namespace = "countersign"

// Buckets of histograms, in seconds.
var (
	fast    = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5} // one call of Redis
	request = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2, 3, 5, 10, 30}                 // one request, in or out
	work    = []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900}         // what an agent does, and how late work begins
	people  = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400}
)

// New returns the instruments of a process.
func New(c Config) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), now: c.Now}
	m.approvals, m.runs, m.due, m.model, m.slack, m.redis = newApprovalMetrics(), newRunMetrics(), newDueMetrics(), newModelMetrics(), newSlackMetrics(), newRedisMetrics()
	m.http = histogram("http_request_duration_seconds", "How long requests to this process took, by listener, route and status.", request, "listener", "route", "code")
	m.inFlight = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "http_requests_in_flight", Help: "Requests to this process that are not answered yet, by listener.",
	}, []string{"listener"})
	m.webhooks = counter("webhook_attempts_total", "Attempts to send a message to a webhook, by how they ended.", "outcome")
	m.checks = counter("policy_checks_total", "Checks of policy rules that were asked, by what they answered.", "check", "answer")
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "What this process was built from. Always 1.",
		ConstLabels: prometheus.Labels{"version": c.Version, "revision": c.Revision, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(
		build, m.http, m.inFlight, m.webhooks, m.checks,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, o := range c.Outcomes {
		m.webhooks.WithLabelValues(o)
	}
	for _, group := range [][]prometheus.Collector{m.approvals.all(), m.runs.all(), m.due.all(), m.model.all(), m.slack.all(), m.redis.all()} {
		m.registry.MustRegister(group...)
	}
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: scrapeTimeout + time.Second})
}

// Webhook counts an attempt to send a message, by how it ended.
func (m *Metrics) Webhook(outcome string) {
	if m != nil {
		m.webhooks.WithLabelValues(outcome).Inc()
	}
}

// Check counts what the check of a policy rule answered. Its name is that of the
// configuration.
func (m *Metrics) Check(name, answer string) {
	if m != nil {
		m.checks.WithLabelValues(name, answer).Inc()
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// dueMetrics are about work that is due.
type dueMetrics struct{ late, took *prometheus.HistogramVec }

func newDueMetrics() dueMetrics {
	return dueMetrics{
		late: histogram("due_schedule_to_start_seconds", "How long after it was due work began, by kind.", work, "kind"),
		took: histogram("due_duration_seconds", "How long one item of due work took, by kind and whether it failed.", work, "kind", "outcome"),
	}
}

func (d dueMetrics) all() []prometheus.Collector { return []prometheus.Collector{d.late, d.took} }

// Started notes how late work of a kind began.
func (m *Metrics) Started(kind string, late time.Duration) {
	if m != nil {
		m.due.late.WithLabelValues(kind).Observe(max(0, late.Seconds()))
	}
}

// Work measures a reconciler of due work.
func (m *Metrics) Work(kind string, reconcile func(ctx context.Context, id string) error) func(ctx context.Context, id string) error {
	if m == nil {
		return reconcile
	}
	done, other := m.due.took.WithLabelValues(kind, "ok"), m.due.took.WithLabelValues(kind, "error")
	return func(ctx context.Context, id string) error {
		began := m.now()
		err := reconcile(ctx, id)
		if took := m.now().Sub(began).Seconds(); err == nil {
			done.Observe(took)
		} else {
			other.Observe(took)
		}
		return err
	}
}
