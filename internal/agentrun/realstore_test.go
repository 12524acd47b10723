package agentrun_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// The same story on the store that is shipped: what a commit says fits what the
// store does with it.
func TestTheStoryOnTheRealStore(t *testing.T) {
	w := newWorld(t)
	w.now = time.Now
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	ctx := t.Context()
	store, err := state.Open(ctx, state.Options{Client: client})
	require.NoError(t, err)
	runner := w.runnerOn(store)
	desk := approvals.NewDesk(store, w.policy, nil, time.Now)

	w.model.answers = []any{
		calls([3]string{"p", "plain", `{"x": 1}`}, [3]string{"g", "gated", `{"x": 2}`}, [3]string{"s", "slow", `{"x": 3}`}),
		calls([3]string{"c", "cond", `{"x": 4}`}),
	}
	run, err := runner.Mention(ctx, agentrun.Mention{Event: "e", Origin: origin, Agent: "ops", Requester: "alice", Text: "go"})
	require.NoError(t, err)
	waiting, err := runner.Mention(ctx, agentrun.Mention{Event: "f", Origin: origin, Agent: "ops", Requester: "alice", Text: "more"})
	require.NoError(t, err)
	id := run.ID
	for range 3 {
		require.NoError(t, runner.Work(ctx, id))
		run, err = store.Run(ctx, id)
		require.NoError(t, err)
		if run.Status != agentrun.RunDeferred {
			break
		}
		b, err := store.Batch(ctx, run.Deferred)
		require.NoError(t, err)
		for _, c := range b.Calls {
			_, err = desk.Fulfill(ctx, b.ID, approvals.RequestID("f"+string(c.Call.ID)), approvals.Fulfill{
				Call: c.Call.ID, Result: approvals.ToolReturn{ReturnValue: []byte(`{"rows": 3}`)}, By: "job", At: time.Now(),
			})
			require.NoError(t, err)
		}
		for _, a := range b.Approvals {
			_, err = desk.Decide(ctx, b.ID, approvals.RequestID("d"+string(a.Call.ID)), approvals.Decide{Decision: approvals.Decision{
				Call: a.Call.ID, By: approvals.Principal{User: "bob"}, Verdict: approvals.Approve, Digest: a.Call.Digest, At: time.Now(),
			}})
			require.NoError(t, err)
		}
		require.NoError(t, runner.Resume(ctx, b.ID))
		require.NoError(t, runner.Resume(ctx, b.ID))
		id, err = agentrun.ResumeRunID(b.ID)
		require.NoError(t, err)
	}
	require.Equal(t, agentrun.RunCompleted, run.Status, run.Failure)
	require.Equal(t, []string{"plain:1", "gated:2", "cond:4"}, w.executed())
	history, err := store.Messages(ctx, run.Thread, 0, run.To)
	require.NoError(t, err)
	requireAnswered(t, history)
	thread, err := store.Thread(ctx, run.Thread)
	require.NoError(t, err)
	require.Equal(t, waiting.ID, thread.Active)
	require.Equal(t, len(history), thread.Messages)
	require.NoError(t, runner.Work(ctx, waiting.ID))
	thread, err = store.Thread(ctx, run.Thread)
	require.NoError(t, err)
	require.Empty(t, thread.Active)
}
