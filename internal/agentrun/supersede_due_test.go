package agentrun_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// What supersedes a batch is committed with what has to be looked at next: the
// due index alone brings the rest about.
func TestTheDueIndexCarriesOutASupersession(t *testing.T) {
	w := newWorld(t)
	w.now = time.Now
	store, runner := w.store.Store, w.runner()
	first := w.say(calls([3]string{"g", "gated", `{"x":1}`}, [3]string{"s", "slow", `{"x":2}`}))
	mention := func(user approvals.UserID, text string) agentrun.Run {
		t.Helper()
		run, err := w.writes(user, text)
		require.NoError(t, err)
		return run
	}
	other, message := mention("bob", "later"), mention("alice", "stop")
	require.Equal(t, message.ID, mention("alice", "stop").ID)

	due, done := state.NewDue(store, state.DueOptions{Sweep: 20 * time.Millisecond}), make(chan struct{})
	stop := sync.OnceFunc(func() { close(done) })
	working, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- statetest.Work(working, due,
			state.Task{Kind: state.Resumes, Limit: time.Minute, Reconcile: func(ctx context.Context, id string) error {
				return runner.Resume(ctx, approvals.BatchID(id))
			}},
			state.Task{Kind: state.Runs, Limit: time.Minute, Reconcile: func(ctx context.Context, id string) error {
				err := runner.Work(ctx, approvals.RunID(id))
				if id == string(other.ID) && err == nil {
					stop()
				}
				return err
			}},
		)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("the thread did not go on")
	}
	cancel()
	require.NoError(t, <-ended)
	require.Equal(t, agentrun.RunMerged, w.run(message.ID).Status)
	require.Empty(t, w.thread().Active)
	require.Equal(t, []string{
		"user: go", `call g gated{"x":1}`, `call s slow{"x":2}`, "g " + superseded, "s " + elsewhereToo, "user: stop", "text: done",
		"user: later", "text: done",
	}, brief(w.history()))
	require.True(t, w.batch(first.Deferred).Settled())
}
