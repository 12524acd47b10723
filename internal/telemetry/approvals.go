package telemetry

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign/countersign/internal/approvals"
)

// approvalMetrics are about calls that wait for people.
type approvalMetrics struct {
	opened, settled, decisions, executions *prometheus.CounterVec
	took                                   *prometheus.HistogramVec

	rules, agents *bounded
}

func newApprovalMetrics() approvalMetrics {
	a := approvalMetrics{
		opened:     counter("approvals_opened_total", "Calls for which people were asked, by agent and rule.", "agent", "rule"),
		settled:    counter("approvals_settled_total", "Calls whose approval ended, by outcome and rule.", "outcome", "rule"),
		decisions:  counter("decisions_total", "Decisions of people, by verdict.", "verdict"),
		executions: counter("approved_calls_total", "Approved calls by what became of them: ran, failed, in_doubt, not_run, refused, asked_again or claimed.", "state"),
		took:       histogram("approval_wait_seconds", "From the question to the outcome of an approval, by outcome.", people, "outcome"),
		rules:      &bounded{}, agents: &bounded{},
	}
	// A counter that is not there before its first event shows no increase with it.
	for _, v := range []approvals.Verdict{approvals.Approve, approvals.Deny} {
		a.decisions.WithLabelValues(string(v))
	}
	for _, s := range []approvals.ExecutionState{
		approvals.Ran, approvals.RanFailed, approvals.InDoubt, approvals.NotRun, approvals.Refused, approvals.AskedAgain, approvals.Claimed,
	} {
		a.executions.WithLabelValues(string(s))
	}
	return a
}

func (a approvalMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{a.opened, a.settled, a.decisions, a.executions, a.took}
}

// Batches counts what is committed to the store of a desk.
func (m *Metrics) Batches(s approvals.Store) approvals.Store {
	if m == nil {
		return s
	}
	return batches{s, m.approvals}
}

type batches struct {
	approvals.Store

	metrics approvalMetrics
}

// CommitBatch implements [approvals.Store]. A commit that was made before has counted
// then; one that is stored and may be lost counts too.
func (s batches) CommitBatch(ctx context.Context, c approvals.BatchCommit) error {
	err := s.Store.CommitBatch(ctx, c)
	if err == nil || errors.Is(err, approvals.ErrNotDurable) {
		s.metrics.count(c.Batch, c.Events)
	}
	return err
}

// count adds events that were committed with the batch.
func (a approvalMetrics) count(b approvals.Batch, events []approvals.Event) {
	for _, e := range events {
		switch e := e.(type) {
		case approvals.Opened:
			for _, x := range b.Approvals {
				a.opened.WithLabelValues(a.agents.label(b.Agent), a.rule(x)).Inc()
			}
		case approvals.Decided:
			a.decisions.WithLabelValues(string(e.Verdict)).Inc()
		case approvals.Settled:
			for _, x := range b.Approvals { // an external call that was withdrawn had no approval
				if x.Call.ID == e.Call {
					a.settled.WithLabelValues(string(e.Status), a.rule(x)).Inc()
					a.took.WithLabelValues(string(e.Status)).Observe(seconds(e.At.Sub(b.OpenedAt)))
				}
			}
		case approvals.Concluded:
			a.executions.WithLabelValues(string(e.State)).Inc()
		case approvals.Retracted, approvals.Amended, approvals.Reminded, approvals.Escalated, approvals.Fulfilled, approvals.Reported, approvals.Resolved:
		}
	}
}

// rule is the name of the rule that asked, without the version of its policy: a
// version for each edit would be a new label.
func (a approvalMetrics) rule(x approvals.Approval) string {
	name := x.Rule
	if i := strings.LastIndexByte(name, '@'); i >= 0 {
		name = name[:i]
	}
	return a.rules.label(name)
}

// seconds is a duration that clocks of two machines made.
func seconds(d time.Duration) float64 { return max(0, d.Seconds()) }
