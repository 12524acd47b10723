package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// newLogger logs at the level, one line a record.
func newLogger(w io.Writer, level string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l}))
}

// redisLog passes on what the Redis client writes: lost connections, mostly.
type redisLog struct{ log *slog.Logger }

func (r redisLog) Printf(ctx context.Context, format string, v ...any) {
	r.log.DebugContext(ctx, "redis client", slog.String("said", fmt.Sprintf(format, v...)))
}
