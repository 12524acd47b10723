package telemetry

import (
	"context"
	"errors"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// redisMetrics are about commands of Redis.
type redisMetrics struct {
	took   *prometheus.HistogramVec
	failed *prometheus.CounterVec
}

func newRedisMetrics() redisMetrics {
	return redisMetrics{
		took:   histogram("redis_command_duration_seconds", "How long commands of Redis took, with the wait for a connection. A pipeline is one command.", fast, "command"),
		failed: counter("redis_errors_total", "Commands of Redis that failed.", "command"),
	}
}

func (x redisMetrics) all() []prometheus.Collector { return []prometheus.Collector{x.took, x.failed} }

// Redis returns the hook that measures a client, or nil.
func (m *Metrics) Redis() redis.Hook {
	if m == nil {
		return nil
	}
	return redisHook{m}
}

type redisHook struct{ m *Metrics }

// DialHook measures connecting.
func (h redisHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		began := h.m.now()
		conn, err := next(ctx, network, addr)
		h.note("dial", seconds(h.m.now().Sub(began)), err)
		return conn, err
	}
}

// ProcessHook measures one command. Their names are those that the program uses.
func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		began := h.m.now()
		err := next(ctx, cmd)
		h.note(cmd.Name(), seconds(h.m.now().Sub(began)), err)
		return err
	}
}

// ProcessPipelineHook measures a pipeline.
func (h redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		began := h.m.now()
		err := next(ctx, cmds)
		h.note("pipeline", seconds(h.m.now().Sub(began)), err)
		return err
	}
}

func (h redisHook) note(command string, took float64, err error) {
	h.m.redis.took.WithLabelValues(command).Observe(took)
	if err != nil && !errors.Is(err, redis.Nil) && !errors.Is(err, context.Canceled) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		h.m.redis.failed.WithLabelValues(command).Inc()
	}
}
