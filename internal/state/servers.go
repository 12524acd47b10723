package state

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A Server is what a Redis says of itself. What it does not say is empty.
type Server struct {
	Addr    string // in a cluster
	Version string
	// Replica: it takes no writes.
	Replica bool
	// Replicas are those that follow it now.
	Replicas int
	// Broken: its last write to the log failed.
	Broken bool

	// Told: the server answered CONFIG GET. Hosted servers often refuse it; then
	// AppendOnly and Eviction are what INFO says.
	Told             bool
	AppendOnly       string
	AppendFsync      string
	NoFsyncOnRewrite string
	Eviction         string // maxmemory-policy
}

// OldestRedis is the oldest version of Redis that is known to work.
const OldestRedis = "6.2"

// Supported reports whether a version of Redis is known to work, and whether this
// is a version at all.
func Supported(version string) (supported, known bool) {
	var major, minor int
	if n, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || n != 2 {
		return false, false
	}
	return major > 6 || major == 6 && minor >= 2, true
}

// checkVersions returns an error if a server that takes writes is older than
// [OldestRedis]. It passes over a server that does not report its version, as some
// hosted ones don't. Valkey reports the version of Redis that it is compatible with.
func (s *conn) checkVersions(ctx context.Context) error {
	return eachServer(ctx, s.client, func(ctx context.Context, addr string, c redis.Cmdable) error {
		told, err := info(ctx, c, "server")
		if err != nil {
			return err
		}
		version := told["redis_version"]
		if supported, known := Supported(version); !known || supported {
			return nil
		}
		return fmt.Errorf("%s is version %s, which lacks what the store needs; use Redis %s or newer, or Valkey", strings.TrimSpace("redis "+addr), version, OldestRedis)
	})
}

// Servers asks every server that takes writes what it is and what it is set
// to. It fails only if one does not answer at all.
func (s *conn) Servers(ctx context.Context) ([]Server, error) { return Servers(ctx, s.client) }

// Servers is [Store.Servers] for a client without a store.
func Servers(ctx context.Context, client redis.UniversalClient) ([]Server, error) {
	var mu sync.Mutex
	var all []Server
	err := eachServer(ctx, client, func(ctx context.Context, addr string, c redis.Cmdable) error {
		s, err := look(ctx, addr, c)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		return err
	})
	return all, err
}

// eachServer calls ask with every server that takes writes, at the same time. Only
// those of a cluster have an address.
func eachServer(ctx context.Context, client redis.UniversalClient, ask func(ctx context.Context, addr string, c redis.Cmdable) error) error {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return ask(ctx, "", client)
	}
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		return ask(ctx, node.Options().Addr, node)
	})
	if err != nil {
		return fmt.Errorf("ask the servers of the cluster: %w", err)
	}
	return nil
}

func look(ctx context.Context, addr string, c redis.Cmdable) (Server, error) {
	s := Server{Addr: addr}
	if err := c.Ping(ctx).Err(); err != nil {
		return s, err
	}
	told, err := info(ctx, c)
	if err != nil {
		return s, err
	}
	s.Version = told["redis_version"]
	s.Replica = told["role"] == "slave"
	s.Replicas, _ = strconv.Atoi(told["connected_slaves"])
	s.Broken = told["aof_last_write_status"] == "err"
	s.Told = true
	for name, value := range map[string]*string{
		"appendonly": &s.AppendOnly, "appendfsync": &s.AppendFsync, "no-appendfsync-on-rewrite": &s.NoFsyncOnRewrite, "maxmemory-policy": &s.Eviction,
	} {
		told, err := c.ConfigGet(ctx, name).Result()
		if err != nil && !refuses(err) {
			return s, err
		}
		*value = told[name]
		s.Told = s.Told && err == nil && *value != ""
	}
	if !s.Told {
		s.AppendOnly, s.Eviction = map[string]string{"0": "no", "1": "yes"}[told["aof_enabled"]], told["maxmemory_policy"]
	}
	return s, nil
}

// refuses reports whether the server does not permit or know a command. Without its answer
// that is not known.
func refuses(err error) bool {
	_, answered := errors.AsType[redis.Error](err)
	return answered && !Passes(err)
}

// info returns the fields of INFO that the server gives us; a server that refuses the
// command gives none. The client's InfoMap panics if a field comes before the name of
// a section.
func info(ctx context.Context, c redis.Cmdable, sections ...string) (fields map[string]string, err error) {
	text, err := c.Info(ctx, sections...).Result()
	if err != nil && !refuses(err) {
		return nil, err
	}
	fields = map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}
