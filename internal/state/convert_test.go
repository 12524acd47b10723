package state_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// contents are what the lists and the index of due work say.
func contents(t *testing.T, s *state.Store) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	for n := range approvals.Partitions {
		for _, k := range state.Kinds() {
			ids, err := s.AllDue(t.Context(), n, k)
			require.NoError(t, err)
			for _, id := range ids {
				what := fmt.Sprintf("%02d %s", n, k)
				all[what] = append(all[what], id+" "+score(t, s, k, id).String())
			}
		}
	}
	for _, user := range listUsers {
		batches, err := s.Decided(t.Context(), user, 100)
		require.NoError(t, err)
		for _, b := range batches {
			all["decided by "+string(user)] = append(all["decided by "+string(user)], string(b.ID))
		}
	}
	for _, k := range []approvals.ListKey{
		approvals.Everything, approvals.Doubtful, approvals.WaitsForUser("ann"), approvals.WaitsForGroup("sre"), approvals.AskedBy("bo"), approvals.ShownIn("C-war"),
	} {
		for _, id := range readAll(t, s, []approvals.ListKey{k}, 20) {
			all[string(k)] = append(all[string(k)], string(id))
		}
	}
	return all
}

// fill stores what an older version would have: open requests, runs and idle threads.
func fill(t *testing.T, s *state.Store, r *rand.Rand) {
	t.Helper()
	decided := 0
	for n := range 30 {
		opens := randomBatch(t, r, n)
		require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
		next, events, err := opens.Batch.Apply(randomCommand(r, opens.Batch, start0.Add(time.Minute)))
		if err == nil && len(events) > 0 && !next.Settled() {
			decided += len(next.Deciders())
			require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Before: opens.Batch, Batch: next, Events: events}))
		}
	}
	require.Positive(t, decided)
	for n := range 5 {
		id := ids{n}
		thread := agentrun.Thread{ID: id.thread("t")}
		require.NoError(t, s.Commit(t.Context(), agentrun.Commit{
			Thread: &thread, Runs: []agentrun.Run{{ID: id.run("r"), Thread: thread.ID, Status: agentrun.RunQueued, CreatedAt: start0}},
		}))
	}
}

func layout(t *testing.T, c redis.UniversalClient, s *state.Store) string {
	t.Helper()
	return c.Get(t.Context(), s.Prefix()+":{p00}:layout").Val()
}

// converts: the layout of an older version becomes that of this one, with everything that
// it holds.
func converts(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	if behind, ok := c.(*held); ok && behind.apart {
		return // every store would be apart again
	}
	// older returns the prefix of a store of an older version, and what is in it.
	older := func(t *testing.T, seed uint64) (string, map[string][]string) {
		t.Helper()
		at := prefix()
		require.NoError(t, state.SetApart(t.Context(), c, at))
		s := openStoreAt(t, c, newClock().Now, at)
		fill(t, s, rand.New(rand.NewPCG(seed, 1)))
		return at, contents(t, s)
	}
	t.Run("everything is where it was", func(t *testing.T) {
		at, want := older(t, 1)
		require.Len(t, want["all"], 30)
		s := openStoreAt(t, c, newClock().Now, at)
		require.NoError(t, s.LayOut(t.Context()), "it is used as it is")
		require.Equal(t, "64", layout(t, c, s))
		require.Equal(t, want, contents(t, s))
		moved, err := s.Convert(t.Context())
		require.NoError(t, err)
		require.Greater(t, moved, 100)
		require.ErrorIs(t, s.Holds(t.Context()), state.ErrLayout, "it still works in the older one")

		s = openStoreAt(t, c, newClock().Now, at)
		require.NoError(t, s.LayOut(t.Context()))
		require.Equal(t, "64/2", layout(t, c, s))
		require.Equal(t, want, contents(t, s))
		require.NoError(t, s.Holds(t.Context()))
		for _, k := range keys(t, c, s) {
			require.NotRegexp(t, `}:(due|list):`, k)
			if strings.Contains(k, "}:decided:") {
				for _, member := range c.ZRange(t.Context(), k, 0, -1).Val() {
					require.NotRegexp(t, `^batch-`, member)
				}
			}
		}
		moved, err = s.Convert(t.Context())
		require.NoError(t, err)
		require.Zero(t, moved)
	})
	t.Run("whichever step is the last one", func(t *testing.T) {
		var left atomic.Int64
		left.Store(1 << 40)
		var dies atomic.Pointer[context.CancelFunc]
		h := harmed(t, c, func([]byte) statetest.Fault {
			if left.Add(-1) < 0 {
				(*dies.Load())()
				return statetest.LostRequest
			}
			return statetest.None
		})
		for crash := int64(1); ; crash += 37 {
			at, want := older(t, 2)
			s := openStoreAt(t, h, newClock().Now, at)
			ctx, cancel := context.WithCancel(t.Context())
			dies.Store(&cancel)
			left.Store(crash)
			_, err := s.Convert(ctx)
			cancel()
			left.Store(1 << 40)
			again := openStoreAt(t, c, newClock().Now, at)
			if layout(t, c, again) == "64+" {
				require.ErrorIs(t, again.LayOut(t.Context()), state.ErrConverting, "a replica would miss what is not moved yet")
			}
			_, failed := again.Convert(t.Context())
			require.NoError(t, failed)
			again = openStoreAt(t, c, newClock().Now, at)
			require.NoError(t, again.LayOut(t.Context()))
			require.Equal(t, want, contents(t, again))
			if err == nil {
				require.Greater(t, crash, int64(100), "it takes many steps")
				return
			}
		}
	})
	t.Run("by two at the same time", func(t *testing.T) {
		at, want := older(t, 3)
		var both sync.WaitGroup
		for range 2 {
			s := openStoreAt(t, c, newClock().Now, at)
			both.Go(func() {
				_, err := s.Convert(t.Context())
				assert.NoError(t, err)
			})
		}
		both.Wait()
		require.Equal(t, want, contents(t, openStoreAt(t, c, newClock().Now, at)))
	})
	t.Run("not while another process works", func(t *testing.T) {
		for _, channel := range []string{":wakes", ":wake:cards"} { // the second is that of an older version
			at, _ := older(t, 4)
			s := openStoreAt(t, c, newClock().Now, at)
			sub := c.Subscribe(t.Context(), at+channel)
			_, err := sub.Receive(t.Context())
			require.NoError(t, err)
			_, err = s.Convert(t.Context())
			require.ErrorIs(t, err, state.ErrInUse)
			require.Equal(t, "64", layout(t, c, s))
			require.NoError(t, sub.Close())
			statetest.Await(t, "the end of the other process", func() bool {
				_, err = s.Convert(t.Context())
				return !errors.Is(err, state.ErrInUse)
			})
			require.NoError(t, err)
			require.Equal(t, "64/2", layout(t, c, s))
		}
	})
	t.Run("from before a store said how it is laid out", func(t *testing.T) {
		at, want := older(t, 6)
		require.NoError(t, c.Del(t.Context(), at+":{p00}:layout").Err())
		s := openStoreAt(t, c, newClock().Now, at)
		require.NoError(t, s.LayOut(t.Context()))
		require.Equal(t, "64", layout(t, c, s))
		require.Equal(t, want, contents(t, s))
	})
	t.Run("a new store", func(t *testing.T) {
		s := openStore(t, c, newClock().Now)
		require.ErrorIs(t, s.Holds(t.Context()), state.ErrEmptied)
		require.NoError(t, s.LayOut(t.Context()))
		require.Equal(t, "64/2", layout(t, c, s))
		require.NoError(t, s.Holds(t.Context()))
	})
}
