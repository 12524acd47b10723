package doctor

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/state"
)

// checkRedis looks at each server that takes writes, as the start does: its
// version, and whether what it takes outlives it.
func (c *checker) checkRedis(ctx context.Context) {
	to, err := c.config.Redis.Target(c.env)
	if err != nil {
		return // said before
	}
	end, there := c.reachRedis(ctx)
	if !there {
		return
	}
	defer func() { _ = end() }() // nothing was written
	client, err := state.Connect(to)
	if err != nil {
		return // said before
	}
	defer func() { _ = client.Close() }() // nothing was written
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	servers, err := state.Servers(ctx, client)
	if err != nil {
		c.problem(redisAdvice(err), "Redis: does not answer: %s", err)
		return
	}
	c.all = append(c.all, JudgeRedis(c.config.Redis, servers)...)
	switch unknown, err := state.Permissions(ctx, client, c.config.Redis.Prefix); {
	case unknown:
		c.unknown("permit MULTI and DISCARD to its user for this check", "Redis: whether it permits every command to the bot")
	case redis.HasErrorPrefix(err, "unknown command"):
		c.problem("take rename-command out of the configuration of Redis", "Redis: %s", strings.TrimPrefix(err.Error(), "redis "))
	case redis.HasErrorPrefix(err, "NOPERM"):
		c.problem("give this user of Redis what docs/settings.md says at redis.user (ACL SETUSER)", "Redis: %s", strings.TrimPrefix(err.Error(), "redis "))
	case err != nil:
		c.problem(redisAdvice(err), "Redis: does not answer: %s", err)
	default:
		c.fine("Redis: permits every command of a change")
	}
}

func redisAdvice(err error) string {
	for _, refusal := range []string{"NOAUTH", "WRONGPASS", "NOPERM"} {
		if redis.HasErrorPrefix(err, refusal) {
			return "correct the user and password in REDIS_URL"
		}
	}
	return "check REDIS_URL, and that this machine can reach it"
}
