package telemetry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0" // the last with gen_ai.*
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign/countersign/internal/approvals"
)

// Traces are the spans of one process. The nil Traces makes none: its methods return
// what they are given.
//
// An approval takes days and crosses processes, so it is no single trace: a trace
// that stays open for days is cut off by whatever keeps it. Each run is a trace of
// its own, and so is each wait. They are linked, in both directions, and the ids of
// their first spans are derived from the ids of the run and of the batch: a process
// that resumes a run links to the wait without having seen it.
//
//	invoke_agent ops          trace of the run
//	  chat gpt-5-mini
//	  execute_tool read_file
//	countersign.wait          trace of the batch, linked with the runs before and after
//	  countersign.approval delete_file
//	invoke_agent ops          trace of the run that resumes
//	  execute_tool delete_file
//	  chat gpt-5-mini
type Traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// NewTraces returns traces that go to the exporter. Sampling, batching and the
// attributes of the process follow the variables OTEL_* of the environment.
func NewTraces(ctx context.Context, version string, to sdktrace.SpanProcessor) (*Traces, error) {
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", namespace), attribute.String("service.version", version)),
		resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithHost(),
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe this process for traces: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(to), sdktrace.WithResource(res), sdktrace.WithIDGenerator(derivedIDs{}))
	tracer := p.Tracer("github.com/countersign/countersign", trace.WithInstrumentationVersion(version), trace.WithSchemaURL(semconv.SchemaURL))
	return &Traces{provider: p, tracer: tracer}, nil
}

// Close sends what has ended and ends the traces.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// spanOf is the first span of the trace that belongs to an id.
func spanOf(kind, id string) trace.SpanContext {
	sum := sha256.Sum256([]byte("countersign.trace.v1\x00" + kind + "\x00" + id))
	c := trace.SpanContextConfig{TraceFlags: trace.FlagsSampled, Remote: true}
	copy(c.TraceID[:], sum[:16])
	copy(c.SpanID[:], sum[16:24])
	return trace.NewSpanContext(c)
}

func spanOfRun(id approvals.RunID) trace.SpanContext    { return spanOf("run", string(id)) }
func spanOfWait(id approvals.BatchID) trace.SpanContext { return spanOf("wait", string(id)) }

// link links a span to another one, which may be of another process.
func link(to trace.SpanContext, what string) trace.Link {
	return trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{attribute.String("countersign.link", what)}}
}

// derivedIDs gives a span that begins a trace the ids that its context asks for, and
// others random ones.
type derivedIDs struct{}

type derivedKey struct{}

// NewIDs implements [sdktrace.IDGenerator].
func (derivedIDs) NewIDs(ctx context.Context) (t trace.TraceID, s trace.SpanID) {
	if derived, ok := ctx.Value(derivedKey{}).(trace.SpanContext); ok {
		return derived.TraceID(), derived.SpanID()
	}
	for !t.IsValid() {
		fill(t[:])
	}
	return t, derivedIDs{}.NewSpanID(ctx, t)
}

// NewSpanID implements [sdktrace.IDGenerator].
func (derivedIDs) NewSpanID(context.Context, trace.TraceID) (s trace.SpanID) {
	for !s.IsValid() {
		fill(s[:])
	}
	return s
}

func fill(b []byte) {
	for i := range b {
		b[i] = byte(rand.Uint32()) //nolint:gosec // an id of a span is no secret
	}
}

// begin begins a trace with these ids.
func (t *Traces) begin(ctx context.Context, as trace.SpanContext, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	_, span := t.tracer.Start(context.WithValue(ctx, derivedKey{}, as), name, append(o, trace.WithNewRoot())...)
	return trace.ContextWithSpan(ctx, span), span
}
