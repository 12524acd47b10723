package telemetry

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign/countersign/internal/agentrun"
)

// modelMetrics are about requests to models.
type modelMetrics struct {
	requests, tokens *prometheus.CounterVec
	took             *prometheus.HistogramVec

	names *bounded
}

func newModelMetrics() modelMetrics {
	return modelMetrics{
		requests: counter("model_requests_total", "Requests to models, by model and outcome. One that is sent again after a failure counts once, as it ended.", "model", "outcome"),
		tokens:   counter("model_tokens_total", "Tokens that models read and wrote.", "model", "direction"),
		took:     histogram("model_request_duration_seconds", "How long requests to models took, from the first attempt to the end of the last.", work, "model"),
		names:    &bounded{},
	}
}

func (x modelMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{x.requests, x.tokens, x.took}
}

// Model measures a model by the name that the configuration gives it.
func (m *Metrics) Model(name string, model agentrun.Model) agentrun.Model {
	if m == nil {
		return model
	}
	return measuredModel{model, m, m.model.names.label(name)}
}

type measuredModel struct {
	agentrun.Model

	m    *Metrics
	name string
}

// Request implements [agentrun.Model].
func (x measuredModel) Request(ctx context.Context, r agentrun.ModelRequest) (agentrun.Response, error) {
	began := x.m.now()
	response, err := x.Model.Request(ctx, r)
	x.m.model.took.WithLabelValues(x.name).Observe(seconds(x.m.now().Sub(began)))
	x.m.model.requests.WithLabelValues(x.name, modelOutcome(err)).Inc()
	x.m.model.tokens.WithLabelValues(x.name, "input").Add(float64(response.Usage.InputTokens))
	x.m.model.tokens.WithLabelValues(x.name, "output").Add(float64(response.Usage.OutputTokens))
	return response, err
}

// modelOutcome names how a request to a model ended.
func modelOutcome(err error) string {
	if known, ok := errors.AsType[*agentrun.ModelError](err); ok {
		return string(known.Code)
	}
	if err != nil {
		return "error"
	}
	return "ok"
}
