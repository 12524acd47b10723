package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign/countersign/internal/agentrun"
)

// runMetrics are about runs and the calls that they execute.
type runMetrics struct {
	runs, calls *prometheus.CounterVec
	took        *prometheus.HistogramVec

	tools, agents *bounded
}

func newRunMetrics() runMetrics {
	return runMetrics{
		runs:  counter("runs_total", "Runs that ended or were parked, by agent and status.", "agent", "status"),
		calls: counter("tool_calls_total", "Calls that this program executed, by tool and outcome. A call with the outcome unsure may or may not have happened.", "tool", "outcome"),
		took:  histogram("tool_call_duration_seconds", "How long executed calls took, by tool.", work, "tool"),
		tools: &bounded{}, agents: &bounded{},
	}
}

func (r runMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{r.runs, r.calls, r.took}
}

// Runs counts what is committed to the store of a runner.
func (m *Metrics) Runs(s agentrun.Store) agentrun.Store {
	if m == nil {
		return s
	}
	return runs{s, m.runs, m.approvals}
}

type runs struct {
	agentrun.Store

	metrics   runMetrics
	approvals approvalMetrics
}

// Commit implements [agentrun.Store]. A runner repeats a commit until it is
// answered, so only the answered one counts.
func (s runs) Commit(ctx context.Context, c agentrun.Commit) error {
	if err := s.Store.Commit(ctx, c); err != nil {
		return err
	}
	s.count(c)
	for _, part := range c.With {
		s.count(part)
	}
	return nil
}

func (s runs) count(c agentrun.Commit) {
	if o := c.Opens; o != nil {
		s.approvals.count(o.Batch, o.Events)
	}
	if m := c.Moves; m != nil {
		s.approvals.count(m.Batch, m.Events)
	}
	for _, r := range c.Runs {
		switch r.Status {
		case agentrun.RunDeferred, agentrun.RunCompleted, agentrun.RunFailed, agentrun.RunParked, agentrun.RunMerged:
			s.metrics.runs.WithLabelValues(s.metrics.agents.label(r.Agent), string(r.Status)).Inc()
		case agentrun.RunWaiting, agentrun.RunQueued, agentrun.RunRunning:
		}
	}
	for _, e := range c.Entries {
		if e.State == agentrun.EntryFinished {
			tool := s.metrics.tools.label(e.Tool)
			s.metrics.calls.WithLabelValues(tool, outcomeOf(e.Finish)).Inc()
			s.metrics.took.WithLabelValues(tool).Observe(seconds(e.Finish.Took))
		}
	}
}

// outcomeOf names how an execution ended.
func outcomeOf(f agentrun.Finish) string {
	if f.Unsure {
		return "unsure"
	}
	switch f.Aside {
	case agentrun.AsideApproval:
		return "approval_required"
	case agentrun.AsideExternal:
		return "deferred"
	case agentrun.AsidePrecondition:
		return "precondition_failed"
	case agentrun.AsideNone, agentrun.AsideDoubt: // no execution ends with the second
	}
	switch part := f.Part.(type) {
	case agentrun.ToolReturn:
		return string(part.Outcome)
	case agentrun.RetryPrompt:
		return "retry"
	case agentrun.UserPrompt, nil:
	}
	return "unknown"
}
