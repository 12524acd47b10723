package state_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// powerRounds is how often the power fails for each level: a few times in every
// test run, more in make soak.
var powerRounds = flag.Int("power", 3, "power failures for each durability")

// A clicker decides on batches until it is told to stop, several at a time, and
// remembers what it was told counts. What it was told nothing about it tries
// again, as a client does, with the same request.
type clicker struct {
	mu    sync.Mutex
	acked map[approvals.BatchID]bool
	tried []approvals.BatchCommit
}

func (c *clicker) click(ctx context.Context, s *state.Store, round int) {
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := approvals.BatchID(approvals.NewID("batch", w, fmt.Sprintf("r%d-%d", round, n)))
				commit := approvals.BatchCommit{
					Request: approvals.RequestID("click-" + string(id)),
					Batch:   approvals.Batch{ID: id, Run: "run-01-x", Version: 1, OpenedAt: time.Unix(1, 0)},
					Events:  []approvals.Event{approvals.Opened{Batch: id, At: time.Unix(1, 0)}},
				}
				c.mu.Lock()
				c.tried = append(c.tried, commit)
				c.mu.Unlock()
				if s.CommitBatch(ctx, commit) == nil {
					c.mu.Lock()
					c.acked[id] = true
					c.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

// check makes every click again and requires that what counted is there, and
// everything once.
func (c *clicker) check(t *testing.T, s *state.Store) (lost int) {
	t.Helper()
	for _, commit := range c.tried {
		_, err := s.Batch(t.Context(), commit.Batch.ID)
		if c.acked[commit.Batch.ID] && err != nil {
			lost++
		}
		require.NoError(t, madeOnce(s.CommitBatch(t.Context(), commit)), "the same request again")
	}
	times := map[approvals.BatchID]int{}
	for n := range 8 {
		facts, err := state.NewFeed(s).Facts(t.Context(), n, "", 1<<20)
		require.NoError(t, err)
		for _, f := range facts {
			opened, ok := f.Event.(approvals.Opened)
			require.True(t, ok)
			times[opened.Batch]++
		}
	}
	require.Len(t, times, len(c.tried))
	for id, n := range times {
		require.Equal(t, 1, n, "%s was applied more than once", id)
	}
	return lost
}

// clicksUntilOutage clicks for a while, lets the power fail in the middle, and
// returns what was clicked.
func clicksUntilOutage(t *testing.T, primary *statetest.Instance, s *state.Store, round int) *clicker {
	t.Helper()
	c := &clicker{acked: map[approvals.BatchID]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	clicked := make(chan struct{})
	go func() { defer close(clicked); c.click(ctx, s, round) }()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.acked) > 100+rand.IntN(100)
	}, 3*time.Minute, time.Millisecond, "clicks to be acknowledged")
	cut := primary.LosePower(rand.Float64())
	stop()
	<-clicked
	require.NotEmpty(t, c.acked)
	t.Logf("%d clicks were acknowledged of %d; the power failure cut off %d bytes of the log", len(c.acked), len(c.tried), cut)
	return c
}

// With fsync and replicated, nothing that was acknowledged is lost with the
// power of the machine, and nothing is there twice.
func TestPowerFailuresLoseNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	for _, level := range []state.Durability{state.Fsync, state.Replicated} {
		for round := range *powerRounds {
			t.Run(string(level)+" "+strconv.Itoa(round), func(t *testing.T) {
				t.Parallel()
				primary := statetest.NewMachine(t)
				replicas := 0
				if level == state.Replicated {
					primary.Replica()
					replicas = 1
				}
				s := openAs(t, primary.Client, level, replicas)
				c := clicksUntilOutage(t, primary, s, round)
				primary.Start()
				if level == state.Replicated {
					require.Eventually(t, func() bool { return s.Confirm(t.Context(), string(c.tried[0].Batch.ID)) == nil },
						time.Minute, 10*time.Millisecond, "the replica to be back")
				}
				require.Zero(t, c.check(t, s), "acknowledged clicks that are gone")
			})
		}
	}
}

// With replicated, that is so too when the machine never comes back.
func TestAFailoverLosesNothingThatWasReplicated(t *testing.T) {
	t.Parallel()
	for round := range *powerRounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			primary := statetest.NewMachine(t)
			replica := primary.Replica()
			c := clicksUntilOutage(t, primary, openAs(t, primary.Client, state.Replicated, 1), round)
			replica.Promote()
			require.Zero(t, c.check(t, openAs(t, replica.Client, state.None, 0)), "acknowledged clicks that are gone")
		})
	}
}

// The same with everysec loses what it is said to lose: a test that did not
// notice would notice nothing above.
func TestAPowerFailureUnderEverysecIsNoticed(t *testing.T) {
	t.Parallel()
	lost, acked, rounds := 0, 0, 0
	for round := 0; round < *powerRounds || lost == 0 && round < 20; round++ {
		primary := statetest.NewMachine(t, "--appendfsync", "everysec")
		s := openAs(t, primary.Client, state.Everysec, 0)
		c := clicksUntilOutage(t, primary, s, round)
		primary.Start()
		lost, acked, rounds = lost+c.check(t, s), acked+len(c.acked), rounds+1
	}
	t.Logf("one server, everysec: %d power failures lost %d of %d acknowledged clicks", rounds, lost, acked)
	require.Positive(t, lost)
}
