package state_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

func servers(b *testing.B, f func(b *testing.B, c redis.UniversalClient)) {
	b.Helper()
	for name, open := range map[string]func(testing.TB) redis.UniversalClient{
		"miniredis": statetest.Miniredis, "redis": statetest.Redis,
	} {
		b.Run(name, func(b *testing.B) { f(b, open(b)) })
	}
}

func openBench(b *testing.B, c redis.UniversalClient) *state.Store {
	b.Helper()
	s, err := state.Open(b.Context(), state.Options{Client: c, Prefix: fmt.Sprintf("bench%d", time.Now().UnixNano())})
	require.NoError(b, err)
	return s
}

// BenchmarkCommit moves a batch, one commit after the other, and reports how
// many PINGs of the same client take as long.
func BenchmarkCommit(b *testing.B) {
	servers(b, func(b *testing.B, c redis.UniversalClient) {
		b.Helper()
		s := openBench(b, c)
		batch := approvals.Batch{
			ID: "batch-01-b", Version: 1, Approvals: []approvals.Approval{{Status: approvals.Pending}},
		}
		require.NoError(b, s.CommitBatch(b.Context(), approvals.BatchCommit{Batch: batch}))
		const pings = 2000
		began := time.Now()
		for range pings {
			require.NoError(b, s.Ping(b.Context()))
		}
		floor := time.Since(began) / pings
		began = time.Now()
		n := 0
		for b.Loop() {
			before := batch
			batch.Version++
			n++
			if err := s.CommitBatch(b.Context(), approvals.BatchCommit{
				Before: before, Batch: batch,
				Events: []approvals.Event{approvals.Settled{Batch: batch.ID, Call: "c"}},
			}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(time.Since(began))/float64(n)/float64(floor), "pings/op")
	})
}

// BenchmarkPickup measures from the moment before a commit to the start of the
// handler that the commit woke.
func BenchmarkPickup(b *testing.B) {
	servers(b, func(b *testing.B, c redis.UniversalClient) {
		b.Helper()
		s := openBench(b, c)
		d := state.NewDue(s, state.DueOptions{})
		ctx, cancel := context.WithCancel(b.Context())
		begun, done := make(chan time.Time), make(chan error)
		go func() {
			done <- d.Work(ctx, state.Runs, func(ctx context.Context, id string) error {
				begun <- time.Now()
				return s.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{
					{ID: approvals.RunID(id), Status: agentrun.RunCompleted, Version: 1},
				}})
			})
		}()
		var total time.Duration
		n := 0
		for b.Loop() {
			run := agentrun.Run{
				ID: approvals.RunID(approvals.NewID("run", n%approvals.Partitions, fmt.Sprint(n))), Status: agentrun.RunQueued,
			}
			if err := s.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{run}}); err != nil {
				b.Fatal(err)
			}
			committed := time.Now()
			total += max((<-begun).Sub(committed), 0)
			n++
		}
		b.ReportMetric(float64(total.Microseconds())/float64(n), "µs-after-commit")
		cancel()
		require.NoError(b, <-done)
	})
}
