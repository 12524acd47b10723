package state_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// slots: whatever an id, a request or a call is called, a commit of everything
// at once is in one slot, in every partition. Only a cluster refuses it
// otherwise.
func slots(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	for n := range approvals.Partitions {
		id := ids{n}
		const odd = "}{x}-{p63}:"
		thread := agentrun.Thread{ID: id.thread(odd)}
		run := agentrun.Run{ID: id.run(odd), Status: agentrun.RunQueued, CreatedAt: start0}
		opens := openBatch(t, id.batch(odd), run.ID, 2, start0.Add(time.Hour))
		require.NoError(t, s.Commit(t.Context(), agentrun.Commit{
			Request: "{r}" + odd, Thread: &thread, Runs: []agentrun.Run{run}, Opens: &opens,
			Append:  &agentrun.Append{Thread: thread.ID, Messages: []agentrun.Message{agentrun.Request{}}},
			Entries: []agentrun.Entry{{Run: run.ID, Call: "{c}" + odd, State: agentrun.EntryClaimed}},
		}))
		require.NoError(t, s.CommitMemo(t.Context(), string(opens.Batch.ID), "cards", nil, 0, 1))
		require.NoError(t, s.CommitMemo(t.Context(), string(run.ID), "{s}", nil, 0, 0))
	}
	tags := make(map[string]bool)
	for _, k := range keys(t, c, s) {
		_, tag, ok := strings.Cut(k, "{")
		tag, _, ok2 := strings.Cut(tag, "}")
		require.True(t, ok && ok2, k)
		tags[tag] = true
	}
	require.Len(t, tags, approvals.Partitions, "the hash tag of a key is its partition, whatever the ids hold")
}
