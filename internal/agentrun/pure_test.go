package agentrun_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// reading is a world whose tool plain changes nothing.
func reading(t *testing.T) (*world, *fake) {
	t.Helper()
	w := newWorld(t)
	plain := w.does("plain", agentrun.KindFunction)
	plain.spec.Effect = agentrun.EffectPure
	w.agent.Tools = []agentrun.Tool{plain, w.does("other", agentrun.KindFunction)}
	return w, plain
}

// journaled lists the states of the entries of each commit that has some.
func (h *hooked) journaled() [][]agentrun.EntryState {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all [][]agentrun.EntryState
	for _, c := range h.commits {
		var states []agentrun.EntryState
		for _, e := range c.Entries {
			states = append(states, e.State)
		}
		if len(states) > 0 {
			all = append(all, states)
		}
	}
	return all
}

func TestTheJournalOfACallThatChangesNothingIsStoredWithItsResult(t *testing.T) {
	const started, finished = agentrun.EntryStarted, agentrun.EntryFinished
	w, _ := reading(t)
	run := w.say(calls([3]string{"a", "plain", `{"x":1}`}, [3]string{"b", "plain", `{"x":2}`}))
	require.Equal(t, agentrun.RunCompleted, run.Status)
	require.Equal(t, [][]agentrun.EntryState{{finished, finished}}, w.store.journaled())
	for _, c := range w.store.commits {
		if len(c.Entries) > 0 {
			require.Len(t, c.Append.Messages[0].(agentrun.Request).Parts, 2, "in one step")
		}
	}
	entries, err := w.store.Journal(t.Context(), run.ID)
	require.NoError(t, err)
	require.Len(t, entries, 2)

	w, _ = reading(t)
	require.Equal(t, agentrun.RunCompleted, w.say(calls([3]string{"a", "other", `{"x":1}`})).Status)
	require.Equal(t, [][]agentrun.EntryState{{started}, {finished}}, w.store.journaled(), "any other is stored before it runs, and after")
}

// Nothing is in doubt when its worker dies: the next one makes the call again, if the
// policy still permits it.
func TestACallThatChangesNothingIsMadeAgainByTheNextWorker(t *testing.T) {
	for name, tt := range map[string]struct {
		now approvals.Ruling
		ran []string
	}{
		"permitted": {approvals.Permit{}, []string{"plain:1", "plain:1"}},
		"refused":   {approvals.Refuse{Reason: "no more"}, []string{"plain:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, plain := reading(t)
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			run := plain.execute
			plain.execute = func(within context.Context, c agentrun.Call) (agentrun.Result, error) {
				got, err := run(within, c)
				if ctx.Err() == nil {
					kill()
					return agentrun.Result{}, ctx.Err()
				}
				return got, err
			}
			w.store.before = func(int, agentrun.Commit) error { return ctx.Err() }
			w.model.answers = []any{calls([3]string{"a", "plain", `{"x":1}`})}
			id := w.mention("go").ID
			require.Error(t, w.runner().Work(ctx, id))
			w.store.before = nil
			w.policy.by = map[string]approvals.Ruling{"plain": tt.now}
			w.now = func() time.Time { return epoch.Add(time.Hour) } // the lease of the dead one is over
			require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
			require.Equal(t, tt.ran, w.executed())
		})
	}
}

// A store that does not take the beginning of a call leaves the run to any worker.
func TestARunWhoseCallDidNotBeginIsReleased(t *testing.T) {
	w, _ := reading(t)
	down := errors.New("down")
	w.store.before = func(_ int, c agentrun.Commit) error {
		if len(c.Entries) > 0 {
			return down
		}
		return nil
	}
	w.model.answers = []any{calls([3]string{"a", "other", `{"x":1}`})}
	id := w.mention("go").ID
	require.ErrorIs(t, w.runner().Work(t.Context(), id), down)
	require.Equal(t, agentrun.RunQueued, w.run(id).Status)
	require.Empty(t, w.executed())
	w.store.before = nil
	require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
	require.Equal(t, []string{"other:1"}, w.executed())
}

// A worker that cannot go on leaves the result of such a call to the next one, and to
// the people who look at the run.
func TestARunThatIsReleasedKeepsTheResultOfACallThatChangesNothing(t *testing.T) {
	w, _ := reading(t)
	other := w.does("alone", agentrun.KindFunction)
	other.spec.Sequential = true // it begins when the other one has ended
	w.agent.Tools = append(w.agent.Tools, other)
	down := errors.New("down")
	w.store.before = func(_ int, c agentrun.Commit) error {
		if len(c.Entries) > 0 && c.Entries[0].State == agentrun.EntryStarted {
			return down
		}
		return nil
	}
	w.model.answers = []any{calls([3]string{"a", "plain", `{"x":1}`}, [3]string{"b", "alone", `{"x":2}`})}
	id := w.mention("go").ID
	require.ErrorIs(t, w.runner().Work(t.Context(), id), down)
	require.Equal(t, agentrun.RunQueued, w.run(id).Status)
	entries, err := w.store.Journal(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, agentrun.EntryFinished, entries[0].State)
	w.store.before = nil
	require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
	require.Equal(t, []string{"plain:1", "alone:2"}, w.executed())
}

// A commit whose answer was lost may have stored the results. The run is released then,
// too: nobody waits for the end of its lease.
func TestARunWhoseResultsWereStoredWithoutAnAnswerIsReleased(t *testing.T) {
	w, _ := reading(t)
	lost := errors.New("no answer")
	w.store.after = func(_ int, c agentrun.Commit) error {
		if len(c.Entries) > 0 {
			return lost
		}
		return nil
	}
	w.model.answers = []any{calls([3]string{"a", "plain", `{"x":1}`})}
	id := w.mention("go").ID
	require.ErrorIs(t, w.runner().Work(t.Context(), id), lost)
	require.Equal(t, agentrun.RunQueued, w.run(id).Status)
	w.store.after = nil
	require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
	require.Equal(t, []string{"plain:1"}, w.executed())
}
