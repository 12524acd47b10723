package state_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// relays: what one process publishes about a thread, those that listen to it hear
// in their order, and nobody else does.
func relays(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
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

// A stream of a chat must not wait until a connection is made, nor must the others.
func TestListeningDoesNotWaitForTheServer(t *testing.T) {
	m := miniredis.RunT(t)
	dial, hangs, hung := make(chan struct{}), atomic.Bool{}, make(chan struct{}, 1)
	c := redis.NewClient(&redis.Options{Addr: m.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if hangs.Load() {
			select {
			case hung <- struct{}{}:
			default:
			}
			select {
			case <-dial:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	t.Cleanup(func() { _ = c.Close() })
	relay := state.NewRelay(openStore(t, c, newClock().Now))
	hangs.Store(true)
	got := make(chan string, 100)
	leaveOne, err := relay.Listen(ids{24}.thread("t"), func(m string) { got <- m })
	require.NoError(t, err)
	<-hung
	leaveTwo, err := relay.Listen(ids{25}.thread("t"), func(string) {})
	require.NoError(t, err)
	leaveTwo()
	leaveTwo() // once more does no harm
	hangs.Store(false)
	close(dial)
	statetest.Await(t, "the subscription", func() bool {
		_, err := relay.Publish(t.Context(), ids{24}.thread("t"), "ready")
		return err == nil && len(got) > 0
	})
	leaveOne()
}
