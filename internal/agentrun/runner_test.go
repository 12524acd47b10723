package agentrun_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A delivery that is repeated finds the run that the first one made, whatever
// has become of it.
func TestTheSameMentionTwice(t *testing.T) {
	w := newWorld(t)
	run := w.mention("go")
	require.Equal(t, run, w.mention("go"))
	require.Empty(t, w.thread().Queue)
	done := w.work(run.ID)
	require.Equal(t, done, w.mention("go"))
	require.Empty(t, w.thread().Active)
	require.Equal(t, approvals.RequestID("mention:"+string(run.ID)), w.store.commits[0].Request)
	require.Equal(t, "25h0m0s", w.store.commits[0].Keep.String())
}

func TestMentionsThatSayTooLittle(t *testing.T) {
	w := newWorld(t)
	for _, m := range []agentrun.Mention{
		{Origin: origin, Requester: "alice"}, {Event: "e", Origin: origin}, {Event: "e", Requester: "alice"},
	} {
		_, err := w.runner().Mention(t.Context(), m)
		require.ErrorIs(t, err, approvals.ErrInvalid)
	}
}

// One run at a time: the others wait, in order, also while people decide.
func TestTheQueueOfAThread(t *testing.T) {
	w := newWorld(t)
	w.agent.Pending = agentrun.PendingKeep
	first := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
	second, third := w.mention("second"), w.mention("third")
	require.Equal(t, agentrun.RunWaiting, second.Status)
	require.Equal(t, agentrun.RunWaiting, w.work(third.ID).Status, "it is not its turn")
	require.Equal(t, []approvals.RunID{second.ID, third.ID}, w.thread().Queue)

	w.decide(first.Deferred, "g", approvals.Deny, "")
	require.NoError(t, w.runner().Resume(t.Context(), first.Deferred))
	require.Equal(t, []approvals.RunID{second.ID, third.ID}, w.thread().Queue, "the answers come first")
	require.Equal(t, agentrun.RunCompleted, w.work(w.thread().Active).Status)

	require.Equal(t, second.ID, w.thread().Active)
	w.model.answers = []any{&agentrun.ModelError{Words: "The model is on holiday."}}
	require.Equal(t, "The model is on holiday.", w.work(second.ID).Failure)
	require.Equal(t, third.ID, w.thread().Active, "a run that fails lets go of the thread")
	require.Equal(t, agentrun.RunCompleted, w.work(third.ID).Status)
	require.Empty(t, w.thread().Active)
	require.Equal(t, "user: third", brief(w.model.requests[len(w.model.requests)-1].Messages)[5])
	requireAnswered(t, w.history())
}

func TestAFullQueue(t *testing.T) {
	w := newWorld(t)
	for i := range agentrun.MaxQueue + 1 {
		w.mention(fmt.Sprint(i))
	}
	m := agentrun.Mention{Event: "one more", Origin: origin, Agent: "ops", Requester: "alice"}
	_, err := w.runner().Mention(t.Context(), m)
	require.ErrorIs(t, err, agentrun.ErrQueueFull)
	m.Event = "ev-3"
	_, err = w.runner().Mention(t.Context(), m)
	require.NoError(t, err, "what is in the queue is found")
}

// A mention while a run works changes the thread under its hands, at any point.
func TestMentionsWhileARunWorks(t *testing.T) {
	w := newWorld(t)
	id, n := w.mention("go").ID, 0
	busy := false
	w.store.before = func(int, agentrun.Commit) error {
		if !busy && n < agentrun.MaxQueue {
			busy = true
			n++
			_, err := w.runner().Mention(context.Background(), agentrun.Mention{
				Event: fmt.Sprint(n), Origin: origin, Agent: "ops", Requester: "bob", Text: fmt.Sprint(n),
			})
			busy = false
			return err
		}
		return nil
	}
	w.model.answers = []any{calls([3]string{"p", "plain", `{"x":1}`})}
	require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
	require.Equal(t, []string{"plain:1"}, w.executed())
	require.Greater(t, n, 5)
	require.Len(t, w.thread().Queue, n-1)
	require.NotEmpty(t, w.thread().Active)
}

// What ends a run badly is said in words, and holds no secret.
func TestModelsThatFail(t *testing.T) {
	filtered, cut, broken := says("x"), calls([3]string{"a", "plain", `{"x":1}`}), says("x")
	filtered.FinishReason, cut.FinishReason, broken.FinishReason = agentrun.FinishContentFilter, agentrun.FinishLength, agentrun.FinishError
	for name, c := range map[string]struct {
		answer any
		words  string
	}{
		"in its own words": {fmt.Errorf("x: %w", &agentrun.ModelError{Code: agentrun.RateLimited, Words: "Too many requests.", Err: errors.New("hunter2")}), "Too many requests."},
		"without words":    {&agentrun.ModelError{Code: agentrun.ModelRefused}, "The model could not be reached"},
		"any other error":  {errors.New("hunter2"), "The model could not be reached"},
		"filtered":         {filtered, "filtered"},
		"cut off":          {cut, "length limit"},
		"broken off":       {broken, "stopped with an error"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.say(c.answer)
			require.Equal(t, agentrun.RunFailed, run.Status)
			require.Contains(t, run.Failure, c.words)
			require.NotContains(t, run.Failure, "hunter2")
			require.Empty(t, w.executed())
			require.Equal(t, epoch, run.EndedAt)
			require.Equal(t, []string{"user: go"}, brief(w.history()))
			require.Empty(t, w.thread().Active)
		})
	}
}

func TestAnAgentThatIsGone(t *testing.T) {
	w := newWorld(t)
	id := w.mention("go").ID
	w.agent.Name = "other"
	require.Contains(t, w.work(id).Failure, `"ops"`)
}

// Row 34: a history with open calls is closed before a run continues it.
func TestAPromptWithPendingCalls(t *testing.T) {
	w := newWorld(t)
	id := w.mention("go").ID
	run, thread := w.run(id), w.thread()
	run.From, run.To, thread.Messages = 1, 1, 1
	require.NoError(t, w.store.Commit(t.Context(), agentrun.Commit{
		Request: "seed", Thread: &thread, Runs: []agentrun.Run{run},
		Append: &agentrun.Append{Thread: thread.ID, Messages: []agentrun.Message{calls([3]string{"g", "gated", `{"x":1}`})}},
	}))
	require.Equal(t, agentrun.RunFailed, w.work(id).Status)
	require.Empty(t, w.model.requests)
	requireAnswered(t, w.history())
	require.Equal(t, agentrun.RunCompleted, w.work(w.mention("again").ID).Status)
}

// While a run works, others see at what, and how far it is.
func TestActivity(t *testing.T) {
	w := newWorld(t)
	id := w.mention("go").ID
	var during agentrun.Run
	w.agent.Tools = []agentrun.Tool{&fake{
		spec: agentrun.Spec{Name: "look", Sequential: true},
		execute: func(ctx context.Context, _ agentrun.Call) (_ agentrun.Result, err error) {
			during, err = w.store.Run(ctx, id)
			return agentrun.Result{}, err
		},
	}}
	w.model.answers = []any{calls([3]string{"a", "look", ""}, [3]string{"b", "look", ""}, [3]string{"c", "gone", ""})}
	done := w.work(id)
	require.Equal(t, []string{"look"}, during.Activity)
	require.Equal(t, 1, during.Steps)
	require.Equal(t, agentrun.RunRunning, during.Status)
	require.Empty(t, done.Activity)
	require.Equal(t, 2, done.Steps)
	require.Empty(t, done.Owner)
	require.Equal(t, w.thread().Messages, done.To)
}

// A store that fails ends nothing: the run is there for the next look.
func TestAStoreThatFails(t *testing.T) {
	down := errors.New("down")
	for n := 1; n <= 4; n++ {
		w := newWorld(t)
		clock := epoch
		w.now = func() time.Time { return clock }
		id := w.mention("go").ID
		first := w.store.n
		w.store.before = func(k int, _ agentrun.Commit) error {
			if k == first+n {
				return down
			}
			return nil
		}
		w.model.answers = []any{calls([3]string{"g", "gated", `{"x":1}`})}
		require.ErrorIs(t, w.runner().Work(t.Context(), id), down)
		require.Contains(t, []agentrun.Status{agentrun.RunQueued, agentrun.RunRunning}, w.run(id).Status)
		clock = clock.Add(time.Minute)
		if n == 3 {
			w.model.answers = []any{calls([3]string{"g", "gated", `{"x":1}`})} // its first answer was lost
		}
		require.Equal(t, agentrun.RunDeferred, w.work(id).Status)
	}
	w := newWorld(t)
	require.ErrorIs(t, w.runner().Work(t.Context(), "run-00-x"), approvals.ErrNotFound)
	require.ErrorIs(t, w.runner().Resume(t.Context(), "batch-00-x"), approvals.ErrNotFound)
	require.ErrorIs(t, w.runner().Abandon(t.Context(), "run-00-x", ""), approvals.ErrNotFound)
}

// Abandon ends runs that cannot continue, and no others.
func TestAbandon(t *testing.T) {
	w := newWorld(t)
	w.agent.Pending = agentrun.PendingKeep
	first := w.say(calls([3]string{"p", "plain", `{"x":1}`}, [3]string{"g", "gated", `{"x":1}`}))
	waiting, last := w.mention("waiting"), w.mention("last")
	ctx := t.Context()
	require.ErrorIs(t, w.runner().Abandon(ctx, first.ID, "x"), agentrun.ErrRunEnded, "people decide about it")
	require.NoError(t, w.runner().Abandon(ctx, waiting.ID, "Not needed."))
	require.Equal(t, []approvals.RunID{last.ID}, w.thread().Queue)
	require.Equal(t, "Not needed.", w.run(waiting.ID).Failure)

	w.decide(first.Deferred, "g", approvals.Approve, "")
	require.NoError(t, w.runner().Resume(ctx, first.Deferred))
	resumed := w.thread().Active
	require.NoError(t, w.runner().Abandon(ctx, resumed, "Stop."))
	require.Equal(t, last.ID, w.thread().Active)
	require.Equal(t, `g interrupted: "The run ended before this call was completed. It has no result."`, w.added()[3])
	require.Equal(t, []string{"plain:1"}, w.executed())

	w.model.answers = []any{func(context.Context) (agentrun.Response, error) {
		require.ErrorIs(t, w.runner().Abandon(ctx, last.ID, "x"), agentrun.ErrRunHeld)
		return says("done"), nil
	}}
	require.Equal(t, agentrun.RunCompleted, w.work(last.ID).Status)
	require.ErrorIs(t, w.runner().Abandon(ctx, last.ID, "x"), agentrun.ErrRunEnded)
	require.NoError(t, w.runner().Work(ctx, resumed))
	requireAnswered(t, w.history())
}

// A worker looks at what is its turn, and at nothing that people must look at.
func TestWhenARunIsDue(t *testing.T) {
	lease := epoch.Add(time.Minute)
	for status, want := range map[agentrun.Status]time.Time{
		agentrun.RunWaiting: {}, agentrun.RunQueued: lease, agentrun.RunRunning: lease, agentrun.RunDeferred: {},
		agentrun.RunCompleted: {}, agentrun.RunFailed: {}, agentrun.RunParked: {}, "": {}, "other": {},
	} {
		at, due := agentrun.Run{Status: status, CreatedAt: epoch, LeaseEnds: lease}.Due()
		require.Equal(t, want, at, status)
		require.Equal(t, !want.IsZero(), due, status)
	}
	at, due := agentrun.Run{Status: agentrun.RunQueued, CreatedAt: epoch}.Due()
	require.True(t, due)
	require.Equal(t, epoch, at, "nothing puts it off")
}
