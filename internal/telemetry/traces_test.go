package telemetry_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/telemetry"
)

// recorded are traces whose spans can be looked at once they have ended.
func recorded(t *testing.T) (*telemetry.Traces, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	traces, err := telemetry.NewTraces(t.Context(), "v1", spans)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, traces.Close(context.WithoutCancel(t.Context()))) })
	return traces, spans
}

// A remote agent's own trace continues here; Slack and the public name no parent.
func TestOnlyRemoteAgentsContinueTheirTraces(t *testing.T) {
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, continues := range []bool{true, false} {
		traces, spans := recorded(t)
		mux := http.NewServeMux()
		mux.HandleFunc("POST /v1/approvals", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		h := traces.HTTP(continues, mux)
		for _, path := range []string{"/v1/approvals", "/healthz"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
			r.Header.Set("traceparent", caller)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		ended := spans.Ended()
		require.Len(t, ended, 1, "probes make no spans")
		require.Equal(t, "POST /v1/approvals", ended[0].Name())
		require.Equal(t, codes.Error, ended[0].Status().Code)
		require.Contains(t, ended[0].Attributes(), attribute.String("error.type", "503"))
		require.Equal(t, continues, ended[0].SpanContext().TraceID().String() == "0af7651916cd43dd8448eb211c80319c")
	}
}

// A caller names neither a span nor an attribute with the method of its request.
func TestAMethodThatIsNotKnownNamesNoSpan(t *testing.T) {
	traces, spans := recorded(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/approvals", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) })
	r := httptest.NewRequestWithContext(t.Context(), "HUNTER2", "/v1/approvals", nil)
	traces.HTTP(true, mux).ServeHTTP(httptest.NewRecorder(), r)
	require.Len(t, spans.Ended(), 1)
	require.Equal(t, "HTTP /v1/approvals", spans.Ended()[0].Name())
	require.Contains(t, spans.Ended()[0].Attributes(), attribute.String("http.request.method", "_OTHER"))
}

// works has a runner claim a run and commit what f says.
func works(t *testing.T, traces *telemetry.Traces, run agentrun.Run, f func(ctx context.Context, s agentrun.Store) error) error {
	t.Helper()
	s := traces.Runs(runner{})
	return traces.Work(func(ctx context.Context, _ string) error {
		run.Status, run.Owner = agentrun.RunRunning, "fence"
		require.NoError(t, s.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{run}}))
		return f(ctx, s)
	})(t.Context(), string(run.ID))
}

// Another process that takes a run over continues its trace, under the span of the
// first one.
func TestARunThatIsTakenOverStaysOneTrace(t *testing.T) {
	traces, spans := recorded(t)
	run := agentrun.Run{ID: "run-01-a", Agent: "ops"}
	require.Error(t, works(t, traces, run, func(context.Context, agentrun.Store) error { return errors.New("killed") }))
	run.Steps = 2
	require.NoError(t, works(t, traces, run, func(ctx context.Context, s agentrun.Store) error {
		at := time.Now()
		return s.Commit(ctx, agentrun.Commit{Entries: []agentrun.Entry{{Tool: "pay", Call: "c1", State: agentrun.EntryFinished, At: at, Finish: agentrun.Finish{Took: time.Second}}}})
	}))
	ended := spans.Ended()
	require.Len(t, ended, 3)
	first, effect, second := ended[0], ended[1], ended[2]
	require.Equal(t, first.SpanContext().TraceID(), second.SpanContext().TraceID())
	require.Equal(t, first.SpanContext().SpanID(), second.Parent().SpanID())
	require.Equal(t, second.SpanContext().SpanID(), effect.Parent().SpanID())
	require.Equal(t, time.Second, effect.EndTime().Sub(effect.StartTime()), "as the journal has it")
	require.Equal(t, codes.Error, first.Status().Code)
	require.Equal(t, "https://opentelemetry.io/schemas/1.41.0", effect.InstrumentationScope().SchemaURL)
	require.Empty(t, first.Status().Description, "an error may quote a tool")
}

// Another process that takes a run over keeps its span only if the first one was kept.
func TestARunThatIsTakenOverIsSampledAsItsBeginning(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
	traces, spans := recorded(t)
	kept := 0
	for i := range 64 {
		run := agentrun.Run{ID: approvals.RunID("run-01-" + strconv.Itoa(i)), Agent: "ops"}
		before := len(spans.Ended())
		for _, run.Steps = range []int{0, 2} {
			require.NoError(t, works(t, traces, run, func(context.Context, agentrun.Store) error { return nil }))
		}
		n := len(spans.Ended()) - before
		require.Contains(t, []int{0, 2}, n, "both or none")
		kept += n / 2
	}
	require.NotZero(t, kept)
	require.NotEqual(t, 64, kept)
}

// The spans of a run, and of the runs that resume it, add up to what it used.
func TestASpanHasTheTokensOfItsOwnWork(t *testing.T) {
	traces, spans := recorded(t)
	run := agentrun.Run{ID: "run-01-a", Agent: "ops", Usage: agentrun.Usage{InputTokens: 100, OutputTokens: 7}}
	require.NoError(t, works(t, traces, run, func(ctx context.Context, s agentrun.Store) error {
		run.Status, run.Usage = agentrun.RunCompleted, agentrun.Usage{InputTokens: 300, OutputTokens: 10}
		return s.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{run}})
	}))
	require.Len(t, spans.Ended(), 1)
	require.Contains(t, spans.Ended()[0].Attributes(), attribute.Int("gen_ai.usage.input_tokens", 200))
	require.Contains(t, spans.Ended()[0].Attributes(), attribute.Int("gen_ai.usage.output_tokens", 3))
}

// Whatever a tool sends while it executes a call continues the trace of the run.
func TestAToolContinuesTheTraceOfItsRun(t *testing.T) {
	traces, spans := recorded(t)
	sent := propagation.MapCarrier{}
	require.NoError(t, works(t, traces, agentrun.Run{ID: "run-01-a", Agent: "ops"}, func(ctx context.Context, _ agentrun.Store) error {
		propagation.TraceContext{}.Inject(ctx, sent)
		return nil
	}))
	span := spans.Ended()[0].SpanContext()
	require.Equal(t, "00-"+span.TraceID().String()+"-"+span.SpanID().String()+"-01", sent["traceparent"])

	require.NoError(t, traces.Work(func(ctx context.Context, _ string) error {
		require.False(t, trace.SpanContextFromContext(ctx).IsValid(), "no run is claimed")
		return nil
	})(t.Context(), "run-01-b"))
}

// A remote run has no spans, so nothing is linked to it: its request is linked to the
// wait, and so is a worker that executes its calls after the gateway has stopped.
func TestNoLinkLeadsToARemoteRun(t *testing.T) {
	traces, spans := recorded(t)
	store, at := traces.Runs(runner{}), time.Now()
	batch := approvals.Batch{ID: "batch-01-a", Run: "run-01-a", Executor: "intake", OpenedAt: at}
	var err error
	request := traces.HTTP(true, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		err = store.Commit(r.Context(), agentrun.Commit{
			Runs:  []agentrun.Run{{ID: batch.Run, Executor: "intake"}, {ID: "run-01-b", CallsOnly: true}},
			Opens: &agentrun.OpenBatch{Batch: batch},
		})
	}))
	request.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/approvals", nil))
	require.NoError(t, err)
	require.NoError(t, store.Commit(t.Context(), agentrun.Commit{Moves: &agentrun.BatchMove{Batch: batch, Events: []approvals.Event{approvals.Resolved{At: at}}}}))
	executes := agentrun.Run{ID: "run-01-b", CallsOnly: true, Parent: batch.Run, Batch: batch.ID}
	require.NoError(t, works(t, traces, executes, func(context.Context, agentrun.Store) error { return nil }))

	ended := spans.Ended()
	require.Len(t, ended, 3)
	asked, wait, executed := ended[0], ended[1], ended[2]
	require.Equal(t, "countersign.wait", wait.Name())
	require.Empty(t, wait.Links())
	for _, s := range []sdktrace.ReadOnlySpan{asked, executed} {
		require.Len(t, s.Links(), 1, s.Name())
		require.Equal(t, wait.SpanContext().SpanID(), s.Links()[0].SpanContext.SpanID(), s.Name())
	}
}

// A run that someone else has makes no span, and neither does a wait that was not
// stored.
func TestWhatDidNotHappenHasNoSpan(t *testing.T) {
	traces, spans := recorded(t)
	require.NoError(t, traces.Work(func(context.Context, string) error { return nil })(t.Context(), "run-01-a"))
	c := approvals.BatchCommit{Batch: approvals.Batch{ID: "batch-01-a", Run: "run-01-a"}, Events: []approvals.Event{approvals.Resolved{At: time.Now()}}}
	require.Error(t, traces.Batches(desk{err: approvals.ErrConflict}).CommitBatch(t.Context(), c))
	require.Empty(t, spans.Ended())
	require.NoError(t, traces.Batches(desk{}).CommitBatch(t.Context(), c))
	require.Len(t, spans.Ended(), 1)

	var none *telemetry.Traces
	require.Equal(t, desk{}, none.Batches(desk{}))
	require.Equal(t, runner{}, none.Runs(runner{}))
	require.NoError(t, none.Close(t.Context()))
}
