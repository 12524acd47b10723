package agentrun_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// writes lets someone write in the thread.
func (w *world) writes(user approvals.UserID, text string) (agentrun.Run, error) {
	w.t.Helper()
	return w.runner().Mention(w.t.Context(), agentrun.Mention{
		Event: "ev-" + text, Origin: origin, Agent: "ops", Requester: user, Text: text,
	})
}

const (
	superseded = `denied: "This tool call was not denied; it was withdrawn before it was approved. It was not executed. ` +
		`The reason that was given, quoted: \"superseded by a newer message of the person who asked\""`
	elsewhereToo = `denied: "This tool call was withdrawn before its result came in. Whether it was executed elsewhere is not known. ` +
		`The reason that was given, quoted: \"superseded by a newer message of the person who asked\""`
)

// The requester writes something new: what is pending ends, and the model reads
// both in one turn.
func TestANewMessageEndsWhatIsPending(t *testing.T) {
	w := newWorld(t)
	first := w.say(calls([3]string{"p", "plain", `{"x":1}`}, [3]string{"g", "gated", `{"x":2}`}, [3]string{"s", "slow", `{"x":3}`}))
	bob, err := w.writes("bob", "and the logs")
	require.NoError(t, err)
	other := w.batch(first.Deferred)

	message, err := w.writes("alice", "keep them")
	require.NoError(t, err)
	require.Equal(t, first.Deferred, message.Supersedes)
	require.Equal(t, []approvals.RunID{message.ID, bob.ID}, w.thread().Queue, "it is kept with what it ends")
	b := w.batch(first.Deferred)
	require.False(t, other.Settled())
	require.True(t, b.Settled())
	require.True(t, b.Approvals[0].Superseded())
	require.True(t, b.Calls[0].Superseded())
	require.Equal(t, approvals.UserID("alice"), b.Approvals[0].Ending.By)
	require.ErrorIs(t, w.store.move(b.ID, nil, approvals.Fulfill{
		Call: "s", Result: approvals.ToolReturn{ReturnValue: []byte(`1`)}, By: "job", At: epoch,
	}), approvals.ErrSettled, "a late result")
	require.ErrorIs(t, w.store.move(b.ID, nil, approvals.Decide{Decision: approvals.Decision{
		Call: "g", By: approvals.Principal{User: "bob"}, Verdict: approvals.Approve, Digest: b.Approvals[0].Call.Digest, At: epoch,
	}}), approvals.ErrSettled, "a late signature")

	resumed := w.resume(first.Deferred)
	require.Equal(t, agentrun.RunCompleted, resumed.Status, resumed.Failure)
	require.Equal(t, "keep them", resumed.Prompt)
	require.Equal(t, approvals.UserID("alice"), resumed.Requester)
	require.Equal(t, 1, resumed.Usage.Requests, "a new message has the limits of a new request")
	merged := w.run(message.ID)
	require.Equal(t, agentrun.RunMerged, merged.Status)
	require.Equal(t, epoch, merged.EndedAt)
	require.Len(t, w.model.requests, 2, "one turn for both")
	require.Equal(t, []string{
		"user: go", `call p plain{"x":1}`, `call g gated{"x":2}`, `call s slow{"x":3}`,
		`p success: "plain:1"`, "g " + superseded, "s " + elsewhereToo, "user: keep them", "text: done",
	}, brief(w.history()))
	require.Equal(t, []string{"plain:1"}, w.executed())
	requireAnswered(t, w.history())
	requireInOrder(t, w.model.requests[1].Messages)

	require.Equal(t, bob.ID, w.thread().Active, "what other people wrote comes next")
	require.Equal(t, agentrun.RunCompleted, w.work(bob.ID).Status)
	require.Empty(t, w.thread().Active)
	require.ErrorIs(t, w.runner().Abandon(t.Context(), message.ID, "x"), agentrun.ErrRunEnded)
	require.ErrorIs(t, w.runner().Park(t.Context(), message.ID, "x"), agentrun.ErrRunEnded)
	require.ErrorIs(t, w.runner().Retry(t.Context(), message.ID), agentrun.ErrRunEnded)
}

// What is approved is settled, and stays so.
func TestANewMessageLeavesWhatIsSigned(t *testing.T) {
	w := newWorld(t)
	first := w.say(calls([3]string{"g1", "gated", `{"x":1}`}, [3]string{"g2", "gated", `{"x":2}`}))
	w.decide(first.Deferred, "g1", approvals.Approve, "")
	_, err := w.writes("alice", "and now this")
	require.NoError(t, err)
	require.Equal(t, approvals.Approved, w.batch(first.Deferred).Approvals[0].Status)
	require.Equal(t, agentrun.RunCompleted, w.resume(first.Deferred).Status)
	require.Equal(t, []string{
		`call g1 gated{"x":1}`, `call g2 gated{"x":2}`, `g1 success: "gated:1"`, "g2 " + superseded, "user: and now this", "text: done",
	}, w.added())

	w = newWorld(t)
	first = w.say(calls([3]string{"g", "gated", `{"x":1}`}))
	w.decide(first.Deferred, "g", approvals.Approve, "")
	late, err := w.writes("alice", "too late")
	require.NoError(t, err)
	require.Empty(t, late.Supersedes, "the batch is settled: the message waits for its answer")
	require.Equal(t, []approvals.RunID{late.ID}, w.thread().Queue)
	require.Equal(t, agentrun.RunCompleted, w.resume(first.Deferred).Status)
	require.Equal(t, agentrun.RunCompleted, w.work(late.ID).Status)
	require.Equal(t, []string{"gated:1"}, w.executed())
	require.Len(t, w.model.requests, 3)
}

// Only the one who asked, and only the agent that was asked.
func TestMessagesThatEndNothing(t *testing.T) {
	for what, m := range map[string]agentrun.Mention{
		"of someone else":   {Event: "e", Origin: origin, Agent: "ops", Requester: "bob", Text: "hey"},
		"for another agent": {Event: "e", Origin: origin, Agent: "other", Requester: "alice", Text: "hey"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			first := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
			runner := agentrun.NewRunner(agentrun.Config{
				Store: w.store, Policy: w.policy, Now: w.now,
				Agents: func(name string) (agentrun.Agent, bool) {
					agent := w.agent
					agent.Name = name
					return agent, name == "ops" || name == "other"
				},
			})
			run, err := runner.Mention(t.Context(), m)
			require.NoError(t, err)
			require.Empty(t, run.Supersedes)
			require.Equal(t, []approvals.RunID{run.ID}, w.thread().Queue)
			require.False(t, w.batch(first.Deferred).Settled())
		})
	}
}

func TestTheRulesForPendingCalls(t *testing.T) {
	w := newWorld(t)
	w.agent.Pending = agentrun.PendingKeep
	first := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
	kept, err := w.writes("alice", "kept")
	require.NoError(t, err)
	require.Equal(t, agentrun.RunWaiting, kept.Status)
	require.Empty(t, kept.Supersedes)
	require.False(t, w.batch(first.Deferred).Settled())

	w.agent.Pending = agentrun.PendingRefuse
	for _, user := range []approvals.UserID{"alice", "bob"} {
		_, err = w.writes(user, "refused "+string(user))
		require.ErrorIs(t, err, agentrun.ErrPending)
		var pending *agentrun.PendingError
		require.ErrorAs(t, err, &pending)
		require.Equal(t, first.Deferred, pending.Batch.ID)
	}
	again, err := w.writes("alice", "kept")
	require.NoError(t, err, "a repeated delivery of what was taken")
	require.Equal(t, kept.ID, again.ID)
	require.Equal(t, []approvals.RunID{kept.ID}, w.thread().Queue)

	w.decide(first.Deferred, "g", approvals.Deny, "")
	_, err = w.writes("alice", "after")
	require.NoError(t, err, "nothing is pending any more")
}

// A delivery that is repeated at any time counts once.
func TestAMessageThatSupersedesCountsOnce(t *testing.T) {
	w := newWorld(t)
	first := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
	write := func() agentrun.Run {
		t.Helper()
		run, err := w.writes("alice", "new")
		require.NoError(t, err)
		return run
	}
	once := write()
	require.Equal(t, once.ID, write().ID)
	require.NoError(t, w.runner().Resume(t.Context(), first.Deferred))
	require.Equal(t, once.ID, write().ID)
	require.NoError(t, w.runner().Resume(t.Context(), first.Deferred))
	require.Equal(t, agentrun.RunCompleted, w.work(w.thread().Active).Status)
	require.Equal(t, once.ID, write().ID)
	require.Empty(t, w.thread().Active)
	require.Len(t, w.model.requests, 2)
}

// What a person wrote goes along until a model has read it.
func TestAMessageThatMustWaitOnceMore(t *testing.T) {
	w := newWorld(t)
	twice := w.does("twice", agentrun.KindUnapproved)
	run, asked := twice.execute, 0
	twice.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
		if asked++; asked == 1 {
			return agentrun.Result{}, &agentrun.ApprovalRequired{}
		}
		return run(ctx, c)
	}
	w.agent.Tools = append(w.agent.Tools, twice)
	first := w.say(calls([3]string{"t", "twice", `{"x":1}`}, [3]string{"g", "gated", `{"x":2}`}))
	w.decide(first.Deferred, "t", approvals.Approve, "")
	_, err := w.writes("alice", "one")
	require.NoError(t, err)
	second := w.resume(first.Deferred)
	people, _ := w.pending(second)
	require.Equal(t, []string{"t"}, people)
	_, err = w.writes("alice", "two")
	require.NoError(t, err)
	require.Equal(t, agentrun.RunCompleted, w.resume(second.Deferred).Status)
	require.Equal(t, []string{
		`call t twice{"x":1}`, `call g gated{"x":2}`, "g " + superseded, "t " + superseded, "user: one\n\ntwo", "text: done",
	}, w.added())
	require.Len(t, w.model.requests, 2)
}

// The words of a person are in the history also if the run comes to nothing.
func TestAMessageWhoseRunReachesALimit(t *testing.T) {
	w := newWorld(t)
	first := w.say(calls([3]string{"g1", "gated", `{"x":1}`}, [3]string{"g2", "gated", `{"x":2}`}, [3]string{"g3", "gated", `{"x":3}`}))
	w.agent.Limits = agentrun.Limits{ToolCalls: 1} // lowered while people decided
	w.decide(first.Deferred, "g1", approvals.Approve, "")
	w.decide(first.Deferred, "g2", approvals.Approve, "")
	_, err := w.writes("alice", "new")
	require.NoError(t, err)
	require.Equal(t, agentrun.RunFailed, w.resume(first.Deferred).Status)
	added := w.added()
	require.Equal(t, "user: new", added[len(added)-1])
	require.Empty(t, w.executed())
	requireAnswered(t, w.history())
}

// supersedeStory is a conversation in which alice twice changes her mind.
func (w *world) supersedeStory(d death) (commits int) {
	t := w.t
	t.Helper()
	store := &mortal{hooked: w.store, death: d}
	runner, clock := w.runnerOn(store), epoch
	w.now = func() time.Time { return clock }
	do := func(f func(r *agentrun.Runner) error) {
		t.Helper()
		err := f(runner)
		if err == nil && !store.dead {
			return
		}
		require.True(t, store.dead, "%v", err)
		clock = clock.Add(time.Hour)
		runner = w.runner()
		require.NoError(t, f(runner))
	}
	w.model.reply = func(r agentrun.ModelRequest) agentrun.Response {
		switch len(r.Messages) {
		case 1:
			return calls([3]string{"p1", "plain", `{"x":1}`}, [3]string{"g1", "gated", `{"x":1}`},
				[3]string{"s1", "slow", `{"x":1}`}, [3]string{"g2", "gated", `{"x":2}`})
		case 3:
			return calls([3]string{"g3", "gated", `{"x":3}`})
		default:
			return says("done")
		}
	}
	write := func(user approvals.UserID, text string) (run agentrun.Run) {
		t.Helper()
		do(func(r *agentrun.Runner) (err error) {
			run, err = r.Mention(t.Context(), agentrun.Mention{Event: text, Origin: origin, Agent: "ops", Requester: user, Text: text})
			return err
		})
		return run
	}
	write("alice", "go")
	for stage := 0; w.thread().Active != ""; stage++ {
		require.Less(t, stage, 20)
		active := w.thread().Active
		do(func(r *agentrun.Runner) error { return r.Work(t.Context(), active) })
		run := w.run(active)
		if run.Status != agentrun.RunDeferred {
			continue
		}
		if w.answerDoubts(run.Deferred) > 0 && w.batch(run.Deferred).Settled() {
			do(func(r *agentrun.Runner) error { return r.Resume(t.Context(), run.Deferred) })
			continue
		}
		if run.Parent == "" {
			w.decide(run.Deferred, "g1", approvals.Approve, "")
			write("bob", "bob too")
		}
		text := fmt.Sprintf("new %d", stage)
		message := write("alice", text)
		// Whatever happens, what is acknowledged is in the queue with what it ends.
		require.Equal(t, run.Deferred, w.run(message.ID).Supersedes)
		require.Equal(t, message.ID, w.thread().Queue[0])
		require.True(t, w.batch(run.Deferred).Settled())
		do(func(r *agentrun.Runner) error { return r.Resume(t.Context(), run.Deferred) })
		require.Equal(t, agentrun.RunMerged, w.run(message.ID).Status)
	}
	return store.n
}

// Kill the process at every commit, before and after it is applied.
func TestSupersedingKilledAtEveryCommit(t *testing.T) {
	whole := newWorld(t)
	commits := whole.supersedeStory(death{})
	require.Greater(t, commits, 20)
	want := brief(whole.history())
	require.Equal(t, []string{
		"user: go", `call p1 plain{"x":1}`, `call g1 gated{"x":1}`, `call s1 slow{"x":1}`, `call g2 gated{"x":2}`,
		`p1 success: "plain:1"`, `g1 success: "gated:1"`, "s1 " + elsewhereToo, "g2 " + superseded, "user: new 0",
		`call g3 gated{"x":3}`, "g3 " + superseded, "user: new 1", "text: done", "user: bob too", "text: done",
	}, want)
	doubts := 0
	for k := 1; k <= commits; k++ {
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				t.Logf("killed at commit %d, after it was applied: %v", k, after)
				w := newWorld(t)
				w.supersedeStory(death{k, after})
				ran := w.executed()
				slices.Sort(ran)
				require.Len(t, slices.Compact(slices.Clone(ran)), len(ran), "no effect twice: %v", ran)
				requireAnswered(t, w.history())
				if w.doubtsAsked() > 0 {
					doubts++
					return
				}
				require.Equal(t, want, brief(w.history()))
			})
		}
	}
	t.Logf("%d commits, %d of %d deaths in doubt", commits, doubts, 2*commits)
	require.Less(t, doubts, commits/2)
}

// A signature and a message at the same time: one of them is first, for
// everyone.
func TestAMessageRacesASignature(t *testing.T) {
	ended := 0
	for range 50 {
		w := newWorld(t)
		first := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
		b := w.batch(first.Deferred)
		var signing error
		var race sync.WaitGroup
		race.Go(func() {
			signing = w.store.move(b.ID, nil, approvals.Decide{Decision: approvals.Decision{
				Call: "g", By: approvals.Principal{User: "bob"}, Verdict: approvals.Approve, Digest: b.Approvals[0].Call.Digest, At: epoch,
			}})
		})
		for range 3 {
			race.Go(func() { _, _ = w.writes("alice", "new") })
		}
		race.Wait()
		run, err := w.writes("alice", "new")
		require.NoError(t, err)
		for range 3 {
			race.Go(func() { _ = w.runner().Resume(t.Context(), first.Deferred) })
		}
		race.Wait()
		for w.thread().Active != "" {
			w.work(w.thread().Active)
		}
		if run.Supersedes != "" {
			ended++
			require.ErrorIs(t, signing, approvals.ErrSettled)
			require.Empty(t, w.executed())
		} else {
			require.NoError(t, signing)
			require.Equal(t, []string{"gated:1"}, w.executed())
		}
		require.Len(t, slices.DeleteFunc(brief(w.history()), func(s string) bool { return s != "user: new" }), 1)
		requireAnswered(t, w.history())
	}
	t.Logf("the message was first %d times of 50", ended)
}
