package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/go-logr/logr"
)

// redisLog passes on what the Redis client writes: lost connections, mostly.
type redisLog struct{ log *slog.Logger }

func (r redisLog) Printf(ctx context.Context, format string, v ...any) {
	r.log.DebugContext(ctx, "redis client", slog.String("said", fmt.Sprintf(format, v...)))
}

// otelLog passes on which of its variables OpenTelemetry cannot use, without their
// values: headers hold credentials, and so do addresses.
type otelLog struct{ log *slog.Logger }

// Init implements [logr.LogSink].
func (otelLog) Init(logr.RuntimeInfo) {}

// Enabled implements [logr.LogSink]. Only errors are logged.
func (otelLog) Enabled(int) bool { return false }

// Info implements [logr.LogSink].
func (otelLog) Info(int, string, ...any) {}

// Error implements [logr.LogSink].
func (o otelLog) Error(err error, what string, _ ...any) {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	o.log.Warn("traces", slog.String("what", what), slog.Any("err", err))
}

// WithValues implements [logr.LogSink].
func (o otelLog) WithValues(...any) logr.LogSink { return o }

// WithName implements [logr.LogSink].
func (o otelLog) WithName(string) logr.LogSink { return o }
