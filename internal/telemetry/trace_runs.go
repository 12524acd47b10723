package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// worked is the work of one worker on one run. Its span begins when the run is
// claimed, which is later than its context.
type worked struct {
	mu   sync.Mutex
	span trace.Span
	run  agentrun.Run   // as it was committed last
	used agentrun.Usage // by the workers before, and by the runs that this one resumes
}

type workedKey struct{}

// worksIn is the span of the work in a context that is older than the span: what is sent
// in it, such as the request of a tool, continues the trace once there is one.
type worksIn struct {
	noop.Span

	work *worked
}

// SpanContext implements [trace.Span].
func (s worksIn) SpanContext() trace.SpanContext {
	s.work.mu.Lock()
	defer s.work.mu.Unlock()
	if s.work.span == nil {
		return trace.SpanContext{}
	}
	return s.work.span.SpanContext()
}

// within is the context with the span of the work in it.
func within(ctx context.Context) context.Context {
	w, ok := ctx.Value(workedKey{}).(*worked)
	if !ok {
		return ctx
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, w.span)
}

// Work makes a span of what a reconciler of runs does, if it claims one.
func (t *Traces) Work(reconcile func(ctx context.Context, id string) error) func(ctx context.Context, id string) error {
	if t == nil {
		return reconcile
	}
	return func(ctx context.Context, id string) error {
		w := &worked{}
		err := reconcile(trace.ContextWithSpan(context.WithValue(ctx, workedKey{}, w), worksIn{work: w}), id)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.span == nil {
			return err
		}
		if err != nil || w.run.Status == agentrun.RunFailed || w.run.Status == agentrun.RunParked {
			w.span.SetStatus(codes.Error, "") // the reason may hold what a tool or a model said
		}
		w.span.SetAttributes(
			attribute.String("countersign.run.status", string(w.run.Status)),
			attribute.Int("gen_ai.usage.input_tokens", w.run.Usage.InputTokens-w.used.InputTokens), attribute.Int("gen_ai.usage.output_tokens", w.run.Usage.OutputTokens-w.used.OutputTokens),
		)
		w.span.End()
		return err
	}
}

// Runs makes spans of what is committed to the store of a runner.
func (t *Traces) Runs(s agentrun.Store) agentrun.Store {
	if t == nil {
		return s
	}
	return tracedRuns{s, t}
}

type tracedRuns struct {
	agentrun.Store

	t *Traces
}

// Commit implements [agentrun.Store].
func (s tracedRuns) Commit(ctx context.Context, c agentrun.Commit) error {
	if err := s.Store.Commit(ctx, c); err != nil {
		return err
	}
	w, _ := ctx.Value(workedKey{}).(*worked)
	for _, r := range c.Runs {
		if w != nil && r.Status == agentrun.RunRunning && r.Owner != "" {
			s.t.claimed(ctx, w, r)
		}
		if w != nil {
			w.committed(r)
		}
		if r.Version == 0 && w == nil && r.Executor == "" && !r.CallsOnly { // a message; a remote run has no span
			trace.SpanFromContext(ctx).AddLink(link(spanOfRun(r.ID), "run"))
		}
	}
	ctx = within(ctx)
	for _, e := range c.Entries {
		if e.State == agentrun.EntryFinished {
			s.t.executed(ctx, e)
		}
	}
	if o := c.Opens; o != nil {
		trace.SpanFromContext(ctx).AddLink(link(spanOfWait(o.Batch.ID), "wait"))
	}
	if m := c.Moves; m != nil {
		s.t.moved(ctx, m.Batch, m.Events)
	}
	return nil
}

// claimed begins the span of the work on a run.
func (t *Traces) claimed(ctx context.Context, w *worked, r agentrun.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.span != nil {
		return
	}
	o := []trace.SpanStartOption{trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", r.Agent),
		attribute.String("gen_ai.conversation.id", string(r.Thread)), attribute.String("countersign.run.id", string(r.ID)),
	)}
	if r.Batch != "" {
		o = append(o, trace.WithLinks(link(spanOfWait(r.Batch), "wait")))
		if !r.CallsOnly { // else that is a remote run
			o = append(o, trace.WithLinks(link(spanOfRun(r.Parent), "deferred run")))
		}
	}
	name := "invoke_agent " + r.Agent
	w.used = r.Usage
	if r.Steps == 0 {
		_, w.span = t.begin(ctx, spanOfRun(r.ID), name, o...)
		return
	}
	// Another worker began it. Whether its span is kept is asked of the sampler again:
	// the span for that never ends, so it is not sent.
	_, first := t.begin(ctx, spanOfRun(r.ID), name, o...)
	parent := spanOfRun(r.ID).WithTraceFlags(first.SpanContext().TraceFlags())
	_, w.span = t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, parent), name, o...)
}

func (w *worked) committed(r agentrun.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.run.ID == "" || w.run.ID == r.ID {
		w.run = r
	}
}

// executed is the span of a call, as the journal has it.
func (t *Traces) executed(ctx context.Context, e agentrun.Entry) {
	_, span := t.tracer.Start(ctx, "execute_tool "+e.Tool, trace.WithTimestamp(e.At.Add(-e.Finish.Took)), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", e.Tool),
		attribute.String("gen_ai.tool.type", "function"), attribute.String("gen_ai.tool.call.id", string(e.Call)),
		attribute.String("countersign.outcome", outcomeOf(e.Finish)),
	))
	if outcome := outcomeOf(e.Finish); outcome == "unsure" || outcome == string(agentrun.OutcomeFailed) {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String("error.type", outcome))
	}
	span.End(trace.WithTimestamp(e.At))
}

// Model makes a span of each request to a model.
func (t *Traces) Model(name string, model agentrun.Model) agentrun.Model {
	if t == nil {
		return model
	}
	return tracedModel{model, t, name}
}

type tracedModel struct {
	agentrun.Model

	t    *Traces
	name string
}

// Request implements [agentrun.Model].
func (m tracedModel) Request(ctx context.Context, r agentrun.ModelRequest) (agentrun.Response, error) {
	ctx, span := m.t.tracer.Start(within(ctx), "chat "+m.name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", "openai"), attribute.String("gen_ai.request.model", m.name),
	))
	defer span.End()
	response, err := m.Model.Request(ctx, r)
	if err != nil {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String("error.type", modelOutcome(err)))
		return response, err
	}
	span.SetAttributes(
		attribute.Int("gen_ai.usage.input_tokens", response.Usage.InputTokens), attribute.Int("gen_ai.usage.output_tokens", response.Usage.OutputTokens),
		attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(response.FinishReason)}),
	)
	return response, nil
}

// Batches makes spans of what is committed to the store of a desk.
func (t *Traces) Batches(s approvals.Store) approvals.Store {
	if t == nil {
		return s
	}
	return tracedBatches{s, t}
}

type tracedBatches struct {
	approvals.Store

	t *Traces
}

// CommitBatch implements [approvals.Store].
func (s tracedBatches) CommitBatch(ctx context.Context, c approvals.BatchCommit) error {
	err := s.Store.CommitBatch(ctx, c)
	if err == nil {
		s.t.moved(ctx, c.Batch, c.Events)
	}
	return err
}
