package slackui_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

// listening is a workspace whose app is told of all messages.
func listening(t *testing.T, tune ...func(*slackui.Config)) *workspace {
	t.Helper()
	return newWorkspace(t, slacksim.Config{Events: append(slacksim.DefaultEvents(), "message.channels", "message.groups")}, tune...)
}

func overhears(c *slackui.Config) { c.Overhear = map[string]bool{"ops": true} }

// talks makes the thread one that the agent is in.
func (o *workspace) talks(root string) {
	o.t.Helper()
	id := agentrun.ThreadIDOf(agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: "C0OPS", Root: root})
	o.setThread(agentrun.Thread{ID: id})
}

func (o *workspace) replies(user, root, text string) string {
	o.t.Helper()
	ts, err := o.PostAs(slacksim.Post{User: user, Channel: "C0OPS", Text: text, ThreadTS: root})
	require.NoError(o.t, err)
	return ts
}

// heard is what was taken, once everything is delivered. What has one name is
// one, as it is for the store.
func (o *workspace) heard() []string {
	o.t.Helper()
	require.NoError(o.t, o.Idle(o.t.Context()))
	texts := map[string]string{}
	for _, m := range o.mentioned() {
		texts[m.Event] = string(m.Requester) + ": " + m.Text
	}
	return slices.Sorted(maps.Values(texts))
}

// flat is what is shown, without the ends of lines between its parts.
func flat(m slacksim.Message) string { return strings.ReplaceAll(m.Shown(), "\n", "") }

func TestRepliesWithoutAMentionAreHeardWhereTheAgentOverhears(t *testing.T) {
	for name, c := range map[string]struct {
		tune []func(*slackui.Config)
		want []string
	}{
		"mention": {nil, []string{"U0ALICE: clean up", "U0BOB: stop"}},
		"all":     {[]func(*slackui.Config){overhears}, []string{"U0ALICE: and the logs", "U0ALICE: clean up", "U0BOB: stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := listening(t, c.tune...)
			root := o.say("U0ALICE", "@countersign clean up")
			o.talks(root)
			o.replies("U0ALICE", root, "and the logs")
			o.replies("U0BOB", root, "@countersign stop")
			o.replies("U0ALICE", root, "<@U0BOB> can you sign this?")
			o.replies("U0ALICE", root, "<!subteam^S0SRE> please")
			o.say("U0BOB", "a message of its own")
			other := o.say("U0BOB", "a thread of people")
			o.replies("U0ALICE", other, "among themselves")
			require.Equal(t, c.want, o.heard())
			for _, m := range o.mentioned() {
				require.Equal(t, root, m.Origin.Root)
			}
		})
	}
}

// Slack tells of one message twice: as a mention and as a message.
func TestAMentionThatIsOverheardTooHasOneName(t *testing.T) {
	seen := map[string]int{}
	o := listening(t, overhears)
	root := o.say("U0ALICE", "@countersign clean up")
	o.talks(root)
	ts := o.replies("U0BOB", root, "@countersign stop")
	require.Equal(t, []string{"U0ALICE: clean up", "U0BOB: stop"}, o.heard())
	for _, m := range o.mentioned() {
		seen[m.Event]++
	}
	require.Equal(t, map[string]int{"message:C0OPS:" + root: 1, "message:C0OPS:" + ts: 2}, seen)
}

type runnerFunc func(context.Context, agentrun.Mention) (agentrun.Run, error)

func (f runnerFunc) Mention(ctx context.Context, m agentrun.Mention) (agentrun.Run, error) {
	return f(ctx, m)
}

// People who may not ask read that when they mention the agent, and not when they
// speak to others in its thread.
func TestARefusedReplyWithoutAMentionGetsNoAnswer(t *testing.T) {
	o := listening(t, overhears, onlyFor(approvals.From{Users: []approvals.UserID{"U0ALICE"}}))
	root := o.say("U0ALICE", "@countersign clean up")
	o.talks(root)
	o.replies("U0BOB", root, "I would not")
	require.Equal(t, []string{"U0ALICE: clean up"}, o.heard())
	require.Empty(t, o.whispers("U0BOB", root))

	o = listening(t, overhears, onlyFor(approvals.From{Users: []approvals.UserID{"U0ALICE"}}))
	root = o.say("U0ALICE", "@countersign clean up")
	o.talks(root)
	o.replies("U0BOB", root, "@countersign no")
	require.Equal(t, []string{"U0ALICE: clean up"}, o.heard())
	require.Len(t, o.whispers("U0BOB", root), 1, "once, though Slack tells of it twice")
}

func TestADirectMessageIsForTheAgent(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	dm := func(text, thread string) string {
		t.Helper()
		ts, err := o.PostAs(slacksim.Post{User: "U0ALICE", Channel: "@countersign", Text: text, ThreadTS: thread})
		require.NoError(t, err)
		return ts
	}
	root := dm("clean up", "")
	require.Equal(t, []string{"U0ALICE: clean up"}, o.heard())
	dm("and the logs", root)
	dm("something else", "")
	require.Equal(t, []string{"U0ALICE: and the logs", "U0ALICE: clean up", "U0ALICE: something else"}, o.heard())
	roots := map[string]bool{}
	for _, m := range o.mentioned() {
		require.Equal(t, "ops", m.Agent)
		roots[m.Origin.Root] = true
	}
	require.Len(t, roots, 2, "a reply goes on in its thread, a new message begins one")
	require.True(t, roots[root])
}

func TestADirectMessageWhereNoAgentAnswersIsExplained(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) { c.Agent, c.Agents = "", map[string]string{"C0OPS": "ops"} })
	_, err := o.PostAs(slacksim.Post{User: "U0ALICE", Channel: "@countersign", Text: "clean up"})
	require.NoError(t, err)
	require.Empty(t, o.heard())
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	all, err := o.Messages("U0ALICE", "@countersign", "")
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Contains(t, all[1].Shown(), "No agent answers direct messages, so nothing was started.")
}

func TestAnAgentThatRefusesSaysWhatWaits(t *testing.T) {
	var o *workspace
	var b approvals.Batch
	o = listening(t, overhears, func(c *slackui.Config) {
		c.Runner = runnerFunc(func(context.Context, agentrun.Mention) (agentrun.Run, error) {
			return agentrun.Run{}, &agentrun.PendingError{Batch: b}
		})
	})
	root := o.say("U0BOB", "clean up")
	o.talks(root)
	b = o.opens(root, call("c1", "delete_file", `{}`, sre), call("c2", "delete_file", `{}`, sre), call("c3", "drop_table", `{}`, sre))
	o.draw(b)
	o.replies("U0ALICE", root, "@countersign and this")
	require.NoError(t, o.Idle(t.Context()))
	require.Len(t, o.whispers("U0ALICE", root), 1)
	told := o.last(root)
	require.Contains(t, told, "Not started: this agent takes no new messages while calls in this thread wait for a decision. 3 calls still wait: delete_file ×2, drop_table.")
	require.Contains(t, told, "Open the card")
	require.Contains(t, told, "Write again when everything is decided.")
}

// waitsBehind is a run in the queue of the thread in which b is pending.
func (o *workspace) waitsBehind(b approvals.Batch) agentrun.Run {
	o.t.Helper()
	run := startedIn(o.run(b.Run).Origin.Root)
	run.ID, run.Status = "run-07-next", agentrun.RunWaiting
	o.setThread(agentrun.Thread{ID: "thread-07-one", Active: b.Run, Queue: []approvals.RunID{run.ID}})
	return run
}

func (o *workspace) last(root string) string {
	o.t.Helper()
	all := o.thread("U0ALICE", root)
	return flat(all[len(all)-1])
}

func TestAQueuedMessageNamesWhatItWaitsFor(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre), call("c2", "drop_table", `{}`, sre))
	o.draw(b)
	run := o.waitsBehind(b)
	require.NoError(t, o.reply(run))
	require.Contains(t, o.last(root), "Queued: this starts when the agent finishes its current work in this thread. "+
		"2 calls in this thread wait for a decision: delete_file, drop_table. Open the card. The agent continues then.")
}

// What was queued while the agent was at work learns what it waits for when the
// run defers.
func TestAQueuedMessageFollowsTheRunBeforeIt(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	deferred := o.run(b.Run)
	next := o.waitsBehind(b)
	atWork := deferred
	atWork.Status, atWork.Deferred = agentrun.RunRunning, ""
	require.NoError(t, o.reply(atWork))
	require.NoError(t, o.reply(next))
	require.NotContains(t, o.last(root), "delete_file")
	o.now.Advance(2 * time.Second)
	require.NoError(t, o.reply(deferred))
	require.Contains(t, o.last(root), "1 call in this thread waits for a decision: delete_file.")
}

func TestAMessageThatSupersedesSaysWhatItEnded(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre), call("c2", "delete_file", `{}`, sre), call("c3", "read_log", `{}`, sre))
	opened, _, err := approvals.Open(approvals.Batch{
		ID: b.ID, Run: b.Run, Thread: b.Thread, Channel: b.Channel, Agent: b.Agent, Requester: b.Requester, OpenedAt: b.OpenedAt,
	}, []approvals.Deferral{call("c1", "delete_file", `{}`, sre), call("c2", "delete_file", `{}`, sre), call("c3", "read_log", `{}`, sre)},
		[]approvals.Deferral{call("c4", "export", `{}`)})
	require.NoError(t, err)
	o.setBatch(opened)
	deferred := o.run(b.Run)
	require.NoError(t, o.reply(deferred))
	_, err = o.desk.Decide(t.Context(), b.ID, "d", approvals.Decide{Decision: approvals.Decision{
		Call: "c3", By: approvals.Principal{User: "U0BOB", Groups: []approvals.GroupID{"S0SRE"}}, Verdict: approvals.Approve,
		Digest: opened.Approvals[2].Call.Digest,
	}})
	require.NoError(t, err)
	_, err = o.desk.Withdraw(t.Context(), b.ID, "w", approvals.Withdraw{By: "U0ALICE", Reason: approvals.Superseded})
	require.NoError(t, err)

	run := o.waitsBehind(b)
	run.Supersedes = b.ID
	require.NoError(t, o.reply(run))
	const became = "2 waiting calls were superseded and won't run: delete_file ×2. " +
		"The agent no longer waits for 1 call that runs elsewhere, and can't tell whether it ran: export. " +
		"1 call was already approved and runs, unless the policy now refuses it: read_log."
	want := " sent a newer message. " + became + " The agent continues with it below."
	require.Contains(t, o.last(root), want)
	calls := len(o.Calls("chat.update"))
	run.Status, run.Version = agentrun.RunMerged, 2
	require.NoError(t, o.reply(run))
	require.Contains(t, o.last(root), want)
	require.Len(t, o.Calls("chat.update"), calls, "it says the same from the beginning")

	resumed := startedIn(root)
	resumed.ID, resumed.Parent = "run-07-resumed", b.Run
	require.NoError(t, o.reply(resumed))
	require.Contains(t, flat(o.thread("U0ALICE", root)[0]), "Stopped for approval of 3 calls and the results of 1 call that run elsewhere. "+
		"Then  sent a newer message. "+became)
}

func TestAnAgentThatIsNotThereOverhearsNothing(t *testing.T) {
	_, err := slackui.New(slackui.Config{Agent: "ops", Overhear: map[string]bool{"opps": true, "ops": true}})
	require.ErrorContains(t, err, `Overhear names the agent "opps"`)
	require.NotContains(t, err.Error(), `"ops" is to`)
}
