package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/state"
)

// The oldest Redis that is known to do.
const oldestMajor, oldestMinor = 6, 2

func (c *checker) checkRedis(ctx context.Context) {
	if c.env.RedisURL.open() == "" {
		return // said before
	}
	client, err := state.Dial(c.env.RedisURL.open())
	if err != nil {
		return // said before
	}
	defer func() { _ = client.Close() }() // nothing was written
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		c.problem(redisAdvice(err), "Redis: does not answer: %s", err)
		return
	}
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		c.checkNode(ctx, "Redis", client)
		return
	}
	var nodes []*redis.Client
	err = cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		nodes = append(nodes, node)
		return nil
	})
	if err != nil {
		c.problem("", "Redis: the nodes of the cluster are not known: %s", err)
	}
	for _, node := range nodes {
		c.checkNode(ctx, "Redis "+node.Options().Addr, node)
	}
}

func redisAdvice(err error) string {
	for _, refusal := range []string{"NOAUTH", "WRONGPASS", "NOPERM"} {
		if redis.HasErrorPrefix(err, refusal) {
			return "correct the user and password in REDIS_URL"
		}
	}
	return "look at REDIS_URL, and whether this machine may reach it"
}

// checkNode looks at one server: its version, whether it takes writes, and
// whether what it takes outlives it.
func (c *checker) checkNode(ctx context.Context, at string, node redis.Cmdable) {
	info, err := node.InfoMap(ctx).Result()
	server := info["Server"]
	version := server["redis_version"]
	switch major, minor, ok := versionOf(version); {
	case err != nil || !ok:
		c.unknown(fmt.Sprintf("it must be %d.%d or newer", oldestMajor, oldestMinor), "%s: it answers, and does not say its version", at)
	case major < oldestMajor || major == oldestMajor && minor < oldestMinor:
		c.problem(fmt.Sprintf("use %d.%d or newer", oldestMajor, oldestMinor), "%s: is version %s", at, version)
	default:
		c.fine("%s: answers, version %s", at, version)
	}
	if info["Replication"]["role"] == "slave" {
		c.problem("name its master in REDIS_URL", "%s: is a replica, which takes no writes", at)
	}
	settings, err := configOf(ctx, node, "appendonly", "appendfsync", "maxmemory-policy")
	if err != nil {
		c.unknown("ask whoever runs it for appendonly yes and maxmemory-policy noeviction", "%s: whether it keeps what it is told (CONFIG GET is refused)", at)
		return
	}
	c.checkPersistence(at, settings)
	if policy := settings["maxmemory-policy"]; policy != "noeviction" {
		c.problem("set maxmemory-policy noeviction", "%s: maxmemory-policy is %s: when memory is short it throws away what waits for a signature", at, policy)
		return
	}
	c.fine("%s: throws nothing away (maxmemory-policy noeviction)", at)
}

func (c *checker) checkPersistence(at string, settings map[string]string) {
	switch {
	case settings["appendonly"] != "yes":
		c.problem("set appendonly yes (CONFIG SET appendonly yes, then CONFIG REWRITE)",
			"%s: appendonly is %s: when it ends, acknowledged clicks and all that waits are lost", at, settings["appendonly"])
	case settings["appendfsync"] == "no":
		c.problem("set appendfsync everysec, or always on a single node", "%s: appendfsync is no: a crash of its machine loses what it likes", at)
	case settings["appendfsync"] == "always":
		c.fine("%s: keeps every acknowledged write (appendonly yes, appendfsync always)", at)
	default:
		c.fine("%s: keeps what it is told (appendonly yes); a crash of its machine may cost the last second, unless appendfsync is always", at)
	}
}

var errNotTold = errors.New("a setting was not told")

func configOf(ctx context.Context, node redis.Cmdable, names ...string) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range names {
		v, err := node.ConfigGet(ctx, name).Result()
		if err != nil {
			return nil, fmt.Errorf("read the setting %s: %w", name, err)
		}
		if v[name] == "" {
			return nil, errNotTold
		}
		all[name] = v[name]
	}
	return all, nil
}

func versionOf(s string) (major, minor int, ok bool) {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return major, minor, err1 == nil && err2 == nil
}
