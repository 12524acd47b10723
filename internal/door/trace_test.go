package door_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign/countersign/internal/door"
)

const (
	inMeta    = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	inHeaders = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

func headers(traceparent string) http.Header {
	h := http.Header{}
	h.Set("Traceparent", traceparent)
	return h
}

func TestTheTraceOfACallIsThatOfItsMeta(t *testing.T) {
	for name, c := range map[string]struct {
		meta    map[string]any
		headers http.Header
		want    string
	}{
		"nothing":              {nil, nil, ""},
		"in _meta":             {map[string]any{"traceparent": inMeta}, nil, inMeta},
		"in the headers":       {nil, headers(inHeaders), inHeaders},
		"in both":              {map[string]any{"traceparent": inMeta}, headers(inHeaders), inMeta},
		"no text":              {map[string]any{"traceparent": 7}, headers(inHeaders), inHeaders},
		"another form":         {map[string]any{"traceparent": "00-XYZ"}, headers(inHeaders), inHeaders},
		"zeros":                {map[string]any{"traceparent": "00-00000000000000000000000000000000-b7ad6b7169203331-01"}, nil, ""},
		"an invalid version":   {map[string]any{"traceparent": "ff" + inMeta[2:]}, nil, ""},
		"a header of no trace": {nil, headers("x"), ""},
		"a state alone":        {map[string]any{"tracestate": "a=b"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, door.TraceOf(t.Context(), c.meta, c.headers).Parent()) })
	}
}

// sent is what would be sent to a server in the context.
func sent(ctx context.Context) map[string]string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier
}

// Without spans of our own, the caller's trace is passed on as it came.
func TestTheTraceOfACallIsContinuedWhereItIsExecuted(t *testing.T) {
	ctx := door.TraceOf(t.Context(), map[string]any{"traceparent": inMeta, "tracestate": "a=b"}, nil).Within(t.Context())
	require.Equal(t, map[string]string{"traceparent": inMeta, "tracestate": "a=b"}, sent(ctx))
	require.Empty(t, sent(door.TraceOf(t.Context(), nil, nil).Within(t.Context())))
}

// The span of a request is a child of the trace in its headers. It stays the parent of
// what is executed, unless the _meta names another trace, to which it is linked then.
func TestTheSpanOfARequestStaysInTheTrace(t *testing.T) {
	ended := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(ended)).Tracer("test")
	h := headers(inMeta)
	ctx, span := tracer.Start(propagation.TraceContext{}.Extract(t.Context(), propagation.HeaderCarrier(h)), "request")
	for _, meta := range []map[string]any{nil, {"traceparent": inMeta}} {
		require.Equal(t, span.SpanContext(), trace.SpanContextFromContext(door.TraceOf(ctx, meta, h).Within(ctx)))
	}
	require.Empty(t, door.TraceOf(ctx, nil, nil).Parent(), "the span is not the caller's")
	require.Equal(t, inHeaders, sent(door.TraceOf(ctx, map[string]any{"traceparent": inHeaders}, h).Within(ctx))["traceparent"])
	span.End()
	links := ended.Ended()[0].Links()
	require.Len(t, links, 1)
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", links[0].SpanContext.TraceID().String())
}
