package slackui_test

import (
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/stretchr/testify/require"
)

// approves commits Bob's signature without Slack.
func (o *workspace) approves(b approvals.Batch, i int) {
	o.t.Helper()
	ref := b.Approvals[i].Call
	_, err := o.desk.Decide(o.t.Context(), b.ID, approvals.RequestID("bob-"+ref.ID), approvals.Decide{Decision: approvals.Decision{
		Call: ref.ID, Digest: ref.Digest, Verdict: approvals.Approve,
		By: approvals.Principal{User: "U0BOB", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: o.now.Now()},
	}})
	require.NoError(o.t, err)
}

func TestABatchHasOneMessageForEightCalls(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, many(12, `{"path":"a.txt"}`)...)
	o.draw(b)
	cards := o.thread("U0BOB", root)
	require.Len(t, cards, 2)
	require.Contains(t, cards[1].Shown(), "Calls 9 to 12 of 12")
	require.Equal(t, "countersign_batch", cards[1].Metadata["event_type"])
	for _, m := range cards {
		require.NotEmpty(t, m.Text)
	}
	o.approves(b, 11)
	o.draw(b)
	require.Len(t, o.Calls("chat.postMessage"), 2)
	require.Contains(t, o.thread("U0BOB", root)[1].Shown(), "1 approved")
	require.Equal(t, 200, o.press("U0BOB", cards[1], "approve", 0).Status)
	require.Equal(t, approvals.Approved, o.status(b, 8))
}

func TestNothingIsDrawnTwice(t *testing.T) {
	o, _, b := one(t)
	o.draw(b)
	o.draw(b)
	require.Len(t, o.Calls("chat.postMessage"), 1)
	require.Empty(t, o.Calls("chat.update"))
}

func TestManyReplicasPostOneCard(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			var later *slackapi.LaterError
			if err := o.ui.Cards.Reconcile(t.Context(), string(b.ID)); err != nil {
				require.ErrorAs(t, err, &later)
			}
		})
	}
	all.Wait()
	require.Len(t, o.thread("U0BOB", root), 1)
}

// The message is there, but its answer was lost: it is posted again, a click
// on either counts, and then both are kept up to date.
func TestAClickOnALostCopyCountsAndRetiresIt(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.postMessage", LostReply: true}}})
	require.Error(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)))
	o.draw(b)
	copies := o.thread("U0BOB", root)
	require.Len(t, copies, 2)
	require.Equal(t, 200, o.press("U0BOB", copies[0], "approve", 0).Status)
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	o.draw(b)
	for _, m := range o.thread("U0BOB", root) {
		require.Contains(t, m.Shown(), "Approved: ")
		require.Empty(t, m.Actions())
	}
}

func TestLimitsAndLossesOfSlack(t *testing.T) {
	for name, c := range map[string]struct {
		fault slacksim.Fault
		after time.Duration
		says  string
	}{
		"limited":        {slacksim.Fault{Method: "chat.postMessage", Status: 429, RetryAfter: 7}, 7 * time.Second, ""},
		"not in channel": {slacksim.Fault{Method: "chat.postMessage", Error: "not_in_channel"}, 0, "invite the app"},
		"archived":       {slacksim.Fault{Method: "chat.postMessage", Error: "is_archived"}, 0, "archived"},
		"uninstalled":    {slacksim.Fault{Method: "chat.postMessage", Error: "account_inactive"}, 2 * time.Second, "install it again"},
		"wrong token":    {slacksim.Fault{Method: "chat.postMessage", Error: "invalid_auth"}, 2 * time.Second, "the bot token is wrong"},
		"no longer ours": {slacksim.Fault{Method: "chat.postMessage", Error: "token_revoked"}, 2 * time.Second, "install it again"},
		"wrong address":  {slacksim.Fault{Method: "chat.postMessage", Status: 404}, 0, "404"},
		"broken":         {slacksim.Fault{Method: "chat.postMessage", Status: 500}, 2 * time.Second, "500"},
		"restarting":     {slacksim.Fault{Method: "chat.postMessage", Status: 503}, 2 * time.Second, "503"},
		"unnamed limit":  {slacksim.Fault{Method: "chat.postMessage", Error: "ratelimited"}, 2 * time.Second, "ratelimited"},
		"in trouble":     {slacksim.Fault{Method: "chat.postMessage", Error: "internal_error"}, 2 * time.Second, "internal_error"},
		"away":           {slacksim.Fault{Method: "chat.postMessage", Error: "service_unavailable"}, 2 * time.Second, "service_unavailable"},
		"in no state":    {slacksim.Fault{Method: "chat.postMessage", Error: "fatal_error"}, 2 * time.Second, "fatal_error"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWorkspace(t, slacksim.Config{})
			root := o.say("U0ALICE", "clean up")
			b := o.opens(root, call("c1", "delete_file", `{"secret":"xyzzy"}`, sre))
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{c.fault}})
			err := o.ui.Cards.Reconcile(t.Context(), string(b.ID))
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "xoxb")
			require.NotContains(t, err.Error(), "xyzzy")
			var later *slackapi.LaterError
			if c.after > 0 {
				require.ErrorAs(t, err, &later)
				require.Equal(t, c.after, later.RetryAfter())
			} else {
				require.NotErrorAs(t, err, &later)
			}
			require.Zero(t, o.drawnVersion(string(b.ID), "cards"))
			if name == "limited" {
				require.Error(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)))
				require.Len(t, o.Calls("chat.postMessage"), 1, "the channel is left alone for that long")
				o.now.Advance(c.after)
			}
			o.draw(b) // the claim was given up: the next attempt need not wait
			require.Len(t, o.thread("U0BOB", root), 1)
		})
	}
}

func TestARemovedCardIsPostedAgainWhileItIsOpen(t *testing.T) {
	o, root, b := one(t, call("c1", "x", `{}`, sre), call("c2", "x", `{}`, sre))
	gone := slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.update", Error: "message_not_found"}}}
	o.approves(b, 0)
	o.SetFaults(gone)
	o.draw(b)
	require.Len(t, o.thread("U0BOB", root), 2)
	o.approves(b, 1)
	o.SetFaults(gone)
	o.draw(b)
	require.Len(t, o.thread("U0BOB", root), 2, "a settled one is not")
}

func TestABatchOfAnotherSurfaceIsNotDrawnHere(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "x", `{}`, sre))
	run := o.run(b.Run)
	run.Origin.Surface = "http"
	o.setRun(run)
	o.draw(b)
	require.NoError(t, o.ui.Replies.Reconcile(t.Context(), string(b.Run)))
	require.Empty(t, o.thread("U0BOB", root))
	require.Equal(t, b.Version, o.drawnVersion(string(b.ID), "cards"))
}

// resumes returns the run that goes on after the batch.
func (o *workspace) resumes(b approvals.Batch, root string) agentrun.Run {
	o.t.Helper()
	id, err := agentrun.ResumeRunID(b.ID)
	require.NoError(o.t, err)
	run := startedIn(root)
	run.ID, run.Parent, run.Batch = id, b.Run, b.ID
	return run
}

// An edit notifies nobody: so the end of a resumed run is a new message that
// mentions whoever asked, and what it is doing is said where it waited.
func TestTheEndOfAResumedRunIsANewMessageThatMentionsTheRequester(t *testing.T) {
	o, root, b := one(t)
	waiting := o.run(b.Run)
	require.NoError(t, o.reply(waiting))
	require.Contains(t, o.thread("U0BOB", root)[1].Shown(), "Waiting for approval of 1 call.")
	o.approves(b, 0)
	resumed := o.resumes(b, root)
	resumed.Status, resumed.Activity = agentrun.RunRunning, []string{"delete_file"}
	o.now.Advance(time.Second)
	require.NoError(t, o.reply(resumed))
	all := o.thread("U0BOB", root)
	require.Len(t, all, 2)
	require.Contains(t, strings.ReplaceAll(all[1].Shown(), "\n", ""), "ops is working: delete_file.")

	resumed.Status, resumed.Output, resumed.Version = agentrun.RunCompleted, "It is gone.", 2
	require.NoError(t, o.reply(resumed))
	all = o.thread("U0BOB", root)
	require.Len(t, all, 3)
	require.Contains(t, all[1].Shown(), "The result is below.")
	require.False(t, all[2].Edited)
	require.Contains(t, all[2].Text, "<@U0ALICE>")
	require.Contains(t, all[2].Shown(), "It is gone.")
}

// Whoever asks again after a failure must not repeat what ran.
func TestARunThatFailsSaysWhatHadRun(t *testing.T) {
	for status, says := range map[agentrun.Status]string{agentrun.RunFailed: "couldn't finish", agentrun.RunParked: "someone must check"} {
		o, root, b := one(t)
		o.approves(b, 0)
		b = o.batch(b.ID)
		after, _, err := b.Apply(approvals.Conclude{At: o.now.Now(), Calls: []approvals.Conclusion{
			{Call: "c1", Execution: approvals.Execution{State: approvals.Ran, Excerpt: "secret"}},
		}})
		require.NoError(t, err)
		o.setBatch(after)
		resumed := o.resumes(b, root)
		resumed.Status, resumed.Failure = status, "The model did not answer."
		require.NoError(t, o.reply(resumed))
		all := o.thread("U0BOB", root)
		m := all[len(all)-1]
		require.Contains(t, m.Shown(), says)
		require.Contains(t, m.Shown(), "Check them before you repeat anything")
		require.Contains(t, m.Text, "delete_file ran")
		require.NotContains(t, m.Text+m.Shown(), "secret", "the result is not for everybody in the thread")
	}
}

// What a person said of a call in doubt replaces the doubt.
func TestARunThatFailsKnowsWhatAPersonSaidOfADoubt(t *testing.T) {
	for verdict, says := range map[approvals.Verdict]string{
		approvals.Happened: "Before that, delete_file took effect, a person says.",
		approvals.GiveUp:   "Before that, delete_file may or may not have taken effect.",
	} {
		o, root, b := one(t)
		o.approves(b, 0)
		after, _, err := o.batch(b.ID).Apply(approvals.Conclude{At: o.now.Now(), Calls: []approvals.Conclusion{
			{Call: "c1", Execution: approvals.Execution{State: approvals.InDoubt}},
		}})
		require.NoError(t, err)
		o.setBatch(after)
		asks := o.resumes(b, root)
		asks.Status, asks.Deferred = agentrun.RunDeferred, "batch-07-two"
		o.setRun(asks)
		d := call("c1", "delete_file", `{}`, sre)
		d.Doubt = approvals.Doubt{Began: noon, Approved: b.ID}
		doubt, _, err := approvals.Open(approvals.Batch{
			ID: asks.Deferred, Run: asks.ID, Thread: b.Thread, Channel: b.Channel, Agent: b.Agent, Requester: b.Requester, OpenedAt: o.now.Now(),
		}, []approvals.Deferral{d}, nil)
		require.NoError(t, err)
		doubt, _, err = doubt.Apply(approvals.Decide{Decision: approvals.Decision{
			Call: "c1", By: approvals.Principal{User: "U0BOB", Groups: []approvals.GroupID{"S0SRE"}}, Verdict: verdict, Digest: doubt.Approvals[0].Call.Digest, At: o.now.Now(),
		}})
		require.NoError(t, err)
		o.setBatch(doubt)
		failed := asks
		failed.ID, failed.Parent, failed.Batch, failed.Deferred = "run-07-last", asks.ID, doubt.ID, ""
		failed.Status, failed.Failure = agentrun.RunFailed, "The model did not answer."
		require.NoError(t, o.reply(failed))
		require.True(t, strings.HasSuffix(o.thread("U0BOB", root)[len(o.thread("U0BOB", root))-1].Text, says))
	}
}

func TestRunsThatEndBadlySayWhatToDo(t *testing.T) {
	for status, says := range map[agentrun.Status]string{
		agentrun.RunFailed: "To try again, mention the agent", agentrun.RunParked: "Nothing is repeated automatically",
	} {
		o := newWorkspace(t, slacksim.Config{})
		root := o.say("U0ALICE", "clean up")
		run := startedIn(root)
		run.Status, run.Failure = status, "The model <!channel> refused."
		require.NoError(t, o.reply(run))
		m := o.thread("U0BOB", root)[0]
		require.Contains(t, m.Shown(), says)
		require.Contains(t, m.Shown(), "The model <!channel> refused.")
		require.NotContains(t, m.Text, "<!channel>")
	}
}

func TestARunThatFailedInAClosedThreadSendsPeopleElsewhere(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	run := startedIn(root)
	run.Status, run.Failure = agentrun.RunFailed, "It cannot be read."
	o.setThread(agentrun.Thread{ID: "thread-07-one", Closed: "It cannot be read."})
	require.NoError(t, o.reply(run))
	said := o.thread("U0BOB", root)[0].Shown()
	require.Contains(t, said, "mention the agent in a new one")
	require.NotContains(t, said, "in this thread.")
}

func TestAWaitingRunSaysBehindWhat(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	run := startedIn(root)
	run.Status = agentrun.RunWaiting
	o.setThread(agentrun.Thread{ID: "thread-07-one", Active: "run-07-x", Queue: []approvals.RunID{"run-07-y", run.ID}})
	require.NoError(t, o.reply(run))
	require.Contains(t, o.thread("U0BOB", root)[0].Shown(), "Queued behind 2 requests")
}

// A long answer goes on in further messages, each once, also when one of them
// fails in between.
func TestALongAnswerIsSplit(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	run := startedIn(root)
	require.NoError(t, o.reply(run))
	run.Status, run.Output = agentrun.RunCompleted, strings.Repeat("All is **well** with `a <!channel> b`.\n", 250)+"```\n"+strings.Repeat("code\n", 900)+"```\nThe end."
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.postMessage", Status: 500}}})
	require.Error(t, o.reply(run))
	require.NoError(t, o.reply(run))
	require.NoError(t, o.reply(run))
	all := o.thread("U0ALICE", root)
	require.Len(t, all, 6)
	var text strings.Builder
	for _, m := range all {
		require.NotContains(t, m.Text, "<!channel>")
		text.WriteString(m.Shown())
	}
	require.Equal(t, 900, strings.Count(text.String(), "code\n")+strings.Count(text.String(), "code \n"))
	require.Contains(t, text.String(), "The end.")
}

// Twenty minutes without Slack park nothing: no attempt is a failure, each
// waits longer than the one before, and what is drawn then is drawn once.
func TestAnOutageOfSlackIsWaitedOut(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "x", `{}`, sre), call("c2", "x", `{}`, sre))
	draw := func() error { return o.ui.Cards.Reconcile(t.Context(), string(b.ID)) }
	for i, method := range []string{"chat.postMessage", "chat.update"} {
		var waits []time.Duration
		for total := time.Duration(0); total < 20*time.Minute; total += waits[len(waits)-1] {
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: method, Status: 502}}})
			var later *slackapi.LaterError
			require.ErrorAs(t, draw(), &later)
			waits = append(waits, later.RetryAfter())
		}
		require.Equal(t, []time.Duration{2e9, 4e9, 8e9, 16e9, 32e9, 60e9, 60e9}, waits[:7], "it begins anew after each success")
		require.Less(t, len(waits), 30)
		require.NoError(t, draw())
		require.Len(t, o.thread("U0BOB", root), 1)
		o.approves(b, i)
	}
}

// A reply waits as a card does, also when Slack cannot be reached at all.
func TestAReplyWaitsForAnUnreachableSlack(t *testing.T) {
	nowhere := httptest.NewServer(nil)
	nowhere.Close()
	o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) { c.APIURL = nowhere.URL })
	for _, wait := range []time.Duration{2 * time.Second, 4 * time.Second} {
		var later *slackapi.LaterError
		require.ErrorAs(t, o.reply(startedIn("1.1")), &later)
		require.Equal(t, wait, later.RetryAfter())
	}
}

func TestAnAnswerWithoutEndIsCutAndSaysSo(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	run := startedIn(root)
	run.Status, run.Output = agentrun.RunCompleted, strings.Repeat("All is well. ", 20_000)+"The end."
	require.NoError(t, o.reply(run))
	all := o.thread("U0ALICE", root)
	require.Len(t, all, 10)
	for _, m := range all[:9] {
		require.NotContains(t, m.Shown(), "cut here")
	}
	last := all[9].Shown()
	require.Contains(t, last, "part 10 of 10")
	require.Regexp(t, `cut here. About 23\d,\d{3} more characters can't be shown`, last)
	require.Contains(t, last, "Ask the agent for the rest")
}
