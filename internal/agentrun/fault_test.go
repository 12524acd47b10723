package agentrun_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

var errKilled = errors.New("killed")

// A death is where a process dies: before or after its nth commit is applied.
// From then on it reaches nothing.
type death struct {
	commit int
	after  bool
}

// mortal is the store as one process sees it, up to its death.
type mortal struct {
	*hooked
	death death

	mu   sync.Mutex
	n    int
	dead bool
}

func (m *mortal) Commit(ctx context.Context, c agentrun.Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errKilled
	}
	m.n++
	if m.n == m.death.commit {
		m.dead = true
		if m.death.after {
			_ = m.hooked.Commit(ctx, c)
		}
		return errKilled
	}
	return m.hooked.Commit(ctx, c)
}

// story plays a whole conversation: a mention, two safe calls, a call that
// raises, two signatures of which one is denied, an external call, an answer.
// Whatever a process does not get done, the next one has to. It returns how
// many commits the process that may die has made.
func (w *world) story(d death) (commits int) {
	t := w.t
	t.Helper()
	mortal := &mortal{hooked: w.store, death: d}
	first := w.runnerOn(mortal)
	clock := epoch
	w.now = func() time.Time { return clock }
	ctx := t.Context()

	// do lets the mortal process do something, and then, if it is dead, another
	// one, when the leases are over.
	do := func(f func(r *agentrun.Runner) error) {
		err := f(first)
		if err == nil && !mortal.dead {
			return
		}
		require.True(t, mortal.dead, "%v", err)
		clock = clock.Add(time.Hour)
		first = w.runner()
		require.NoError(t, f(first))
	}
	w.model.answers = nil
	w.model.reply = func(r agentrun.ModelRequest) agentrun.Response {
		switch len(r.Messages) {
		case 1:
			return calls([3]string{"p1", "plain", `{"x":1}`}, [3]string{"g1", "gated", `{"x":1}`},
				[3]string{"s1", "slow", `{"x":1}`}, [3]string{"p2", "plain", `{"x":2}`}, [3]string{"g2", "gated", `{"x":2}`})
		case 3:
			return calls([3]string{"c1", "cond", `{"x":1}`}, [3]string{"p3", "plain", `{"x":3}`})
		default:
			return says("done")
		}
	}
	var run agentrun.Run
	do(func(r *agentrun.Runner) (err error) {
		run, err = r.Mention(ctx, agentrun.Mention{Event: "e1", Origin: origin, Agent: "ops", Requester: "alice", Text: "go"})
		return err
	})
	for range 6 {
		do(func(r *agentrun.Runner) error { return r.Work(ctx, run.ID) })
		run = w.run(run.ID)
		if run.Status != agentrun.RunDeferred {
			break
		}
		w.answerAll(run.Deferred)
		do(func(r *agentrun.Runner) error { return r.Resume(ctx, run.Deferred) })
		id, err := agentrun.ResumeRunID(run.Deferred)
		require.NoError(t, err)
		run = w.run(id)
	}
	return mortal.n
}

// answerAll approves what has an odd number, denies the rest, and delivers what
// ran elsewhere.
func (w *world) answerAll(id approvals.BatchID) {
	w.t.Helper()
	w.answerDoubts(id)
	for _, a := range w.batch(id).Approvals {
		if a.InDoubt() {
			continue
		}
		verdict := approvals.Approve
		if strings.HasSuffix(string(a.Call.ID), "2") {
			verdict = approvals.Deny
		}
		w.decide(id, a.Call.ID, verdict, "")
	}
	for _, c := range w.batch(id).Calls {
		w.fulfill(id, c.Call.ID, approvals.ToolReturn{ReturnValue: []byte(`"ok"`)})
	}
}

// Kill the process at every commit, before and after it is applied, and let people
// answer each call in doubt in each way: no effect happens twice that they did not
// let run again, the run goes on to its end, and the model is told what is known.
func TestKilledAtEveryCommit(t *testing.T) {
	whole := newWorld(t)
	commits := whole.story(death{})
	require.Greater(t, commits, 20)
	want := brief(whole.history())
	said := map[approvals.Verdict]string{
		approvals.GiveUp: approvals.DoubtGivenUpMessage, approvals.Happened: approvals.HappenedMessage,
	}
	calm := map[death]bool{} // those after which nobody is asked, so that it does not matter what people would say
	for _, verdict := range []approvals.Verdict{approvals.GiveUp, approvals.Happened, approvals.RunAgain} {
		doubts := 0
		for k := 1; k <= commits; k++ {
			for _, after := range []bool{false, true} {
				if calm[death{k, after}] {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					t.Logf("killed at commit %d, after it was applied: %v", k, after)
					w := newWorld(t)
					w.doubt = verdict
					w.story(death{k, after})
					require.Empty(t, w.thread().Active)
					requireAnswered(t, w.history())
					ran, all := w.executed(), strings.Join(brief(w.history()), "\n")
					slices.Sort(ran)
					switch once := slices.Compact(slices.Clone(ran)); {
					case w.doubtsAsked() == 0:
						require.Len(t, once, len(ran), "no effect twice: %v", ran)
						require.Equal(t, want, brief(w.history()))
						calm[death{k, after}] = true
						return
					case verdict == approvals.RunAgain:
						require.LessOrEqual(t, len(ran), len(once)+w.doubtsAsked(), "so many more were approved: %v", ran)
						require.ElementsMatch(t, want, brief(w.history()), "people let it run again")
					default:
						require.Len(t, once, len(ran), "no effect twice: %v", ran)
						require.Contains(t, all, said[verdict])
						require.Contains(t, all, "said bob")
					}
					doubts++
				})
			}
		}
		t.Logf("%s: %d commits, %d of %d deaths in doubt", verdict, commits, doubts, 2*commits)
		require.Positive(t, doubts)
	}
}

// doubtsAsked counts the calls in doubt about which people were asked.
func (w *world) doubtsAsked() (n int) {
	for _, id := range w.store.opened() {
		for _, a := range w.batch(id).Approvals {
			if a.InDoubt() {
				n++
			}
		}
	}
	return n
}

// A death within a tool leaves the call started. People are asked about it, and
// the siblings that had not begun go on meanwhile.
func TestACallInDoubtDoesNotStopItsSiblings(t *testing.T) {
	synctest.Test(t, aCallInDoubtDoesNotStopItsSiblings)
}

func aCallInDoubtDoesNotStopItsSiblings(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	store := &mortal{hooked: w.store}
	one, two := w.does("one", agentrun.KindFunction), w.does("two", agentrun.KindFunction)
	one.spec.Sequential, two.spec.Sequential = true, true
	run := one.execute
	one.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
		store.mu.Lock()
		store.dead = true
		store.mu.Unlock()
		return run(ctx, c)
	}
	w.agent.Tools = []agentrun.Tool{one, two}
	w.model.answers = []any{calls([3]string{"a", "one", `{"x":1}`}, [3]string{"b", "two", `{"x":1}`})}
	clock := epoch
	w.now = func() time.Time { return clock }
	id := w.mention("go").ID
	require.ErrorIs(t, w.runnerOn(store).Work(t.Context(), id), errKilled)

	require.NoError(t, w.runner().Work(t.Context(), id))
	require.Equal(t, agentrun.RunRunning, w.run(id).Status, "the lease is not over")
	clock = clock.Add(time.Minute)
	deferred := w.work(id)
	people, _ := w.pending(deferred)
	require.Equal(t, []string{"a"}, people)
	require.Equal(t, []string{"one:1", "two:1"}, w.executed())
	require.Len(t, w.model.requests, 1, "the model is not asked before people have answered")
	asked, _ := w.batch(deferred.Deferred).Approval("a")
	require.Equal(t, signedBy("bob", "carol"), asked.Requirement, "of a call that the policy had permitted: everyone whom it can ask")
	require.Equal(t, string(id)+"/a", asked.Doubt.Key)
	require.Empty(t, asked.Doubt.Approved)

	w.decide(deferred.Deferred, "a", approvals.Happened, "ticket 7 is there")
	require.Equal(t, agentrun.RunCompleted, w.resume(deferred.Deferred).Status)
	require.Equal(t, []string{"one:1", "two:1"}, w.executed())
	require.Equal(t, []string{
		"user: go", `call a one{"x":1}`, `call b two{"x":1}`, `b success: "two:1"`,
		`a success: "The tool did not report how this call ended. A person says that it took effect. What they wrote, quoted: \"ticket 7 is there\""`,
		"text: done",
	}, brief(w.history()))
}

// Two runners look at the same things at the same time, all the time.
func TestTwoRunnersRace(t *testing.T) {
	for range 30 {
		w := newWorld(t)
		w.model.answers = []any{
			calls([3]string{"p1", "plain", `{"x":1}`}, [3]string{"g1", "gated", `{"x":1}`}, [3]string{"p2", "plain", `{"x":2}`}),
		}
		both := func(f func(r *agentrun.Runner) error) {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { require.NoError(t, f(w.runner())) })
			}
			wg.Wait()
		}
		ctx := t.Context()
		both(func(r *agentrun.Runner) error {
			_, err := r.Mention(ctx, agentrun.Mention{Event: "e1", Origin: origin, Agent: "ops", Requester: "alice", Text: "go"})
			return err
		})
		id := w.thread().Active
		require.Empty(t, w.thread().Queue)
		both(func(r *agentrun.Runner) error { return r.Work(ctx, id) })
		batch := w.run(id).Deferred
		w.decide(batch, "g1", approvals.Approve, "")
		both(func(r *agentrun.Runner) error { return r.Resume(ctx, batch) })
		id = w.thread().Active
		both(func(r *agentrun.Runner) error { return r.Work(ctx, id) })
		require.Equal(t, agentrun.RunCompleted, w.run(id).Status)
		require.ElementsMatch(t, []string{"plain:1", "plain:2", "gated:1"}, w.executed())
		requireAnswered(t, w.history())
	}
}
