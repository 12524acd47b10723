package main

import (
	"context"
	"fmt"
	"log/slog"
)

// redisLog passes on what the Redis client writes: lost connections, mostly.
type redisLog struct{ log *slog.Logger }

func (r redisLog) Printf(ctx context.Context, format string, v ...any) {
	r.log.DebugContext(ctx, "redis client", slog.String("said", fmt.Sprintf(format, v...)))
}
