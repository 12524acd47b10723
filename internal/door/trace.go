package door

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A Trace is the W3C trace context in which a caller makes a call over MCP. The zero
// Trace is none.
type Trace struct{ caller trace.SpanContext }

// TraceOf returns the trace context in the _meta of a call, where MCP has it (SEP-414),
// or else that in the headers of its request. One that is not valid is none. A span that
// ctx has is not looked at.
func TraceOf(ctx context.Context, meta map[string]any, headers http.Header) Trace {
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	named := propagation.MapCarrier{}
	for _, name := range (propagation.TraceContext{}).Fields() {
		if value, ok := meta[name].(string); ok {
			named[name] = value
		}
	}
	for _, carrier := range []propagation.TextMapCarrier{named, propagation.HeaderCarrier(headers)} {
		c := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, carrier))
		if c.IsValid() {
			return Trace{c}
		}
	}
	return Trace{}
}

// Parent is the traceparent of the caller; empty if there is none.
func (t Trace) Parent() string {
	if !t.caller.IsValid() {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-%s", t.caller.TraceID(), t.caller.SpanID(), t.caller.TraceFlags())
}

// Within returns the context in which the call is executed: what is sent to a server in
// it continues the caller's trace. If the span of the request belongs to another trace,
// because only the _meta names the caller's, that span is linked to the caller's.
func (t Trace) Within(ctx context.Context) context.Context {
	span := trace.SpanFromContext(ctx)
	if !t.caller.IsValid() || span.SpanContext().TraceID() == t.caller.TraceID() {
		return ctx
	}
	span.AddLink(trace.Link{SpanContext: t.caller, Attributes: []attribute.KeyValue{attribute.String("countersign.link", "caller")}})
	return trace.ContextWithRemoteSpanContext(ctx, t.caller)
}
