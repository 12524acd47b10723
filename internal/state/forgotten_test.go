package state_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// forgotten: what a loop knows of an item ends with the work that it was about.
func forgotten(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	t.Run("failures do not count against later work", func(t *testing.T) {
		k := newClock()
		s := openStore(t, c, k.Now)
		d := state.NewDue(s, state.DueOptions{Sweep: 5 * time.Millisecond, Attempts: 2, Grace: grace})
		opens := openBatch(t, ids{3}.batch("b"), ids{3}.run("r"), 1, time.Time{})
		id := string(opens.Batch.ID)
		require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
		begin, end := make(chan string), make(chan error)
		work(t, d, state.Cards, func(ctx context.Context, id string) error { return asked(ctx, id, begin, end) })
		attempts := func() string { return c.HGet(t.Context(), s.Prefix()+":{p03}:attempts", "cards|"+id).Val() }

		wait(t, "the first attempt", begin)
		end <- errors.New("no")
		statetest.Await(t, "the count of attempts", func() bool { return attempts() == "1" })
		k.Advance(time.Minute)
		wait(t, "the second attempt", begin)
		require.NoError(t, s.CommitMemo(t.Context(), id, "cards", nil, 0, 1))
		require.Empty(t, attempts(), "the work is done")
		end <- nil
	})
	t.Run("an item that was to be parked is handled when it is new work", func(t *testing.T) {
		k := newClock()
		s := openStore(t, c, k.Now)
		d := state.NewDue(s, state.DueOptions{Sweep: 5 * time.Millisecond, Attempts: 1, Grace: grace})
		run := commitRun(t, s, agentrun.Run{ID: ids{2}.run("r"), Status: agentrun.RunQueued, CreatedAt: start0})
		begin, end := make(chan string), make(chan error)
		work(t, d, state.Runs, func(ctx context.Context, id string) error {
			if r, err := s.Run(ctx, approvals.RunID(id)); err == nil && r.Status == agentrun.RunQueued {
				r.Status, r.Owner, r.LeaseEnds = agentrun.RunRunning, "me", k.Now().Add(30*time.Second)
				if err := s.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{r}}); err != nil {
					return err
				}
			}
			return asked(ctx, id, begin, end)
		})
		attempts := s.Prefix() + ":{p02}:attempts"
		wait(t, "the attempt", begin)
		end <- errors.New("poison") // after its claim, so it is parked when that is over
		statetest.Await(t, "the count of attempts", func() bool {
			return c.HGet(t.Context(), attempts, "runs|"+string(run.ID)).Val() == "1"
		})
		// Someone else finishes that work, and later there is more.
		r, err := s.Run(t.Context(), run.ID)
		require.NoError(t, err)
		r.Status, r.Owner = agentrun.RunDeferred, ""
		r = commitRun(t, s, r)
		r.Status, r.LeaseEnds = agentrun.RunQueued, time.Time{}
		commitRun(t, s, r)
		require.Zero(t, c.Exists(t.Context(), attempts).Val(), "its attempts begin again")
		require.Equal(t, string(run.ID), wait(t, "the new work", begin))
		end <- later(time.Hour)
		requireParked(t, d)
	})
	t.Run("what was found is looked for again at the next sweep", func(t *testing.T) {
		k := newClock()
		s := openStore(t, c, k.Now)
		d := state.NewDue(s, state.DueOptions{Sweep: 5 * time.Millisecond, Workers: 1, Grace: grace})
		var batches []agentrun.OpenBatch
		for _, id := range []string{"first", "second", "third"} {
			opens := openBatch(t, ids{5}.batch(id), ids{5}.run(id), 1, time.Time{})
			require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
			batches = append(batches, opens)
			k.Advance(time.Second)
		}
		begin, end := make(chan string), make(chan error)
		work(t, d, state.Cards, func(ctx context.Context, id string) error { return asked(ctx, id, begin, end) })
		require.Equal(t, string(batches[0].Batch.ID), wait(t, "the first", begin))
		// Another process draws the second, and a sweep goes by.
		require.NoError(t, s.CommitMemo(t.Context(), string(batches[1].Batch.ID), "cards", nil, 0, 1))
		k.Advance(time.Minute)
		statetest.Await(t, "a sweep", func() bool { return d.Healthy(k.Now()) })
		end <- later(time.Hour)
		require.Equal(t, string(batches[2].Batch.ID), wait(t, "the next", begin), "nobody has to look at the second any more")
		end <- later(time.Hour)
	})
}

// remembers: a commit that is sent again minutes later is answered as it was the
// first time.
func remembers(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	opens := openBatch(t, ids{9}.batch("b"), ids{9}.run("r"), 1, time.Time{})
	commit := agentrun.Commit{Request: "again", Opens: &opens}
	require.NoError(t, s.Commit(t.Context(), commit))
	keys, err := c.Keys(t.Context(), s.Prefix()+":{p09}:request:*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	left, err := c.TTL(t.Context(), keys[0]).Result()
	require.NoError(t, err)
	require.Greater(t, left, 9*time.Minute)
	require.LessOrEqual(t, left, 10*time.Minute)
}
