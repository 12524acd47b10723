package state_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
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

// never is a sweep that does not come in a test: what is found is found by a
// wake-up or a timer.
const never = time.Hour

// patience is how long a test waits for what must happen.
const patience = time.Minute

// work starts a loop that ends with the test and is waited for.
func work(t *testing.T, d *state.Due, k state.Kind, f func(ctx context.Context, id string) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- d.Work(ctx, k, f) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// workOn starts the loops of a process, which end with the test.
func workOn(t *testing.T, d *state.Due, some ...state.Task) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- statetest.Work(ctx, d, some...) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// grace is short where handlers wait for a test that may have failed.
const grace = 100 * time.Millisecond

// asked is a handler that says that it has begun and returns what it is told.
func asked(ctx context.Context, id string, begin chan<- string, end <-chan error) error {
	select {
	case begin <- id:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait receives from a channel.
func wait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		require.FailNow(t, "waited for "+what)
		panic("unreachable")
	}
}

// score returns when an item is due, as stored, and 0 if it is not in the index.
func score(t *testing.T, s *state.Store, k state.Kind, id string) time.Time {
	t.Helper()
	at, err := s.DueAt(t.Context(), k, id)
	require.NoError(t, err)
	return at
}

func requireScore(t *testing.T, s *state.Store, k state.Kind, id string, want time.Time) {
	t.Helper()
	if want.IsZero() {
		require.Zero(t, score(t, s, k, id), "%s of %s is due", k, id)
		return
	}
	require.WithinDuration(t, want, score(t, s, k, id), 20*time.Microsecond, "%s of %s", k, id)
}

func commitRun(t *testing.T, s *state.Store, r agentrun.Run) agentrun.Run {
	t.Helper()
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Runs: []agentrun.Run{r}}))
	r.Version++
	return r
}

// derived: what is due follows from the documents, in the same step.
func derived(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	s := openStore(t, c, k.Now)
	id := ids{40}
	created, lease := start0.Add(-time.Minute), start0.Add(30*time.Second)
	run := agentrun.Run{ID: id.run("r"), CreatedAt: created}
	for _, step := range []struct {
		status agentrun.Status
		lease  time.Time
		due    time.Time
	}{
		{agentrun.RunWaiting, time.Time{}, time.Time{}},
		{agentrun.RunQueued, time.Time{}, created},
		{agentrun.RunRunning, lease, lease},
		{agentrun.RunQueued, time.Time{}, created},
		{agentrun.RunQueued, lease, lease}, // put off
		{agentrun.RunParked, lease, time.Time{}},
		{agentrun.RunRunning, lease, lease},
		{agentrun.RunDeferred, lease, time.Time{}},
	} {
		k.Advance(time.Second)
		run.Status, run.LeaseEnds = step.status, step.lease
		run = commitRun(t, s, run)
		requireScore(t, s, state.Runs, string(run.ID), step.due)
		requireScore(t, s, state.Replies, string(run.ID), k.Now())
	}
	drawn := k.Now()
	k.Advance(time.Second)
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Runs: []agentrun.Run{run}, Undrawn: true}))
	requireScore(t, s, state.Replies, string(run.ID), drawn)
	run.Version++

	deadline := start0.Add(time.Hour)
	opens := openBatch(t, id.batch("b"), run.ID, 2, deadline)
	batch := string(opens.Batch.ID)
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
	requireScore(t, s, state.Cards, batch, k.Now())
	requireScore(t, s, state.Deadlines, batch, deadline)
	requireScore(t, s, state.Resumes, batch, time.Time{})
	k.Advance(time.Second)
	one := decide(t, opens.Batch, approvals.Approve, "")
	require.NoError(t, s.CommitBatch(t.Context(), one))
	requireScore(t, s, state.Cards, batch, k.Now())
	requireScore(t, s, state.Resumes, batch, time.Time{})
	two, events, err := one.Batch.Apply(approvals.Withdraw{By: "bo", At: k.Now()})
	require.NoError(t, err)
	require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Before: one.Batch, Batch: two, Events: events}))
	requireScore(t, s, state.Deadlines, batch, time.Time{})
	requireScore(t, s, state.Resumes, batch, k.Now())

	resume := agentrun.Run{ID: id.run("resume"), Status: agentrun.RunQueued, CreatedAt: k.Now(), Batch: two.ID}
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Runs: []agentrun.Run{resume}, Resumes: &two}))
	requireScore(t, s, state.Resumes, batch, time.Time{})
	requireScore(t, s, state.Runs, string(resume.ID), k.Now())

	// What this program does not execute is delivered, and never due to be resumed.
	opens = openBatch(t, id.batch("remote"), id.run("remote"), 1, deadline)
	opens.Batch.Executor = "api"
	batch = string(opens.Batch.ID)
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
	requireScore(t, s, state.Deliveries, batch, time.Time{})
	k.Advance(time.Second)
	settled := decide(t, opens.Batch, approvals.Approve, "")
	require.NoError(t, s.CommitBatch(t.Context(), settled))
	requireScore(t, s, state.Deliveries, batch, k.Now())
	requireScore(t, s, state.Resumes, batch, time.Time{})
	requireScore(t, s, state.Announcements, batch, k.Now())
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Resumes: &settled.Batch}))
	requireScore(t, s, state.Deliveries, batch, time.Time{})

	// Nobody is told of it, so there is nothing to announce, unless others are to give results.
	opens = openBatch(t, id.batch("untold"), id.run("untold"), 1, deadline)
	opens.Batch.Executor, opens.Batch.Untold = "api", true
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
	require.NoError(t, s.CommitBatch(t.Context(), decide(t, opens.Batch, approvals.Approve, "")))
	requireScore(t, s, state.Announcements, string(opens.Batch.ID), time.Time{})
	opens = openBatch(t, id.batch("external"), id.run("external"), 1, deadline)
	opens.Batch.Executor, opens.Batch.Untold = "api", true
	opens.Batch.Calls = []approvals.External{{Call: opens.Batch.Approvals[0].Call}}
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
	requireScore(t, s, state.Announcements, string(opens.Batch.ID), k.Now())
}

// wakes: a commit is heard at once, and what was not heard is found.
func wakes(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	t.Run("a commit wakes the loops that it concerns", func(t *testing.T) {
		s := openStore(t, c, time.Now)
		d := state.NewDue(s, state.DueOptions{Sweep: never})
		runs, replies := make(chan string, 10), make(chan string, 10)
		work(t, d, state.Runs, func(_ context.Context, id string) error { runs <- id; return nil })
		work(t, d, state.Replies, func(_ context.Context, id string) error { replies <- id; return nil })
		for n := range 3 {
			r := agentrun.Run{ID: ids{n}.run("r"), Status: agentrun.RunQueued, CreatedAt: start0}
			commitRun(t, s, r)
			for id := ""; id != string(r.ID); { // an earlier one may come again: it was not done
				id = wait(t, "the run", runs)
			}
			for id := ""; id != string(r.ID); {
				id = wait(t, "its reply", replies)
			}
		}
	})
	t.Run("a wake-up that was lost is healed by the sweep", func(t *testing.T) {
		s := openStore(t, c, newClock().Now)
		d := state.NewDue(s, state.DueOptions{Sweep: 20 * time.Millisecond})
		got := make(chan string, 10)
		work(t, d, state.Cards, func(_ context.Context, id string) error { got <- id; return nil })
		// What a commit writes, without what it publishes.
		batch := string(ids{7}.batch("b"))
		require.NoError(t, s.MakeDue(t.Context(), 7, state.Cards, batch, time.Time{}))
		require.Equal(t, batch, wait(t, "the sweep", got))
	})
	t.Run("a wake-up that came while the connection was down is healed by the next one", func(t *testing.T) {
		var down atomic.Bool
		h, cut := cuttable(t, c, func([]byte) statetest.Fault {
			if down.Load() {
				return statetest.LostRequest
			}
			return statetest.None
		})
		s := openStore(t, h, newClock().Now)
		calm := openStoreAt(t, c, newClock().Now, s.Prefix())
		d := state.NewDue(s, state.DueOptions{Sweep: never})
		got := make(chan string, 10)
		work(t, d, state.Runs, func(_ context.Context, id string) error { got <- id; return nil })
		first := commitRun(t, calm, agentrun.Run{ID: ids{1}.run("r"), Status: agentrun.RunQueued})
		require.Equal(t, string(first.ID), wait(t, "the run", got))
		down.Store(true)
		cut()
		second := commitRun(t, calm, agentrun.Run{ID: ids{2}.run("r"), Status: agentrun.RunQueued})
		down.Store(false)
		for id := ""; id != string(second.ID); {
			id = wait(t, "the run that nobody heard of", got)
		}
	})
	t.Run("an entry of the near future is met on time", func(t *testing.T) {
		s := openStore(t, c, time.Now)
		d := state.NewDue(s, state.DueOptions{Sweep: never})
		got := make(chan time.Time, 10)
		work(t, d, state.Runs, func(context.Context, string) error { got <- time.Now(); return nil })
		at := time.Now().Add(150 * time.Millisecond)
		commitRun(t, s, agentrun.Run{ID: ids{7}.run("r"), Status: agentrun.RunQueued, CreatedAt: at})
		require.False(t, wait(t, "the timer", got).Before(at.Add(-time.Millisecond)))
	})
	t.Run("the lease of a process that died is met on time without a sweep", func(t *testing.T) {
		s := openStore(t, c, time.Now)
		got := make(chan time.Time, 10)
		work(t, state.NewDue(s, state.DueOptions{Sweep: never}), state.Runs, func(context.Context, string) error {
			got <- time.Now()
			return later(time.Hour)
		})
		subscribed(t, s, 1)
		other := openStoreAt(t, c, time.Now, s.Prefix())
		ends := time.Now().Add(5500 * time.Millisecond) // this is later than what wakes loops at once
		commitRun(t, other, agentrun.Run{ID: ids{7}.run("r"), Status: agentrun.RunRunning, LeaseEnds: ends})
		require.False(t, wait(t, "the timer", got).Before(ends.Add(-time.Millisecond)))
	})
	t.Run("other processes are told of what is put off", func(t *testing.T) {
		s := openStore(t, c, time.Now)
		sub := c.Subscribe(t.Context(), s.WakeChannel())
		t.Cleanup(func() { _ = sub.Close() })
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)
		batch := string(ids{7}.batch("b"))
		require.NoError(t, s.MakeDue(t.Context(), 7, state.Cards, batch, time.Time{}))
		work(t, state.NewDue(s, state.DueOptions{Sweep: never}), state.Cards, func(context.Context, string) error { return later(10 * time.Second) })
		for m := ""; !strings.Contains(m, "@"); { // the first are those of sweeps
			m = wait(t, "the message", sub.Channel()).Payload
			if at, is := strings.CutPrefix(m, "7\n@cards "); is {
				at, _, _ = strings.Cut(at, "\n")
				require.Equal(t, strconv.FormatInt(score(t, s, state.Cards, batch).UnixMicro(), 10), at)
			}
		}
	})
	t.Run("a process that is busy loses what it has committed to another", func(t *testing.T) {
		s := openStore(t, c, time.Now)
		other := openStoreAt(t, c, time.Now, s.Prefix())
		begun, free := make(chan string, 10), make(chan struct{})
		work(t, state.NewDue(s, state.DueOptions{Sweep: never, Workers: 1, Grace: grace}), state.Cards, func(_ context.Context, id string) error {
			begun <- id
			<-free
			return later(time.Hour)
		})
		t.Cleanup(func() { close(free) })
		opens := func(name string) string {
			o := openBatch(t, ids{7}.batch(name), ids{7}.run(name), 1, time.Time{})
			require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &o}))
			return string(o.Batch.ID)
		}
		require.Equal(t, opens("first"), wait(t, "the first", begun))
		taken := make(chan string, 10)
		work(t, state.NewDue(other, state.DueOptions{Sweep: never}), state.Cards, func(_ context.Context, id string) error {
			taken <- id
			return later(time.Hour)
		})
		subscribed(t, s, 2)
		second := opens("second")
		for id := ""; id != second; { // the first may be begun here, too: nobody has claimed it
			id = wait(t, "the second", taken)
		}
	})
}

// later is an error that says when to come again.
type later time.Duration

func (l later) Error() string             { return "later" }
func (l later) RetryAfter() time.Duration { return time.Duration(l) }

// outcomes: what a handler returns decides about an item that it did not move.
func outcomes(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	s := openStore(t, c, k.Now)
	d := state.NewDue(s, state.DueOptions{
		Sweep: 5 * time.Millisecond, Attempts: 3, Grace: grace, Backoff: func(n int) time.Duration { return time.Duration(n) * time.Minute },
	})
	opens := openBatch(t, ids{1}.batch("b"), ids{1}.run("r"), 1, time.Time{})
	id, key := string(opens.Batch.ID), state.Cards
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))

	begin, end := make(chan string), make(chan error)
	work(t, d, key, func(ctx context.Context, id string) error {
		err := asked(ctx, id, begin, end)
		if err != nil && err.Error() == "panic" {
			panic("with a reason")
		}
		return err
	})
	// handle lets the handler return err, and waits until the index says that
	// the item is to be met after that time.
	handle := func(err error, after time.Duration) {
		t.Helper()
		require.Equal(t, id, wait(t, "the handler", begin))
		want := k.Now().Add(after)
		end <- err
		statetest.Await(t, "what became of it", func() bool { return !score(t, s, key, id).Before(want) })
		requireScore(t, s, key, id, want)
		k.Advance(after)
	}
	handle(nil, time.Second)
	handle(later(7*time.Second), 7*time.Second)
	handle(fmt.Errorf("draw: %w", later(0)), 10*time.Millisecond)
	handle(errors.New("no"), time.Minute)
	handle(errors.New("panic"), 2*time.Minute)
	requireParked(t, d)

	wait(t, "the third attempt", begin)
	end <- context.DeadlineExceeded
	statetest.Await(t, "the item to be parked", func() bool { return score(t, s, key, id).IsZero() })
	requireParked(t, d, state.ParkedItem{Kind: key, ID: id, Reason: "timeout", Attempts: 3, Since: k.Now()})

	require.NoError(t, d.Unpark(t.Context(), key, id))
	requireParked(t, d)
	handle(errors.New("no"), time.Minute) // its attempts begin again
	handle(errors.New("no"), 2*time.Minute)
	wait(t, "the third attempt", begin)
	end <- errors.New("no")
	statetest.Await(t, "the item to be parked", func() bool { return score(t, s, key, id).IsZero() })
	requireParked(t, d, state.ParkedItem{Kind: key, ID: id, Reason: "error", Attempts: 3, Since: k.Now()})

	// A new state of the batch takes it out of parked, and its score stands
	// against the failure of a handler that saw the old one.
	require.NoError(t, s.CommitBatch(t.Context(), decide(t, opens.Batch, approvals.Approve, "")))
	requireParked(t, d)
	wait(t, "the new state", begin)
	k.Advance(time.Second)
	before := decide(t, opens.Batch, approvals.Approve, "").Batch
	withdrawn := before
	withdrawn.Version = 3
	require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Before: before, Batch: withdrawn}))
	newer := k.Now()
	end <- errors.New("no")
	wait(t, "the newer state", begin)
	requireScore(t, s, key, id, newer)
	require.Empty(t, c.HGetAll(t.Context(), s.Prefix()+":{p01}:attempts").Val(), "that failure was not about this state")
	k.Advance(time.Second)
	before, withdrawn.Version = withdrawn, 4
	require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Before: before, Batch: withdrawn}))
	newer = k.Now()
	end <- later(time.Hour)
	wait(t, "the newest state", begin)
	requireScore(t, s, key, id, newer)
	require.NoError(t, s.CommitMemo(t.Context(), id, "cards", nil, 0, 4))
	end <- nil
	statetest.Await(t, "the count", func() bool { return d.Counts()[key].Done == 2 })
	requireScore(t, s, key, id, time.Time{})

	require.Equal(t, state.Counts{Done: 2, Delayed: 3, Failed: 7, Parked: 2}, d.Counts()[key])
	require.ErrorIs(t, d.Unpark(t.Context(), key, id), approvals.ErrNotFound)
	require.Empty(t, c.HGetAll(t.Context(), s.Prefix()+":{p01}:attempts").Val())
}

func requireParked(t *testing.T, d *state.Due, want ...state.ParkedItem) {
	t.Helper()
	got, err := d.Parked(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// stale: an entry that the state does not bear out goes, without its handler.
func stale(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	d := state.NewDue(s, state.DueOptions{Sweep: 5 * time.Millisecond})
	run := commitRun(t, s, agentrun.Run{ID: ids{2}.run("r"), Status: agentrun.RunCompleted})
	require.NoError(t, s.MakeDue(t.Context(), 2, state.Runs, string(run.ID), time.Time{}))
	work(t, d, state.Runs, func(context.Context, string) error { return nil })
	statetest.Await(t, "the entry to go", func() bool { return score(t, s, state.Runs, string(run.ID)).IsZero() })
}
