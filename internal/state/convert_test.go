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

// filled is how many partitions have something in the tests of conversions.
const filled = 30

// contents are what the lists and the index of due work say.
func contents(t *testing.T, s *state.Store) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	for n := range filled {
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
	for n := range filled {
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
		is, err := state.CheckLayout(t.Context(), c, at)
		require.NoError(t, err)
		require.True(t, is)
		require.NoError(t, s.Close())
		statetest.Await(t, "the end of the process", func() bool { return len(c.PubSubChannels(t.Context(), at+":*").Val()) == 0 })
		moved, err := s.Convert(t.Context())
		require.NoError(t, err)
		require.Greater(t, moved, 100)
		require.ErrorIs(t, s.Holds(t.Context()), state.ErrLayoutChanged, "it still works in the older one")

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
		step := int64(71)
		if _, is := c.(*held); is {
			step = 150 // each commit of the past takes longer
		}
		for crash := int64(1); ; crash += step {
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
				older, err := state.CheckLayout(t.Context(), c, at)
				require.ErrorIs(t, err, state.ErrConverting)
				require.False(t, older)
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
			convertsSoon(t, s)
			require.Equal(t, "64/2", layout(t, c, s))
		}
	})
	t.Run("not while another process begins", func(t *testing.T) {
		at, _ := older(t, 5)
		begun := openStoreAt(t, c, newClock().Now, at)
		require.NoError(t, begun.LayOut(t.Context()))
		s := openStoreAt(t, c, newClock().Now, at)
		_, err := s.Convert(t.Context())
		require.ErrorIs(t, err, state.ErrInUse)
		require.NoError(t, begun.Close())
		convertsSoon(t, s)
		require.ErrorIs(t, begun.Holds(t.Context()), state.ErrLayoutChanged)
	})
	t.Run("not while a process works on what was not converted completely", func(t *testing.T) {
		at, _ := older(t, 10)
		working := openStoreAt(t, c, newClock().Now, at)
		require.NoError(t, working.LayOut(t.Context()))
		require.NoError(t, c.Set(t.Context(), at+":{p00}:layout", "64+", 0).Err())
		require.ErrorIs(t, working.Holds(t.Context()), state.ErrConverting)
		s := openStoreAt(t, c, newClock().Now, at)
		_, err := s.Convert(t.Context())
		require.ErrorIs(t, err, state.ErrInUse)
		require.ErrorIs(t, err, state.ErrConverting)
		require.NoError(t, working.Close())
		convertsSoon(t, s)
		require.Equal(t, "64/2", layout(t, c, s))
	})
	t.Run("what a process has left in the older layout", func(t *testing.T) {
		at, want := older(t, 6)
		late := openStoreAt(t, c, newClock().Now, at)
		_, err := openStoreAt(t, c, newClock().Now, at).Convert(t.Context())
		require.NoError(t, err)
		open := openBatch(t, ids{9}.batch("late"), ids{9}.run("late"), 1, time.Time{})
		require.NoError(t, late.CommitBatch(t.Context(), approvals.BatchCommit{Batch: open.Batch, Events: open.Events, Args: open.Args}))
		settled := openBatch(t, ids{9}.batch("settled"), ids{9}.run("late"), 1, time.Time{})
		require.NoError(t, late.CommitBatch(t.Context(), approvals.BatchCommit{Batch: settled.Batch, Events: settled.Events, Args: settled.Args}))
		require.NoError(t, late.MakeDue(t.Context(), 9, state.Deadlines, string(ids{9}.batch("both")), start0.Add(9*time.Hour)))
		s := openStoreAt(t, c, newClock().Now, at)
		require.NoError(t, s.CommitBatch(t.Context(), decide(t, settled.Batch, approvals.Approve, "click")))
		require.NoError(t, s.MakeDue(t.Context(), 9, state.Deadlines, string(ids{9}.batch("both")), start0.Add(time.Hour)))
		require.NoError(t, s.LayOut(t.Context()))
		got := contents(t, s)
		require.ElementsMatch(t, append(want["all"], "batch-09-late"), got["all"])
		lengths, err := s.Lengths(t.Context(), []approvals.ListKey{approvals.Everything})
		require.NoError(t, err)
		require.Equal(t, []int{len(got["all"])}, lengths, "what was settled is on no list")
		require.False(t, score(t, s, state.Cards, "batch-09-late").IsZero())
		requireScore(t, s, state.Deadlines, string(ids{9}.batch("both")), start0.Add(time.Hour))
	})
	t.Run("an emptied store in which processes go on", func(t *testing.T) {
		at, _ := older(t, 7)
		running := openStoreAt(t, c, newClock().Now, at)
		require.NoError(t, running.LayOut(t.Context()))
		for _, k := range keys(t, c, running) {
			require.NoError(t, c.Del(t.Context(), k).Err())
		}
		s := openStoreAt(t, c, newClock().Now, at)
		require.NoError(t, s.LayOut(t.Context()))
		require.Equal(t, "64", layout(t, c, s))
		require.NoError(t, running.Holds(t.Context()))
		require.NoError(t, s.Close())
		require.NoError(t, running.Close())
	})
	t.Run("from before a store said how it is laid out", func(t *testing.T) {
		for _, convert := range []bool{false, true} {
			at, want := older(t, 8)
			require.NoError(t, c.Del(t.Context(), at+":{p00}:layout").Err())
			s := openStoreAt(t, c, newClock().Now, at)
			if convert {
				convertsSoon(t, s)
				s = openStoreAt(t, c, newClock().Now, at)
			}
			require.NoError(t, s.LayOut(t.Context()))
			require.Equal(t, want, contents(t, s))
		}
	})
	t.Run("a new store", func(t *testing.T) {
		s := openStore(t, c, newClock().Now)
		require.ErrorIs(t, s.Holds(t.Context()), state.ErrEmptied)
		_, err := s.Convert(t.Context())
		require.ErrorIs(t, err, state.ErrEmptied)
		require.Empty(t, layout(t, c, s))
		require.NoError(t, s.LayOut(t.Context()))
		require.Equal(t, "64/2", layout(t, c, s))
		require.NoError(t, s.Holds(t.Context()))
	})
}

// convertsSoon converts a store once Redis has noticed that nobody works on it any more.
func convertsSoon(t *testing.T, s *state.Store) {
	t.Helper()
	statetest.Await(t, "the conversion", func() bool {
		_, err := s.Convert(t.Context())
		require.True(t, err == nil || errors.Is(err, state.ErrInUse), err)
		return err == nil
	})
}
