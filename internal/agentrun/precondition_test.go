package agentrun_test

import (
	"context"
	"fmt"
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

// noting is a store that remembers how far each execution came.
type noting struct {
	agentrun.Store
	mu     sync.Mutex
	states []string
}

func (n *noting) Commit(ctx context.Context, c agentrun.Commit) error {
	n.mu.Lock()
	for _, e := range c.Entries {
		n.states = append(n.states, strings.TrimSpace(fmt.Sprint(e.Call, " ", e.State, " ", e.Finish.Aside)))
	}
	n.mu.Unlock()
	return n.Store.Commit(ctx, c)
}

// approveAll approves what the run waits for, and resumes it.
func (w *world) approveAll(run agentrun.Run, on agentrun.Store) agentrun.Run {
	w.t.Helper()
	require.Equal(w.t, agentrun.RunDeferred, run.Status, run.Failure)
	for _, a := range w.batch(run.Deferred).Approvals {
		w.decide(run.Deferred, a.Call.ID, approvals.Approve, "")
	}
	require.NoError(w.t, w.runner().Resume(w.t.Context(), run.Deferred))
	id, err := agentrun.ResumeRunID(run.Deferred)
	require.NoError(w.t, err)
	require.NoError(w.t, w.runnerOn(on).Work(w.t.Context(), id))
	return w.run(id)
}

// waysToCheck are the two ways to find out that what people approved is no longer so.
var waysToCheck = map[string]bool{"by the tool": true, "by a second preview": false}

// People approved what they saw. If it is something else when the call is to run,
// they are asked again, and see both.
func TestAWorldThatHasMovedOnIsNotActedOn(t *testing.T) {
	for name, checks := range waysToCheck {
		t.Run(name, func(t *testing.T) {
			w, o := newWorld(t), &thing{}
			w.watches(o, checks)
			clock := epoch
			w.now = func() time.Time { return clock }
			journal := &noting{Store: w.store}
			first := w.say(calls([3]string{"a", "change", `{"x":1}`}, [3]string{"g", "gated", `{"x":2}`}))
			saw := w.previewOf(first.Deferred)

			o.value.Store(1)
			clock = clock.Add(time.Minute)
			second := w.approveAll(first, journal)
			people, _ := w.pending(second)
			require.Equal(t, []string{"a"}, people)
			require.Equal(t, []string{"gated:2"}, w.executed(), "only what the world agrees with")
			require.Contains(t, journal.states, "a finished precondition")
			require.Equal(t, checks, slices.Contains(journal.states, "a started"), "it need not begin to be refused")
			require.Equal(t, approvals.AskedAgain, w.batch(first.Deferred).Approvals[0].Execution.State)

			asked := w.batch(second.Deferred).Approvals[0]
			require.Empty(t, asked.Decisions, "the approval was for another world")
			require.Equal(t, approvals.GateRaised, asked.Gate)
			require.Equal(t, approvals.Preview{
				Status: approvals.PreviewMade, Reads: "look", Facts: []approvals.Fact{{Label: "Value", Value: "1"}},
				Content:      approvals.Content{Digest: approvals.PreviewDigest(second.Deferred, "a", "-1\n"), Size: 3},
				Precondition: []byte("1"), CheckedAt: clock, Again: 1,
				Before: approvals.Before{Batch: first.Deferred, Facts: saw.Facts, Content: saw.Content, CheckedAt: epoch},
			}, asked.Preview)
			before, err := w.store.Args(t.Context(), asked.Preview.Before.Batch, asked.Preview.Before.Content.Digest)
			require.NoError(t, err)
			require.Equal(t, "-0\n", string(before))

			require.Equal(t, agentrun.RunCompleted, w.approveAll(second, w.store).Status)
			require.Equal(t, []string{"gated:2", "change:1"}, w.executed())
			require.Equal(t, approvals.Ran, w.batch(second.Deferred).Approvals[0].Execution.State)
			require.Equal(t, 1, second.Usage.ToolCalls, "what was not executed is not counted")
			requireAnswered(t, w.history())
		})
	}
}

// Something else keeps changing the same thing. People are asked again twice,
// and no more.
func TestPeopleAreAskedAgainTwiceAndThenTheRunStops(t *testing.T) {
	for name, checks := range waysToCheck {
		t.Run(name, func(t *testing.T) {
			w, o := newWorld(t), &thing{}
			w.watches(o, checks)
			run := w.say(calls([3]string{"a", "change", `{"x":1}`}))
			var last approvals.BatchID
			for again := range agentrun.MaxReasks + 1 {
				last = run.Deferred
				require.Equal(t, again, w.previewOf(last).Again)
				o.value.Add(1)
				run = w.approveAll(run, w.store)
			}
			require.Equal(t, agentrun.RunFailed, run.Status)
			require.Equal(t, "change was not run. What it would change was different each time people had approved it, 3 times in a row. "+
				"This run stops here. Please ask again when nothing else changes it.", run.Failure)
			require.Empty(t, w.executed())
			require.Empty(t, w.thread().Active)
			words := "The call was not run: what it would change is different from what people saw when they approved it."
			require.Equal(t, []string{`call a change{"x":1}`, `a interrupted: "` + words + `"`}, w.added())
			require.Equal(t, approvals.Execution{State: approvals.NotRun, At: epoch, Words: words}, w.batch(last).Approvals[0].Execution)
			require.Len(t, w.model.requests, 1)
		})
	}
}

// What was changed back meanwhile is what people saw.
func TestWhatIsAsPeopleSawItRuns(t *testing.T) {
	for name, checks := range waysToCheck {
		t.Run(name, func(t *testing.T) {
			w, o := newWorld(t), &thing{}
			w.watches(o, checks)
			run := w.say(calls([3]string{"a", "change", `{"x":1}`}))
			o.value.Store(5)
			o.value.Store(0)
			require.Equal(t, agentrun.RunCompleted, w.approveAll(run, w.store).Status)
			require.Equal(t, []string{"change:1"}, w.executed())
		})
	}
}

// A tool that cannot say any more that it is the same does not act.
func TestAPreconditionThatCannotBeCheckedDoesNotHold(t *testing.T) {
	for name, breaks := range map[string]func(change *fake){
		"the preview fails": func(f *fake) {
			f.spec.Preview.Compute = func(context.Context, agentrun.Call) (agentrun.Preview, error) { return agentrun.Preview{}, errAway }
		},
		"the preview panics": func(f *fake) {
			f.spec.Preview.Compute = func(context.Context, agentrun.Call) (agentrun.Preview, error) { panic("no") }
		},
		"the preview is gone": func(f *fake) { f.spec.Preview = nil },
		"it has no precondition": func(f *fake) {
			f.spec.Preview.Compute = func(context.Context, agentrun.Call) (agentrun.Preview, error) { return agentrun.Preview{}, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, o := newWorld(t), &thing{}
			change, _ := w.watches(o, false)
			first := w.say(calls([3]string{"a", "change", `{"x":1}`}))
			breaks(change)
			second := w.approveAll(first, w.store)
			require.Empty(t, w.executed())
			got := w.previewOf(second.Deferred)
			require.Equal(t, []any{1, first.Deferred}, []any{got.Again, got.Before.Batch})
			require.Empty(t, got.Precondition)
			require.Equal(t, agentrun.RunCompleted, w.approveAll(second, w.store).Status, "people were told that nobody had looked")
			require.Equal(t, []string{"change:1"}, w.executed())
		})
	}
}

// The policy has its word on the call again. What it would permit by now, people
// were asked about, and they are asked again.
func TestThePolicyRulesOnACallThatIsAskedAgain(t *testing.T) {
	ask := approvals.Ask{Requirement: signedBy("bob")}
	for name, c := range map[string]struct {
		ruling approvals.Ruling
		want   func(t *testing.T, w *world, run agentrun.Run)
	}{
		"refuses": {approvals.Refuse{Reason: "not today"}, func(t *testing.T, w *world, run agentrun.Run) {
			t.Helper()
			require.Equal(t, agentrun.RunCompleted, run.Status)
			require.Contains(t, w.added(), `a denied: "not today"`)
		}},
		"permits": {approvals.Permit{}, func(t *testing.T, w *world, run agentrun.Run) {
			t.Helper()
			require.Equal(t, signedBy("bob", "carol"), w.batch(run.Deferred).Approvals[0].Requirement)
		}},
		"asks": {approvals.Ask{Requirement: signedBy("carol")}, func(t *testing.T, w *world, run agentrun.Run) {
			t.Helper()
			require.Equal(t, signedBy("carol"), w.batch(run.Deferred).Approvals[0].Requirement)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, o := newWorld(t), &thing{}
			change, _ := w.watches(o, true)
			change.spec.Kind = agentrun.KindFunction
			w.policy.by = map[string]approvals.Ruling{"change": ask}
			execute := change.execute
			change.execute = func(ctx context.Context, call agentrun.Call) (agentrun.Result, error) {
				w.policy.mu.Lock()
				w.policy.by["change"] = c.ruling // while it is about to run
				w.policy.mu.Unlock()
				return execute(ctx, call)
			}
			first := w.say(calls([3]string{"a", "change", `{"x":1}`}))
			o.value.Store(1)
			run := w.approveAll(first, w.store)
			require.Empty(t, w.executed())
			c.want(t, w, run)
		})
	}
}

// Only a tool that was given a precondition can say that it failed.
func TestAFailedPreconditionThatNobodySetIsAFailure(t *testing.T) {
	w := newWorld(t)
	w.agent.Tools = []agentrun.Tool{&fake{
		spec: agentrun.Spec{Name: "t"},
		execute: func(context.Context, agentrun.Call) (agentrun.Result, error) {
			return agentrun.Result{}, &agentrun.PreconditionFailed{}
		},
	}}
	require.Equal(t, agentrun.RunCompleted, w.say(calls([3]string{"a", "t", `{}`})).Status)
	require.Contains(t, w.added(), `a failed: "The tool failed without a reason that can be shown."`)
}

// A process dies at any commit, while the world moves on once: nothing runs
// twice, nothing runs that people did not see as it is, and nothing is lost.
func TestKilledAtEveryCommitWhileTheWorldMovesOn(t *testing.T) {
	for name, checks := range waysToCheck {
		t.Run(name, func(t *testing.T) {
			commits := newWorld(t).movingStory(checks, death{})
			require.Greater(t, commits, 10)
			for k := 1; k <= commits; k++ {
				for _, after := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) {
						t.Logf("killed at commit %d, after it was applied: %v", k, after)
						newWorld(t).movingStory(checks, death{k, after})
					})
				}
			}
		})
	}
}

// movingStory is one call that is approved twice, because the world moves on
// after the first time. It returns how many commits the process made that may die.
func (w *world) movingStory(checks bool, d death) (commits int) {
	t, o := w.t, &thing{}
	t.Helper()
	change, _ := w.watches(o, checks)
	run, seen := change.execute, map[string]bool{}
	change.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
		result, err := run(ctx, c)
		if err == nil {
			require.True(t, seen[fmt.Sprint(o.value.Load())], "people had seen it so")
			require.EqualValues(t, 1, o.value.Load())
		}
		return result, err
	}
	mortal := &mortal{hooked: w.store, death: d}
	runner := w.runnerOn(mortal)
	clock := epoch
	w.now = func() time.Time { return clock }
	do := func(f func(r *agentrun.Runner) error) {
		if err := f(runner); err == nil && !mortal.dead {
			return
		}
		require.True(t, mortal.dead)
		clock, runner = clock.Add(time.Hour), w.runner()
		require.NoError(t, f(runner))
	}
	w.model.reply = func(r agentrun.ModelRequest) agentrun.Response {
		if len(r.Messages) == 1 {
			return calls([3]string{"a", "change", `{"x":1}`})
		}
		return says("done")
	}
	var at agentrun.Run
	do(func(r *agentrun.Runner) (err error) {
		at, err = r.Mention(t.Context(), agentrun.Mention{Event: "e", Origin: origin, Agent: "ops", Requester: "alice", Text: "go"})
		return err
	})
	for asked := 0; ; asked++ {
		do(func(r *agentrun.Runner) error { return r.Work(t.Context(), at.ID) })
		if at = w.run(at.ID); at.Status != agentrun.RunDeferred {
			break
		}
		require.Less(t, asked, 3)
		seen[w.previewOf(at.Deferred).Facts[0].Value] = true
		if asked == 0 {
			o.value.Store(1)
		}
		if w.answerDoubts(at.Deferred) == 0 {
			w.decide(at.Deferred, "a", approvals.Approve, "")
		}
		do(func(r *agentrun.Runner) error { return r.Resume(t.Context(), at.Deferred) })
		id, err := agentrun.ResumeRunID(at.Deferred)
		require.NoError(t, err)
		at = w.run(id)
	}
	require.LessOrEqual(t, len(w.executed()), 1)
	require.Equal(t, agentrun.RunCompleted, at.Status, at.Failure)
	if w.doubtsAsked() == 0 { // it did not die while the call was going on
		require.Equal(t, []string{"change:1"}, w.executed())
	}
	requireAnswered(t, w.history())
	return mortal.n
}

// When its tool asks for something more, people are not told once again that what
// they had seen has changed.
func TestOnlyAStaleCallComesWithWhatPeopleHadSeen(t *testing.T) {
	w, o := newWorld(t), &thing{}
	change, _ := w.watches(o, true)
	run := w.say(calls([3]string{"a", "change", `{"x":1}`}))
	o.value.Add(1)
	run = w.approveAll(run, w.store)
	require.NotEmpty(t, w.previewOf(run.Deferred).Before)
	change.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
		return agentrun.Result{}, &agentrun.ApprovalRequired{Reason: "two keys"}
	}
	run = w.approveAll(run, w.store)
	got := w.previewOf(run.Deferred)
	require.Equal(t, 1, got.Again, "the limit counts on")
	require.Empty(t, got.Before)
}
