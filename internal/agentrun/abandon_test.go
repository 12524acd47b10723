package agentrun_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// A run whose history cannot be read can be ended all the same. Its thread is
// closed: nothing could ever go on with it.
func TestAbandonWithAHistoryThatCannotBeRead(t *testing.T) {
	ctx := t.Context()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	for name, harm := range map[string]func(t *testing.T, s *state.Store, run agentrun.Run){
		"a message": func(t *testing.T, s *state.Store, run agentrun.Run) {
			t.Helper()
			require.NoError(t, client.LSet(ctx, key(t, s, "messages", string(run.Thread)), 0, `{"kind":"of a later program"}`).Err())
		},
		"a message that is missing": func(t *testing.T, s *state.Store, run agentrun.Run) {
			t.Helper()
			require.NoError(t, client.RPop(ctx, key(t, s, "messages", string(run.Thread))).Err())
		},
		"the journal": func(t *testing.T, s *state.Store, run agentrun.Run) {
			t.Helper()
			require.NoError(t, client.HSet(ctx, key(t, s, "journal", string(run.ID)), "d:x", "{").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent.Pending = agentrun.PendingKeep
			clock := time.Now()
			w.now = func() time.Time { return clock }
			s, err := state.Open(ctx, state.Options{Client: client, Prefix: "t" + fmt.Sprint(len(name))})
			require.NoError(t, err)
			mention := func(event string) (agentrun.Run, error) {
				return w.runnerOn(s).Mention(ctx, agentrun.Mention{Event: event, Origin: origin, Agent: "ops", Requester: "alice", Text: event})
			}
			first, err := mention("first")
			require.NoError(t, err)
			w.model.answers = []any{calls([3]string{"g", "gated", `{"x":1}`})}
			require.NoError(t, w.runnerOn(s).Work(ctx, first.ID))
			deferred, err := s.Run(ctx, first.ID)
			require.NoError(t, err)
			second, err := mention("second")
			require.NoError(t, err)
			third, err := mention("third")
			require.NoError(t, err)
			resumed := settle(ctx, t, w, s, deferred)
			harm(t, s, resumed)

			require.Error(t, w.runnerOn(s).Work(ctx, resumed.ID))
			require.NoError(t, w.runnerOn(s).Park(ctx, resumed.ID, "It broke."))
			require.NoError(t, w.runnerOn(s).Abandon(ctx, resumed.ID, "Ended by hand."))
			ended, err := s.Run(ctx, resumed.ID)
			require.NoError(t, err)
			require.Equal(t, agentrun.RunFailed, ended.Status)
			require.Contains(t, ended.Failure, "Ended by hand. What was said in this thread cannot be read")
			for _, id := range []approvals.RunID{second.ID, third.ID} {
				run, err := s.Run(ctx, id)
				require.NoError(t, err)
				require.Equal(t, agentrun.RunFailed, run.Status)
				require.Contains(t, run.Failure, "Start a new thread.")
				require.Equal(t, clock.UTC(), run.EndedAt.UTC())
			}
			thread, err := s.Thread(ctx, resumed.Thread)
			require.NoError(t, err)
			require.Empty(t, thread.Active)
			require.Empty(t, thread.Queue)
			require.Equal(t, ended.Failure, "Ended by hand. "+thread.Closed)

			_, err = mention("fourth")
			require.ErrorIs(t, err, agentrun.ErrThreadClosed)
			again, err := mention("second")
			require.NoError(t, err, "a repeated delivery finds its run")
			require.Equal(t, second.ID, again.ID)
			require.Empty(t, w.executed())
		})
	}
}

// A store that does not answer closes nothing.
func TestAbandonWithAStoreThatFails(t *testing.T) {
	w := newWorld(t)
	id := w.mention("go").ID
	down := errors.New("down")
	require.ErrorIs(t, w.runnerOn(deaf{w.store, down}).Abandon(t.Context(), id, "x"), down)
	require.Empty(t, w.thread().Closed)
	require.Equal(t, id, w.thread().Active)
}

// deaf is a store that reads no messages.
type deaf struct {
	*memory
	err error
}

func (d deaf) Messages(context.Context, agentrun.ThreadID, int, int) ([]agentrun.Message, error) {
	return nil, d.err
}

// key is a key of the store, for what no program of ours does.
func key(t *testing.T, s *state.Store, kind, id string) string {
	t.Helper()
	n, err := approvals.Partition(id)
	require.NoError(t, err)
	return fmt.Sprintf("%s:{p%02d}:%s:%s", s.Prefix(), n, kind, id)
}

// settle approves what the run waits for and returns the run that resumes it.
func settle(ctx context.Context, t *testing.T, w *world, s *state.Store, deferred agentrun.Run) agentrun.Run {
	t.Helper()
	b, err := s.Batch(ctx, deferred.Deferred)
	require.NoError(t, err)
	call := b.Approvals[0].Call
	_, err = approvals.NewDesk(s, w.policy, nil, w.now).Decide(ctx, b.ID, "d", approvals.Decide{Decision: approvals.Decision{
		Call: call.ID, By: approvals.Principal{User: "bob"}, Verdict: approvals.Approve, Digest: call.Digest, At: w.now(),
	}})
	require.NoError(t, err)
	require.NoError(t, w.runnerOn(s).Resume(ctx, b.ID))
	id, err := agentrun.ResumeRunID(b.ID)
	require.NoError(t, err)
	run, err := s.Run(ctx, id)
	require.NoError(t, err)
	return run
}
