package state_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// sweeps: a process asks for work once a partition, however many kinds there
// are, and finds every kind of which it heard nothing.
func sweeps(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	t.Run("an idle process asks all kinds of a partition with one command", func(t *testing.T) {
		h := harmed(t, c, func([]byte) statetest.Fault { return statetest.None })
		seen := &statetest.Trips{}
		s := openStore(t, h, time.Now)
		h.AddHook(seen)
		workOn(t, state.NewDue(s, state.DueOptions{Sweep: 10 * time.Millisecond}))
		asked, looked := 0, 0
		statetest.Await(t, "some sweeps", func() bool {
			for _, trip := range seen.Taken() {
				switch trip[0] {
				case "script", "eval": // a script that is new is loaded once
				case "ping":
					looked++
					require.Len(t, trip, 1)
				default:
					for _, name := range trip {
						require.Equal(t, "evalsha", name)
					}
					require.LessOrEqual(t, len(trip), approvals.Partitions)
					asked += len(trip)
				}
			}
			return looked > 10 && asked > 3*approvals.Partitions
		})
	})
	t.Run("a sweep finds what is due of every kind without a wake-up", func(t *testing.T) {
		k := newClock()
		s := openStore(t, c, k.Now)
		for n := range 40 { // more than a sweep reads at once
			for _, i := range []int{7, 12, 13} {
				require.NoError(t, s.MakeDue(t.Context(), i, state.Deadlines, string(ids{i}.batch(fmt.Sprint("later", n))), k.Now().Add(time.Hour)))
			}
		}
		type found struct {
			kind state.Kind
			id   string
		}
		got := make(chan found, 100)
		var tasks []state.Task
		want := map[found]bool{}
		for i, k := range state.Kinds() {
			id := string(ids{i}.batch("b"))
			want[found{k, id}] = true
			require.NoError(t, s.MakeDue(t.Context(), i, k, id, time.Time{}))
			tasks = append(tasks, state.Task{Kind: k, Limit: time.Minute, Reconcile: func(_ context.Context, id string) error {
				got <- found{k, id}
				return later(time.Hour)
			}})
		}
		workOn(t, state.NewDue(s, state.DueOptions{Sweep: 20 * time.Millisecond}), tasks...)
		for len(want) > 0 {
			f := wait(t, "the rest", got)
			require.Contains(t, want, f)
			delete(want, f)
		}
	})
	t.Run("a server that has forgotten the script is taught it again", func(t *testing.T) {
		s := openStore(t, c, newClock().Now)
		got := make(chan string, 10)
		work(t, state.NewDue(s, state.DueOptions{Sweep: 5 * time.Millisecond}), state.Cards, func(_ context.Context, id string) error {
			got <- id
			return later(time.Hour)
		})
		for n := range 3 {
			forget(t, c)
			batch := string(ids{n}.batch("b"))
			require.NoError(t, s.MakeDue(t.Context(), n, state.Cards, batch, time.Time{}))
			require.Equal(t, batch, wait(t, "the sweep", got))
		}
	})
	t.Run("what nobody heard of is found soon if wake-ups do not arrive", func(t *testing.T) {
		s := openStore(t, deafened(c), newClock().Now)
		got := make(chan string, 10)
		work(t, state.NewDue(s, state.DueOptions{Sweep: never}), state.Cards, func(_ context.Context, id string) error {
			got <- id
			return later(time.Hour)
		})
		for n := range 3 { // the first sweeps are those of the beginning
			batch := string(ids{n}.batch("b"))
			require.NoError(t, s.MakeDue(t.Context(), n, state.Cards, batch, time.Time{}))
			require.Equal(t, batch, wait(t, "the sweep", got))
		}
	})
}

// deaf is a client that receives nothing.
type deaf struct{ redis.UniversalClient }

func (d deaf) Subscribe(ctx context.Context, _ ...string) *redis.PubSub {
	return d.UniversalClient.Subscribe(ctx, "another channel")
}

func deafened(c redis.UniversalClient) redis.UniversalClient {
	if behind, ok := c.(*held); ok {
		return behind.through(deaf{behind.UniversalClient})
	}
	return deaf{c}
}

// An idle process asks so rarely that its commands are at most 16 a second, however many
// kinds of work there are. Those that a script sends on are counted.
func TestAnIdleProcessSendsFewCommands(t *testing.T) {
	t.Parallel()
	c := statetest.Redis(t)
	s := openStore(t, c, time.Now)
	require.NoError(t, c.ConfigResetStat(t.Context()).Err())
	workOn(t, state.NewDue(s, state.DueOptions{Sweep: 10 * time.Millisecond}))
	var asks, ours int
	statetest.Await(t, "some sweeps", func() bool {
		stats, err := c.InfoMap(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		asks, ours = 0, 0
		for name, line := range stats["Commandstats"] {
			var calls int
			_, err := fmt.Sscanf(line, "calls=%d", &calls)
			require.NoError(t, err)
			switch name {
			case "cmdstat_evalsha":
				asks, ours = calls, ours+calls
			case "cmdstat_zrangebyscore", "cmdstat_zrange", "cmdstat_publish":
				ours += calls
			}
		}
		return asks > 3*approvals.Partitions
	})
	require.Equal(t, asks*3, ours)
	const seconds = 3600
	asked, rounds := state.IdleAsks(seconds * time.Second)
	require.GreaterOrEqual(t, asked, seconds*approvals.Partitions/int(state.LongestSweep.Seconds()))
	require.LessOrEqual(t, float64(asked*ours/asks+rounds)/seconds, 16.0)
}

// forget has every server forget its scripts.
func forget(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	if cluster, ok := c.(*redis.ClusterClient); ok {
		require.NoError(t, cluster.ForEachMaster(t.Context(), func(ctx context.Context, one *redis.Client) error {
			return one.ScriptFlush(ctx).Err()
		}))
		return
	}
	require.NoError(t, c.ScriptFlush(t.Context()).Err())
}
