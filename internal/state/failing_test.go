package state_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// claims: a handler that claims a run and then fails, every time, is parked
// too, though each claim moves the item to the end of its lease.
func claims(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	s := openStore(t, c, k.Now)
	d := state.NewDue(s, state.DueOptions{Sweep: 5 * time.Millisecond, Attempts: 3, Grace: grace})
	run := commitRun(t, s, agentrun.Run{ID: ids{2}.run("r"), Status: agentrun.RunQueued, CreatedAt: start0})
	claimed := make(chan struct{})
	work(t, d, state.Runs, func(ctx context.Context, id string) error {
		r, err := s.Run(ctx, approvals.RunID(id))
		if err != nil {
			return err
		}
		r.Status, r.Owner, r.LeaseEnds = agentrun.RunRunning, "me", k.Now().Add(30*time.Second)
		if err := s.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{r}}); err != nil {
			return err
		}
		select {
		case claimed <- struct{}{}:
		case <-ctx.Done():
		}
		return errors.New("poison")
	})
	attempts := s.Prefix() + ":{p02}:attempts"
	for n := 1; n <= 3; n++ {
		wait(t, "a claim", claimed)
		statetest.Await(t, "the count of attempts", func() bool {
			return c.HGet(t.Context(), attempts, "runs|"+string(run.ID)).Val() == strconv.Itoa(n)
		})
		k.Advance(31 * time.Second)
	}
	statetest.Await(t, "the run to be parked", func() bool { return score(t, s, state.Runs, string(run.ID)).IsZero() })
	requireParked(t, d, state.ParkedItem{
		Kind: state.Runs, ID: string(run.ID), Reason: "error", Attempts: 3, Since: k.Now(),
	})
}

// backsOff: a run that fails after each claim waits longer each time, also
// beyond its claim, and its claims do not end the count of its failures.
func backsOff(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	s := openStore(t, c, k.Now)
	told := make(chan string, 10)
	d := state.NewDue(s, state.DueOptions{
		Sweep: 5 * time.Millisecond, Attempts: 4, Grace: grace, Backoff: func(n int) time.Duration { return time.Duration(n) * time.Minute },
	})
	run := commitRun(t, s, agentrun.Run{ID: ids{2}.run("r"), Status: agentrun.RunQueued, CreatedAt: start0})
	released := make(chan struct{})
	attempt := func(ctx context.Context, id string) error {
		r, err := s.Run(ctx, approvals.RunID(id))
		if err != nil {
			return err
		}
		r.Status, r.Owner, r.LeaseEnds = agentrun.RunRunning, "me", k.Now().Add(30*time.Second)
		if err := s.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{r}}); err != nil {
			return err
		}
		r.Version++
		r.Status, r.Owner, r.LeaseEnds = agentrun.RunQueued, "", k.Now().Add(time.Second)
		if err := s.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{r}}); err != nil {
			return err
		}
		select {
		case released <- struct{}{}:
		case <-ctx.Done():
		}
		return errors.New("poison")
	}
	workOn(t, d, state.Task{
		Kind: state.Runs, Limit: time.Minute, Reconcile: attempt,
		Parked: func(_ context.Context, id string) { told <- id; panic("no other work is touched by it") },
	})
	for n := 1; n <= 3; n++ {
		wait(t, "an attempt", released)
		want := k.Now().Add(time.Duration(n) * time.Minute)
		statetest.Await(t, "what became of it", func() bool { return !score(t, s, state.Runs, string(run.ID)).Before(want) })
		requireScore(t, s, state.Runs, string(run.ID), want)
		k.Advance(time.Duration(n) * time.Minute)
	}
	wait(t, "the last attempt", released)
	statetest.Await(t, "the count of attempts", func() bool {
		return c.HGet(t.Context(), s.Prefix()+":{p02}:attempts", "runs|"+string(run.ID)).Val() == "4"
	})
	k.Advance(time.Minute)
	statetest.Await(t, "the run to be parked", func() bool { return score(t, s, state.Runs, string(run.ID)).IsZero() })
	requireParked(t, d, state.ParkedItem{
		Kind: state.Runs, ID: string(run.ID), Reason: "error", Attempts: 4, Since: k.Now(),
	})
	require.Equal(t, string(run.ID), wait(t, "the word that it is parked", told))
	require.Empty(t, told, "said once")
}

// unmoved: an entry that is taken away because its document says that there is
// nothing to do stays, if the document says something else by then. Its score
// alone does not tell: a run is due again at the same time as before.
func unmoved(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	calm := openStore(t, c, k.Now)
	run := commitRun(t, calm, agentrun.Run{ID: ids{2}.run("r"), Status: agentrun.RunQueued, CreatedAt: start0})
	at := score(t, calm, state.Runs, string(run.ID))
	run.Status = agentrun.RunWaiting
	run = commitRun(t, calm, run)
	require.NoError(t, calm.MakeDue(t.Context(), 2, state.Runs, string(run.ID), at))

	// Between what the loop reads of the run and what it writes, the run becomes
	// one that is due.
	var once sync.Once
	h := harmed(t, c, func(sent []byte) statetest.Fault {
		if bytes.Contains(sent, []byte("ZREM")) {
			once.Do(func() {
				run.Status = agentrun.RunQueued
				run = commitRun(t, calm, run)
			})
		}
		return statetest.None
	})
	s := openStoreAt(t, h, k.Now, calm.Prefix())
	d := state.NewDue(s, state.DueOptions{Sweep: 5 * time.Millisecond, Grace: grace})
	got := make(chan agentrun.Status, 100)
	work(t, d, state.Runs, func(ctx context.Context, id string) error {
		r, err := s.Run(ctx, approvals.RunID(id))
		select {
		case got <- r.Status:
		default:
		}
		return err
	})
	require.Equal(t, agentrun.RunWaiting, wait(t, "the stale entry", got))
	for status := agentrun.RunWaiting; status != agentrun.RunQueued; {
		status = wait(t, "the run that is due now", got)
	}
}
