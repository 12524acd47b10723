package statetest

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

const (
	shards   = 3
	allSlots = 16384
)

// Nodes are a cluster of three primaries with a replica each, which keep what they
// acknowledge.
type Nodes struct {
	Addrs  []string
	Client *redis.ClusterClient // one that waits while a primary is away
	Some   *Instance            // one of the nodes

	tb     testing.TB
	shards []*shard
}

type shard struct{ primary, replica *Instance }

// NewNodes starts the cluster, and returns when it takes writes. It ends with the test.
func NewNodes(tb testing.TB) *Nodes {
	tb.Helper()
	ctx, n := tb.Context(), &Nodes{tb: tb}
	var all []*Instance
	for range 2 * shards {
		i := NewInstance(tb, "--cluster-enabled", "yes", "--cluster-port", freePort(tb), "--cluster-node-timeout", "1000",
			"--cluster-replica-validity-factor", "0", "--repl-ping-replica-period", "1")
		all, n.Addrs = append(all, i), append(n.Addrs, i.Addr)
	}
	for i, one := range all[1:] {
		host, port, err := net.SplitHostPort(one.Addr)
		require.NoError(tb, err)
		bus := one.Client.ConfigGet(ctx, "cluster-port").Val()["cluster-port"]
		require.NoError(tb, all[0].Client.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err(), i)
	}
	for _, one := range all {
		Await(tb, "the nodes to meet", func() bool {
			return strings.Contains(one.Client.ClusterInfo(ctx).Val(), "cluster_known_nodes:"+strconv.Itoa(len(all)))
		})
	}
	for i := range shards {
		s := &shard{primary: all[i], replica: all[shards+i]}
		n.shards = append(n.shards, s)
		require.NoError(tb, s.primary.Client.ClusterAddSlotsRange(ctx, i*allSlots/shards, (i+1)*allSlots/shards-1).Err())
		id := s.primary.Client.ClusterMyID(ctx).Val()
		Await(tb, "the replica to know its primary", func() bool { return s.replica.Client.ClusterReplicate(ctx, id).Err() == nil })
		s.replica.Follows()
	}
	n.ready()
	n.Some = all[0]
	n.Client = redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: n.Addrs, ContextTimeoutEnabled: true, ClusterStateReloadInterval: 100 * time.Millisecond,
		MaxRedirects: 1000, MaxRetryBackoff: 100 * time.Millisecond, MaintNotificationsConfig: quiet(),
	})
	tb.Cleanup(func() { require.NoError(tb, n.Client.Close()) })
	return n
}

// ready returns when all nodes know that each slot is served, and by whom. If a primary
// dies before, its replica may not know all of its slots.
func (n *Nodes) ready() {
	n.tb.Helper()
	Await(n.tb, "the cluster to be ready", func() bool {
		ready := true
		for at, s := range n.shards {
			other := n.shards[(at+1)%shards].primary
			for _, i := range []*Instance{s.primary, s.replica} {
				knows, should := n.owners(i), n.owners(other)
				if i == s.primary {
					n.repair(i, knows, should)
				}
				ready = ready && knows == should && strings.Contains(i.Client.ClusterInfo(n.tb.Context()).Val(), "cluster_state:ok")
			}
		}
		return ready
	})
}

// owners returns the id of the primary that serves each slot, as the node knows it.
func (n *Nodes) owners(by *Instance) (all [allSlots]string) {
	for _, served := range by.Client.ClusterSlots(n.tb.Context()).Val() { //nolint:staticcheck // CLUSTER SHARDS lists no slots of some nodes in Redis 7.0
		for slot := served.Start; slot <= served.End; slot++ {
			all[slot] = served.Nodes[0].ID
		}
	}
	return all
}

// repair does what an operator does if a primary does not know that a slot is its own, and
// all others do: Redis 7.0 leaves some of them so after failovers.
func (n *Nodes) repair(i *Instance, knows, should [allSlots]string) {
	ctx := n.tb.Context()
	me := i.Client.ClusterMyID(ctx).Val()
	for slot := range allSlots {
		if knows[slot] == "" && should[slot] == me {
			i.Client.ClusterAddSlots(ctx, slot) // it may know by now
		}
	}
}

// FailOver kills a primary, and returns when its replica has taken its place and the
// primary follows it.
func (n *Nodes) FailOver(nth int) {
	n.tb.Helper()
	s := n.shards[nth%shards]
	s.primary.Kill()
	Await(n.tb, "the replica to take over", s.replica.isPrimary)
	s.primary, s.replica = s.replica, s.primary
	s.replica.Start()
	Await(n.tb, "the old primary to follow", func() bool { return !s.replica.isPrimary() })
	s.replica.Follows()
	n.ready()
}

// MoveSlots moves every slot of a shard that has keys to the next shard, key by key, while
// clients use it.
func (n *Nodes) MoveSlots(nth int) (slots, keys int) {
	n.tb.Helper()
	ctx := n.tb.Context()
	from, to := n.shards[nth%shards].primary, n.shards[(nth+1)%shards].primary
	source, target := from.Client.ClusterMyID(ctx).Val(), to.Client.ClusterMyID(ctx).Val()
	host, port, err := net.SplitHostPort(to.Addr)
	require.NoError(n.tb, err)
	for _, slot := range n.slotsWithKeys(from) {
		set := func(i *Instance, what ...any) {
			require.NoError(n.tb, i.Client.Do(ctx, append([]any{"CLUSTER", "SETSLOT", slot}, what...)...).Err())
		}
		set(to, "IMPORTING", source)
		set(from, "MIGRATING", target)
		for {
			some, err := from.Client.ClusterGetKeysInSlot(ctx, slot, 10).Result()
			require.NoError(n.tb, err)
			if len(some) == 0 {
				break
			}
			cmd := []any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}
			for _, key := range some {
				cmd = append(cmd, key)
			}
			require.NoError(n.tb, from.Client.Do(ctx, cmd...).Err())
			keys += len(some)
		}
		set(to, "NODE", target)
		set(from, "NODE", target)
		slots++
	}
	n.ready()
	return slots, keys
}

// slotsWithKeys returns the slots of a node that have keys.
func (n *Nodes) slotsWithKeys(i *Instance) (slots []int) {
	seen := map[int]bool{}
	keys := i.Client.Scan(n.tb.Context(), 0, "*", 1000).Iterator()
	for keys.Next(n.tb.Context()) {
		slot := int(i.Client.ClusterKeySlot(n.tb.Context(), keys.Val()).Val())
		if !seen[slot] {
			seen[slot] = true
			slots = append(slots, slot)
		}
	}
	require.NoError(n.tb, keys.Err())
	return slots
}
