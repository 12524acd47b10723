package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/telemetry"
)

// newTraces returns the traces of this process, or nil if the variables OTEL_* name
// no collector.
func newTraces(ctx context.Context, e config.Environment) (*telemetry.Traces, error) {
	to, err := e.TracesTo()
	if err != nil || to == "" {
		return nil, err
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
