package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state/statetest"
)

// failovers is how often Redis fails over under three bots: a few times in every test
// run, more in make soak.
var failovers = flag.Int("failovers", 2, "failovers of Redis under three bots, of which a cluster moves slots in every other")

// A topology is a Redis of several servers.
type topology struct {
	fault  string                // what happens to it
	config string                // where bots find it
	client redis.UniversalClient // waits while a primary is away
	some   *statetest.Instance   // one of its servers
	// fails has the nth failure happen, and returns when it is over. It calls work to wait
	// until bots have worked for a while.
	fails func(n int, work func()) string
}

// sentinels is a primary and two replicas, of which one lags when the primary dies.
// Sentinels may promote either, so that what is acknowledged must be on both.
func sentinels(t *testing.T) topology {
	t.Helper()
	w := statetest.NewWatch(t)
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: w.Master, SentinelAddrs: w.Addrs, ContextTimeoutEnabled: true, MaxRetries: 1000, MaxRetryBackoff: 100 * time.Millisecond,
	})
	t.Cleanup(func() { _ = client.Close() })
	return topology{
		fault:  "a primary dies while a replica lags",
		config: fmt.Sprintf("redis: {addresses: [%s], sentinel: {master: %s}, durability: replicated, replicas: 2}", `"`+strings.Join(w.Addrs, `", "`)+`"`, w.Master),
		client: client, some: w.Primary,
		fails: func(n int, work func()) string {
			work()
			w.FailOver(n)
			return "the primary died while a replica lagged"
		},
	}
}

// cluster is three primaries with a replica each. They die, and their slots move.
func cluster(t *testing.T) topology {
	t.Helper()
	n := statetest.NewNodes(t)
	return topology{
		fault:  "a primary dies, or its slots move",
		config: fmt.Sprintf("redis: {addresses: [%q], cluster: true, durability: replicated, replicas: 1}", n.Addrs[0]),
		client: n.Client, some: n.Some,
		fails: func(nth int, work func()) string {
			work()
			if nth%2 == 0 {
				n.FailOver(nth / 2)
				return "a primary died"
			}
			slots, keys := n.MoveSlots(nth / 2)
			return fmt.Sprintf("%d keys in %d slots moved", keys, slots)
		},
	}
}

// A primary dies, or slots move, while three bots work: what was acknowledged counts,
// once, no call runs twice or without approval, and each request comes to its end.
func TestAFailoverOfRedisUnderThreeBotsLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	path, err := binary()
	require.NoError(t, err)
	for name, open := range map[string]func(*testing.T) topology{"Sentinel": sentinels, "Cluster": cluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := open(t)
			f := newFleetOn(t, path, top.some)
			f.env = slices.DeleteFunc(f.env, func(v string) bool { return strings.HasPrefix(v, "REDIS_URL=") })
			f.setRedis(top.config)
			exchanges := make(chan struct{})
			passes := func() {
				select {
				case exchanges <- struct{}{}:
				default:
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			var over atomic.Bool
			done := make(chan struct{})
			t.Cleanup(func() { stop(); <-done })
			f.starts()
			f.passes.Store(&passes)
			records := f.recordsOf(top.client)
			go func() {
				defer close(done)
				for n := range *failovers {
					what := top.fails(n, func() {
						for range 15 {
							select {
							case <-exchanges:
							case <-ctx.Done():
								return
							}
						}
					})
					t.Log(what)
				}
				over.Store(true)
			}()
			all := f.works(records, top.client, func() bool { return !over.Load() })
			sum := f.holds(fault{doubts: true}, all, records)
			sum.points = *failovers
			t.Logf("%d requests%s", len(all), tollHead+sum.row(top.fault, setting(t, f.config)))
		})
	}
}
