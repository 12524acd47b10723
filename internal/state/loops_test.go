package state_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// ends: Work returns when its handlers have, and gives them the grace period.
func ends(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	s := openStore(t, c, k.Now)
	for name, done := range map[string]int{"in time": 1, "too late": 0} {
		t.Run(name, func(t *testing.T) {
			grace, limit := never, 50*time.Millisecond
			if done == 0 {
				grace, limit = time.Millisecond, never
			}
			d := state.NewDue(s, state.DueOptions{Grace: grace, Sweep: never})
			run := agentrun.Run{ID: ids{4}.run(name), Status: agentrun.RunQueued, CreatedAt: start0}
			commitRun(t, s, run)
			begun, finish := make(chan struct{}), make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			returned := make(chan error, 1)
			go func() {
				returned <- d.Work(ctx, state.Runs, func(ctx context.Context, _ string) error {
					close(begun)
					<-finish
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(limit): // nothing ends it
						return nil
					}
				})
			}()
			wait(t, "the handler", begun)
			require.Error(t, d.Work(ctx, state.Runs, nil), "one loop a kind")
			cancel()
			close(finish)
			require.NoError(t, wait(t, "Work", returned))
			require.EqualValues(t, done, d.Counts()[state.Runs].Done)
			requireParked(t, d)
			require.Zero(t, d.Counts()[state.Runs].Failed, "being stopped is no failure")
			require.False(t, score(t, s, state.Runs, string(run.ID)).IsZero(), "the next process does it")
			require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Runs: []agentrun.Run{
				{ID: run.ID, Status: agentrun.RunFailed, Version: 1},
			}}))
		})
	}
	d := state.NewDue(s, state.DueOptions{})
	require.Error(t, d.Work(t.Context(), "posters", nil), "no such kind")
}

// outage: a loop continues when Redis returns, and says meanwhile that it does
// not look.
func outage(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	var down atomic.Bool
	h := harmed(t, c, func([]byte) statetest.Fault {
		if down.Load() {
			return statetest.LostRequest
		}
		return statetest.None
	})
	k := newClock()
	s := openStore(t, h, k.Now)
	d := state.NewDue(s, state.DueOptions{Sweep: 5 * time.Millisecond})
	require.False(t, d.Healthy(k.Now()), "nobody looks")
	got := make(chan string, 1)
	work(t, d, state.Cards, func(ctx context.Context, id string) error {
		if _, err := s.Batch(ctx, approvals.BatchID(id)); err != nil {
			return err
		}
		select {
		case got <- id:
		default:
		}
		return nil
	})
	statetest.Await(t, "the first look", func() bool { return d.Healthy(k.Now()) })
	down.Store(true)
	statetest.Await(t, "a loop that does not look", func() bool {
		k.Advance(time.Second)
		return !d.Healthy(k.Now())
	})
	// Through the door that works: another process commits.
	other := openStoreAt(t, c, k.Now, s.Prefix())
	opens := openBatch(t, ids{50}.batch("b"), ids{50}.run("r"), 1, time.Time{})
	require.NoError(t, other.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
	require.Empty(t, got)
	down.Store(false)
	require.Equal(t, string(opens.Batch.ID), wait(t, "the card", got))
	statetest.Await(t, "a loop that looks", func() bool { return d.Healthy(k.Now()) })
}

// storm: commits from all sides, two processes that draw. Nothing is lost, and
// neither works twice on one item at a time.
func storm(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	first := openStore(t, c, time.Now)
	stores := []*state.Store{first, openStoreAt(t, c, time.Now, first.Prefix())}
	const documents, commits = 40, 6
	var twice atomic.Int64
	for _, s := range stores {
		var running sync.Map
		d := state.NewDue(s, state.DueOptions{Workers: 4, Sweep: 100 * time.Millisecond})
		work(t, d, state.Cards, func(ctx context.Context, id string) error {
			if _, already := running.LoadOrStore(id, true); already {
				twice.Add(1)
			}
			defer running.Delete(id)
			return draw(ctx, s, id)
		})
	}
	var wg sync.WaitGroup
	var failed sync.Map
	for n := range documents {
		s := stores[n%2]
		opens := openBatch(t, ids{n}.batch("b"), ids{n}.run("r"), 1, time.Time{})
		wg.Go(func() {
			b, before := opens.Batch, approvals.Batch{}
			for range commits {
				if err := s.CommitBatch(t.Context(), approvals.BatchCommit{Before: before, Batch: b}); err != nil {
					failed.Store(b.ID, err)
					return
				}
				before = b
				b.Version++
			}
		})
	}
	wg.Wait()
	failed.Range(func(id, err any) bool { require.Fail(t, "a commit failed", "%v: %v", id, err); return false })
	statetest.Await(t, "everything to be drawn", func() bool { return len(due(t, first, state.Cards)) == 0 })
	for n := range documents {
		drawn, _, err := first.Memo(t.Context(), string(ids{n}.batch("b")), "cards")
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(commits), string(drawn))
	}
	require.Zero(t, twice.Load())
}

// draw does what a surface does: it draws a version and says which. It reads the memo
// first, so that the batch is no older than what was drawn.
func draw(ctx context.Context, s *state.Store, id string) error {
	_, version, err := s.Memo(ctx, id, "cards")
	if err != nil {
		return err
	}
	b, err := s.Batch(ctx, approvals.BatchID(id))
	if err != nil {
		return err
	}
	err = s.CommitMemo(ctx, id, "cards", []byte(strconv.FormatInt(b.Version, 10)), version, b.Version)
	if errors.Is(err, approvals.ErrConflict) {
		return later(time.Duration(1+rand.IntN(20)) * time.Millisecond)
	}
	return err
}

// backlog: more items than workers and than one look finds; each is handled.
func backlog(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, time.Now)
	const items = 60
	for n := range items {
		opens := openBatch(t, ids{n % 2}.batch(fmt.Sprint(n)), ids{n % 2}.run("r"), 1, time.Time{})
		require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
	}
	d := state.NewDue(s, state.DueOptions{Workers: 3, Sweep: never})
	var running, most atomic.Int64
	work(t, d, state.Cards, func(ctx context.Context, id string) error {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		return draw(ctx, s, id)
	})
	statetest.Await(t, "the backlog to be done", func() bool { return len(due(t, s, state.Cards)) == 0 })
	require.LessOrEqual(t, most.Load(), int64(3))
}
