package doctor

import (
	"context"
	"crypto/tls"
	"errors"
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
		c.noRedis(client, err)
		return
	}
	c.all = append(c.all, JudgeRedis(c.config.Redis, servers)...)
	unknown, err := state.Permissions(ctx, client, c.config.Redis.Prefix)
	switch {
	case unknown:
		c.unknown("permit MULTI and DISCARD to its user for this check", "Redis: whether it permits every command to the bot")
	case redis.HasErrorPrefix(err, "unknown command"):
		c.problem("take rename-command out of the configuration of Redis", "Redis: %s", strings.TrimPrefix(err.Error(), "redis "))
	case redis.HasErrorPrefix(err, "NOPERM"):
		c.problem(state.Rights(client, c.config.Redis.Prefix), "Redis: %s", strings.TrimPrefix(err.Error(), "redis "))
	case redis.HasErrorPrefix(err, "READONLY"):
		// a replica, which was said before
	case err != nil:
		c.noRedis(client, err)
	default:
		c.fine("Redis: permits every command of a change")
	}
	if err == nil {
		c.checkLayout(ctx, client)
	}
}

// checkLayout reports a store in which this version does not work, or in which it costs more
// of Redis.
func (c *checker) checkLayout(ctx context.Context, client redis.UniversalClient) {
	switch older, err := state.CheckLayout(ctx, client, c.config.Redis.Prefix); {
	case errors.Is(err, state.ErrConverting):
		c.problem("run bot admin convert, while no replica runs", "Redis: the layout of the store is being changed, or that was interrupted, and no replica starts")
	case errors.Is(err, state.ErrLayout):
		c.problem("use the version that made it, or a newer one", "Redis: %s", err)
	case err != nil:
		c.noRedis(client, err)
	case older:
		c.fine("Redis: has a store of an older version, which bot admin convert would make faster")
	}
}

// noRedis reports why Redis cannot be asked.
func (c *checker) noRedis(client redis.UniversalClient, err error) {
	where, login := "REDIS_URL", "the user and password in REDIS_URL"
	if len(c.config.Redis.Addresses) > 0 {
		where, login = "redis.addresses", "redis.user and REDIS_PASSWORD"
	}
	if _, refused := errors.AsType[*tls.CertificateVerificationError](err); refused {
		c.problem("correct redis.tls.ca_file or redis.tls.server_name, or the certificate of Redis", "Redis: shows a certificate that is not accepted: %s", err)
		return
	}
	if state.RefusesCertificate(err) {
		c.problem("correct redis.tls.cert_file and key_file, or the CA that Redis has for clients (tls-ca-cert-file)", "Redis: does not accept the certificate of the bot: %s", err)
		return
	}
	if _, answered := errors.AsType[redis.Error](err); !answered {
		c.problem("check "+where+", and that this machine can reach it", "Redis: does not answer: %s", err)
		return
	}
	advice := "look at its log"
	for _, known := range []struct{ prefix, advice string }{
		{"NOAUTH", "correct " + login},
		{"WRONGPASS", "correct " + login},
		{"NOPERM", state.Rights(client, c.config.Redis.Prefix)},
		{"LOADING", "wait until it has read its data; its log says how far it is"},
		{"MISCONF", "look at its disk and its log"},
		{"OOM", "raise its maxmemory, or remove what else it holds"},
		{"NOREPLICAS", "start the replicas that are missing, or lower min-replicas-to-write"},
		{"CLUSTERDOWN", "repair the cluster (redis-cli --cluster check)"},
		{"BUSY ", "end the script that keeps it busy (SCRIPT KILL)"},
		{"max number of clients reached", "raise its maxclients, or see who holds its connections (CLIENT LIST)"},
	} {
		if redis.HasErrorPrefix(err, known.prefix) {
			advice = known.advice
		}
	}
	c.problem(advice, "Redis: answers with an error: %s", err)
}
