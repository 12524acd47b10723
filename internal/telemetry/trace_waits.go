package telemetry

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign/countersign/internal/approvals"
)

// moved makes the trace of a wait once all of it is decided, and links whatever
// moved the batch to it: a click, a deadline, a message.
func (t *Traces) moved(ctx context.Context, b approvals.Batch, events []approvals.Event) {
	trace.SpanFromContext(ctx).AddLink(link(spanOfWait(b.ID), "wait"))
	for _, e := range events {
		if resolved, ok := e.(approvals.Resolved); ok {
			t.waited(context.WithoutCancel(ctx), b, resolved.At)
		}
	}
}

// waited is the trace of a wait, with a span for each call.
func (t *Traces) waited(ctx context.Context, b approvals.Batch, until time.Time) {
	var links []trace.Link
	if b.Executor == "" { // a remote run has no span
		links = append(links, link(spanOfRun(b.Run), "deferred run"))
	}
	ctx, span := t.begin(ctx, spanOfWait(b.ID), "countersign.wait", trace.WithTimestamp(b.OpenedAt),
		trace.WithLinks(links...), trace.WithAttributes(
			attribute.String("countersign.approval.batch", string(b.ID)), attribute.String("countersign.run.id", string(b.Run)),
			attribute.String("gen_ai.agent.name", b.Agent), attribute.String("gen_ai.conversation.id", b.Thread),
			attribute.Float64("countersign.approval.wait", seconds(until.Sub(b.OpenedAt))),
		))
	for _, a := range b.Approvals {
		var quorums []string
		for _, q := range a.Requirement.Quorums {
			quorums = append(quorums, q.Name)
		}
		rule, _, _ := strings.Cut(a.Rule, "@")
		_, call := t.tracer.Start(ctx, "countersign.approval "+a.Call.Name, trace.WithTimestamp(b.OpenedAt), trace.WithAttributes(
			attribute.String("countersign.approval.id", string(b.ID)+"/"+string(a.Call.ID)),
			attribute.String("countersign.approval.outcome", string(a.Status)), attribute.String("countersign.approval.rule", rule),
			attribute.StringSlice("countersign.approval.quorum", quorums),
			attribute.Float64("countersign.approval.wait", seconds(a.Ending.At.Sub(b.OpenedAt))),
			attribute.String("gen_ai.tool.name", a.Call.Name), attribute.String("gen_ai.tool.call.id", string(a.Call.ID)),
			attribute.String("gen_ai.conversation.id", b.Thread),
		))
		call.End(trace.WithTimestamp(a.Ending.At))
	}
	span.End(trace.WithTimestamp(until))
}

// methods are those of requests that spans are named for.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

// HTTP makes a span of each request, but for probes. With caller, the span is a
// child of the one that the request names in traceparent.
func (t *Traces) HTTP(caller bool, h http.Handler) http.Handler {
	if t == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			h.ServeHTTP(w, r)
			return
		}
		ctx := r.Context()
		if caller {
			ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
		}
		name, method := r.Method, r.Method
		if !slices.Contains(methods, method) {
			name, method = "HTTP", "_OTHER" // else the caller would name the span
		}
		ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("http.request.method", method)))
		defer span.End()
		a, traced := &answered{ResponseWriter: w, code: http.StatusOK}, r.WithContext(ctx)
		h.ServeHTTP(a, traced)
		r.Pattern = traced.Pattern // for whoever wraps this handler
		if route := traced.Pattern; route != "" {
			_, path, found := strings.Cut(route, " ")
			if !found {
				path = route
			}
			span.SetName(name + " " + path)
			span.SetAttributes(attribute.String("http.route", path))
		}
		span.SetAttributes(attribute.Int("http.response.status_code", a.code))
		if a.code >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
			span.SetAttributes(attribute.String("error.type", strconv.Itoa(a.code)))
		}
	})
}
