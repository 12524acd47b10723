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
	t.Run("an idle process sends at most 64 commands a second for all kinds together", func(t *testing.T) {
		h := harmed(t, c, func([]byte) statetest.Fault { return statetest.None })
		seen := &statetest.Trips{}
		s := openStore(t, h, time.Now)
		h.AddHook(seen)
		workOn(t, state.NewDue(s, state.DueOptions{Sweep: 10 * time.Millisecond}))
		var swept [][]string
		statetest.Await(t, "some sweeps", func() bool {
			for _, trip := range seen.Taken() {
				if trip[0] != "script" && trip[0] != "eval" { // a script that is new is loaded once
					swept = append(swept, trip)
				}
			}
			return len(swept) > 10
		})
		for _, trip := range swept {
			require.Len(t, trip, approvals.Partitions, "one round trip is one sweep")
			for _, name := range trip {
				require.Equal(t, "evalsha", name)
			}
		}
		require.LessOrEqual(t, float64(approvals.Partitions)/state.ShortestSweep.Seconds(), 64.0)
	})
	t.Run("a sweep finds what is due of every kind without a wake-up", func(t *testing.T) {
		s := openStore(t, c, newClock().Now)
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
			require.NoError(t, c.ZAdd(t.Context(), fmt.Sprintf("%s:{p%02d}:due:%s", s.Prefix(), i, k), redis.Z{Score: 1, Member: id}).Err())
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
			require.NoError(t, c.ZAdd(t.Context(), fmt.Sprintf("%s:{p%02d}:due:cards", s.Prefix(), n), redis.Z{Score: 1, Member: batch}).Err())
			require.Equal(t, batch, wait(t, "the sweep", got))
		}
	})
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
