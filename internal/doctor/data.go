package doctor

import (
	"context"
	"log/slog"
	"os"

	"github.com/countersign/countersign/internal/redisserver"
)

// checkData looks at the folder of a private Redis, and at what would run there.
func (c *checker) checkData(ctx context.Context) {
	if c.Data == "" {
		return
	}
	if binary, err := redisserver.Find(ctx); err != nil {
		c.problem("", "--data: %s", err)
	} else {
		c.fine("--data: %s, version %s", binary.Path, binary.Version)
	}
	switch open, err := redisserver.Check(c.Data); {
	case err != nil:
		c.problem("", "--data: %s", err)
	case open:
		c.fine("--data: a bot works on %s", c.Data)
	default:
		c.fine("--data: nobody works on %s, and a bot can", c.Data)
	}
}

// reachRedis has the Redis of a folder answer until the function is called, and
// reports whether there is a Redis to ask: a bot makes the one of a new folder.
func (c *checker) reachRedis(ctx context.Context) (end func() error, there bool) {
	if c.Data == "" {
		return func() error { return nil }, true
	}
	if _, err := os.Stat(c.Data); err != nil {
		return nil, false
	}
	end, err := redisserver.Reach(ctx, c.Data, slog.New(slog.DiscardHandler))
	if err != nil {
		c.problem("", "--data: %s", err)
	}
	return end, err == nil
}
