package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/telemetry"
)

// newTraces returns the traces of this process, or nil if the variables OTEL_* name
// no collector. The exporter reads the other ones of them by itself.
func newTraces(ctx context.Context, e config.Environment) (*telemetry.Traces, error) {
	named := func(name string) string { s, _ := e.Named(name); return s.Open() }
	variable := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	to := named(variable)
	if base := named("OTEL_EXPORTER_OTLP_ENDPOINT"); to == "" && base != "" {
		variable, to = "OTEL_EXPORTER_OTLP_ENDPOINT", strings.TrimSuffix(base, "/")+"/v1/traces"
	}
	if to == "" || strings.EqualFold(named("OTEL_SDK_DISABLED"), "true") || named("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := named(name); p != "" && p != "http/protobuf" {
			return nil, fmt.Errorf("%s: must be http/protobuf, which every collector takes, but is %q", name, p)
		}
	}
	if u, err := url.Parse(to); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: must be a URL that begins with http:// or https://, such as http://localhost:4318", variable)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to))
	if err != nil {
		return nil, fmt.Errorf("make the exporter of traces: %w", err)
	}
	return telemetry.NewTraces(ctx, readBuild().version, sdktrace.NewBatchSpanProcessor(exporter))
}

// model has the requests to a model measured and traced.
func (b *bot) model(name string, m agentrun.Model) agentrun.Model {
	return b.traces.Model(name, b.metrics.Model(name, m))
}
