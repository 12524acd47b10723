package state

import (
	"context"
	"fmt"
	"strconv"
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

	// Told: the server answered CONFIG GET. Hosted servers often refuse it.
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

// Servers asks every server that takes writes what it is and what it is set
// to. It fails only if one does not answer at all.
func (s *conn) Servers(ctx context.Context) ([]Server, error) { return Servers(ctx, s.client) }

// Servers is [Store.Servers] for a client without a store.
func Servers(ctx context.Context, client redis.UniversalClient) ([]Server, error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		s, err := look(ctx, "", client)
		return []Server{s}, err
	}
	var mu sync.Mutex
	var all []Server
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		s, err := look(ctx, node.Options().Addr, node)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask the servers of the cluster: %w", err)
	}
	return all, nil
}

func look(ctx context.Context, addr string, c redis.Cmdable) (Server, error) {
	s := Server{Addr: addr}
	if err := c.Ping(ctx).Err(); err != nil {
		return s, err
	}
	info, _ := c.InfoMap(ctx).Result() // what is refused stays empty
	s.Version = info["Server"]["redis_version"]
	s.Replica = info["Replication"]["role"] == "slave"
	s.Replicas, _ = strconv.Atoi(info["Replication"]["connected_slaves"])
	s.Broken = info["Persistence"]["aof_last_write_status"] == "err"
	s.Told = true
	for name, value := range map[string]*string{
		"appendonly": &s.AppendOnly, "appendfsync": &s.AppendFsync, "no-appendfsync-on-rewrite": &s.NoFsyncOnRewrite, "maxmemory-policy": &s.Eviction,
	} {
		told, err := c.ConfigGet(ctx, name).Result()
		*value = told[name]
		s.Told = s.Told && err == nil && *value != ""
	}
	return s, nil
}
