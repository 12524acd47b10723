package state_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// However many deadlines a group has, they are read in one round trip and committed in
// one. What the commits took out of the index is not looked up there.
func TestAGroupOfDeadlinesSharesItsRoundTrips(t *testing.T) {
	t.Parallel()
	client := statetest.Miniredis(t)
	s := openStore(t, client, time.Now)
	const all = 12
	openMany(t, s, all, "a", true)
	trips := &statetest.Trips{Of: func(c redis.Cmder) bool { // the other kinds of work are put off, and write no facts
		return c.Name() != "evalsha" || slices.ContainsFunc(c.Args(), func(a any) bool {
			key, _ := a.(string)
			return strings.HasSuffix(key, ":facts")
		})
	}}
	client.AddHook(trips)
	desk, d := newDesk(s, time.Now), state.NewDue(s, state.DueOptions{Sweep: never, Grace: grace})
	workOn(t, d, state.Task{Kind: state.Deadlines, Rank: 1, Together: all, Limit: time.Minute, Reconcile: func(ctx context.Context, id string) error {
		return desk.Tick(ctx, approvals.BatchID(id))
	}})
	statetest.Await(t, "the deadlines", func() bool { return d.Counts()[state.Deadlines].Done == all })
	taken := trips.Taken()
	for name, want := range map[string][]int{"hmget": {all}, "evalsha": {all}, "zscore": nil} {
		var sizes []int
		for _, names := range taken {
			if names[0] == name {
				sizes = append(sizes, len(names))
			}
		}
		require.Equal(t, want, sizes, name)
	}
	for i := range all {
		b, err := s.Batch(t.Context(), ids{i}.batch("a"))
		require.NoError(t, err)
		require.True(t, b.Settled())
	}
}

// A handler that fails, one that panics and one that asks for nothing keep nobody of
// their group from going on, and only their own items are put off.
func TestInAGroupEachItemHasItsOwnEnd(t *testing.T) {
	t.Parallel()
	client := statetest.Miniredis(t)
	s := openStore(t, client, time.Now)
	const all = 12
	openMany(t, s, all, "a", true)
	desk, d := newDesk(s, time.Now), state.NewDue(s, state.DueOptions{Grace: grace})
	bad, worse, idle := string(ids{0}.batch("a")), string(ids{5}.batch("a")), string(ids{7}.batch("a"))
	workOn(t, d, state.Task{Kind: state.Deadlines, Rank: 1, Together: 4, Limit: time.Minute, Reconcile: func(ctx context.Context, id string) error {
		switch id {
		case bad:
			return errors.New("it cannot be done")
		case worse:
			panic("nobody knew")
		case idle:
			return handled{}
		}
		return desk.Tick(ctx, approvals.BatchID(id))
	}})
	statetest.Await(t, "every end", func() bool {
		c := d.Counts()[state.Deadlines]
		return c.Done == all-3 && c.Failed >= 2 && c.Delayed == 1
	})
	for i := range all {
		b, err := s.Batch(t.Context(), ids{i}.batch("a"))
		require.NoError(t, err)
		require.Equal(t, !slices.Contains([]string{bad, worse, idle}, string(b.ID)), b.Settled(), b.ID)
	}
}

// Every change of a shared pipeline waits for what its level needs, and the server is
// asked once for all of them.
func TestASharedPipelineAsksForTheLevelOfItsChanges(t *testing.T) {
	t.Parallel()
	w, client := statetest.NewWitness(t)
	s := openAs(t, client, state.Replicated, 2)
	together := func(round int) (errs []error) {
		const all = 3
		ctx, _ := s.SharePipe(t.Context(), all)
		done := make(chan error, all)
		for i := range all {
			open := openBatch(t, ids{i}.batch(approvals.NewID("x", round, "y")), ids{i}.run("a"), 1, time.Time{})
			go func() {
				done <- s.CommitBatch(ctx, approvals.BatchCommit{Batch: open.Batch, Events: open.Events, Args: open.Args})
			}()
		}
		for range all {
			errs = append(errs, <-done)
		}
		return errs
	}
	w.Says(1, 1)
	for _, err := range together(1) {
		require.ErrorIs(t, err, approvals.ErrNotDurable)
	}
	w.Says(1, 2)
	w.Asked()
	for _, err := range together(2) {
		require.NoError(t, err)
	}
	require.Equal(t, []string{"WAITAOF 1 0", "WAIT 2"}, w.Asked())
}

// When the time of the handler that sends for all is over, the others have an answer
// all the same.
func TestWhoSharesAPipelineDoesNotFailWithOthers(t *testing.T) {
	t.Parallel()
	s := openStore(t, statetest.Miniredis(t), time.Now)
	openMany(t, s, 2, "a", true)
	ctx, waiting := s.SharePipe(t.Context(), 2)
	read := make(chan error, 1)
	go func() {
		_, err := s.Batch(ctx, ids{0}.batch("a"))
		read <- err
	}()
	statetest.Await(t, "the first to wait", func() bool { return waiting() == 1 })
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err := s.Batch(over, ids{1}.batch("a"))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, <-read)
}
