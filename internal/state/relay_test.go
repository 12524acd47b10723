package state_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// relays: what one process publishes about a thread, those that listen to it hear
// in their order, and nobody else does.
func relays(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().now)
	from, to := state.NewRelay(s), state.NewRelay(s)
	thread, other := ids{24}.thread("t"), ids{25}.thread("t")
	listen := func(r *state.Relay) (got chan string, leave func()) {
		got = make(chan string, 100)
		leave, err := r.Listen(thread, func(m string) { got <- m })
		require.NoError(t, err)
		return got, leave
	}
	// A subscription begins in its own time, and what is sent before is lost.
	hears := func(got chan string) {
		statetest.Await(t, "the subscription", func() bool {
			_, err := from.Publish(t.Context(), thread, "ready")
			require.NoError(t, err)
			return len(got) > 0
		})
	}
	for range 2 { // also after nobody has listened any more
		one, leaveOne := listen(to)
		hears(one)
		leaveOther, err := to.Listen(other, func(string) { t.Error("it is about another thread") })
		require.NoError(t, err)
		two, leaveTwo := listen(to)
		hears(two)
		heard, err := from.Publish(t.Context(), thread, "a")
		require.NoError(t, err)
		require.True(t, heard)
		_, err = from.Publish(t.Context(), thread, "b")
		require.NoError(t, err)
		for _, got := range []chan string{one, two} {
			m := <-got
			for m == "ready" {
				m = <-got
			}
			require.Equal(t, "a", m)
			require.Equal(t, "b", <-got)
		}
		leaveOne()
		leaveOther()
		leaveTwo()
		if _, cluster := c.(*redis.ClusterClient); !cluster {
			statetest.Await(t, "the end of the subscription", func() bool {
				heard, err = from.Publish(t.Context(), thread, "c")
				return err == nil && !heard
			})
		}
	}
	_, err := to.Listen("made-up", func(string) {})
	require.Error(t, err)
	_, err = from.Publish(t.Context(), "made-up", "x")
	require.Error(t, err)
}
