package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// BenchmarkMetricsOnADecision measures what the metrics cost where people wait: the
// same decision on the same Redis, in turn by a desk that is measured and by one
// that is not. ratio is the time of the first to that of the second.
func BenchmarkMetricsOnADecision(b *testing.B) {
	client, ok := statetest.Redis(b).(*redis.Client)
	require.True(b, ok)
	var desks []*approvals.Desk
	var stores []*state.Store
	for _, listen := range []string{"", "127.0.0.1:9090"} {
		bot := &bot{metrics: newMetrics(config.Config{Metrics: config.Metrics{Listen: listen}})}
		o := bot.measured(state.Options{URL: "unix://" + client.Options().Addr, Now: time.Now})
		store, err := state.Open(b.Context(), o)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, store.Close()) })
		stores = append(stores, store)
		desks = append(desks, approvals.NewDesk(bot.metrics.Batches(store), refuseAll{}, nil, time.Now))
	}
	var took [2]time.Duration
	for b.Loop() {
		for i, desk := range desks {
			batch := openedBatch(b, stores[i])
			began := time.Now()
			_, err := desk.Decide(b.Context(), batch.ID, approvals.RequestID(uuid.NewString()), approvals.Decide{Decision: approvals.Decision{
				Call: "c1", Verdict: approvals.Approve, Digest: batch.Approvals[0].Call.Digest, By: approvals.Principal{User: bob},
			}})
			took[i] += time.Since(began)
			require.NoError(b, err)
		}
	}
	b.ReportMetric(float64(took[0].Microseconds())/float64(b.N), "µs/plain")
	b.ReportMetric(float64(took[1].Microseconds())/float64(b.N), "µs/measured")
	b.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
}

// openedBatch stores a batch that Bob may decide.
func openedBatch(b *testing.B, s *state.Store) approvals.Batch {
	b.Helper()
	call := approvals.ToolCall{ID: "c1", Name: "pay", Args: []byte(`{"amount":1}`)}
	batch, events, err := approvals.Open(approvals.Batch{
		ID: approvals.BatchID(approvals.NewID("batch", 7, uuid.NewString())), Run: approvals.RunID(approvals.NewID("run", 7, uuid.NewString())),
		Agent: "ops", Requester: alice, OpenedAt: time.Now(),
	}, []approvals.Deferral{{Call: call, Ask: approvals.Ask{Rule: "payments@1", Requirement: approvals.Requirement{
		Deadline: time.Now().Add(time.Hour), Quorums: []approvals.Quorum{{Name: "bob", Need: 1, From: approvals.From{Users: []approvals.UserID{bob}}}},
	}}}}, nil)
	require.NoError(b, err)
	require.NoError(b, s.CommitBatch(b.Context(), approvals.BatchCommit{
		Request: approvals.RequestID(uuid.NewString()), Batch: batch, Events: events,
		Args: map[approvals.Digest]json.RawMessage{batch.Approvals[0].Call.Digest: call.Args},
	}))
	return batch
}
