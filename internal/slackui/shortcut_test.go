package slackui_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
)

// inItsThread says that the run of the batch is what goes on in the thread.
func (o *workspace) inItsThread(run agentrun.Run) {
	o.t.Helper()
	o.setThread(agentrun.Thread{ID: agentrun.ThreadIDOf(run.Origin), Active: run.ID})
}

func (o *workspace) reviewsHere(ts string) {
	o.t.Helper()
	out, err := o.Shortcut(slacksim.Shortcut{User: "U0BOB", CallbackID: "countersign.here", Channel: "C0OPS", TS: ts})
	require.NoError(o.t, err)
	require.Equal(o.t, slacksim.ClickOutcome{Status: 200}, out)
}

// Slash commands do not work in threads: the menu of any message there does.
func TestTheShortcutOpensWhatWaitsInTheThread(t *testing.T) {
	o := newListWorkspace(t)
	root := o.say("U0ALICE", "clean up")
	o.reviewsHere(root)
	require.Contains(t, plainWords(o.top("U0BOB")), "Countersign found no request in this thread")
	o.leaves()

	b := o.opens(root, call("c1", "delete_file", `{"path":"a.txt"}`, sre))
	o.inItsThread(o.run(b.Run))
	o.draw(b)
	for _, ts := range []string{root, o.card("U0BOB", root).TS} {
		o.reviewsHere(ts)
		require.Equal(t, "Review", o.top("U0BOB").Title)
		require.Contains(t, plainWords(o.top("U0BOB")), `path: "a.txt"`)
		o.leaves()
	}
	o.approves(b, 0)
	o.reviewsHere(root)
	require.Contains(t, plainWords(o.top("U0BOB")), "Nothing waits for approval in this thread")
}

// The card of another thread was copied into this one: both can be meant.
func TestTheShortcutListsSeveral(t *testing.T) {
	o := newListWorkspace(t)
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{"path":"a.txt"}`, sre))
	other := o.another("other", 0, call("c1", "drop_table", `{}`, sre))
	o.draw(other)
	card := o.card("U0BOB", o.run(other.Run).Origin.Root)
	run := o.run(b.Run)
	run.Origin.Root = card.ThreadTS
	o.inItsThread(run)
	o.reviewsHere(card.TS)
	require.Contains(t, words(o.top("U0BOB").Blocks), "2 requests wait for approval in this thread")
	asKept(t, "review_here", o.top("U0BOB"))
	o.usesNth("U0BOB", o.top("U0BOB"), "Review", 1)
	require.Contains(t, plainWords(o.top("U0BOB")), `path: "a.txt"`)
	require.Len(t, o.Views("U0BOB"), 2)
}

// What bob may read is listed, and what he may not is counted.
func TestTheShortcutListsWhatMayBeReadAndCountsTheOthers(t *testing.T) {
	channels := slacksim.DefaultChannels()
	for i := range channels {
		if channels[i].ID == "C0GENERAL" {
			channels[i].Members = []string{slacksim.BotUser, "U0ALICE", "U0CAROL"}
		}
	}
	o := newWorkspace(t, slacksim.Config{Channels: channels}, inLists)
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "drop_table", `{"path":"SECRET"}`, only("boss", "U0DAVE")))
	b.Channel = "C0GENERAL"
	o.moves(b, func(now *approvals.Batch) { now.Channel = "C0GENERAL" })
	other := o.another("other", 0, call("c1", "delete_file", `{"path":"a.txt"}`, sre))
	o.draw(other)
	card := o.card("U0BOB", o.run(other.Run).Origin.Root)
	run := o.run(b.Run)
	run.Origin.Root = card.ThreadTS
	o.inItsThread(run)
	o.reviewsHere(card.TS)
	said := words(o.top("U0BOB").Blocks)
	require.Contains(t, said, "1 request waits for approval in this thread")
	require.Contains(t, said, "1 more request waits here")
	require.NotContains(t, said, "drop_table")
	o.uses("U0BOB", o.top("U0BOB"), "Review")
	require.Contains(t, plainWords(o.top("U0BOB")), `path: "a.txt"`)
}

func TestAnotherShortcutIsExplained(t *testing.T) {
	o := newListWorkspace(t)
	root := o.say("U0ALICE", "clean up")
	_, err := o.Shortcut(slacksim.Shortcut{User: "U0BOB", CallbackID: "old", Channel: "C0OPS", TS: root})
	require.NoError(t, err)
	require.Contains(t, plainWords(o.top("U0BOB")), "another version")
}

// The card of an agent that runs elsewhere starts a thread in which no agent of
// ours was asked: only the card itself says which request it shows.
func TestTheShortcutBelowACardFromElsewhereSaysWhereToLook(t *testing.T) {
	o := newListWorkspace(t)
	b := o.elsewhere(o.opens("", call("c1", "delete_file", `{"path":"a.txt"}`, sre)), "C0OPS")
	o.draw(b)
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, all, 1)
	reply, err := o.PostAs(slacksim.Post{User: "U0ALICE", Channel: "C0OPS", Text: "ok?", ThreadTS: all[0].TS})
	require.NoError(t, err)
	o.reviewsHere(reply)
	require.Contains(t, plainWords(o.top("U0BOB")), "use its buttons, or this shortcut on the card itself")
	o.leaves()
	o.reviewsHere(all[0].TS)
	require.Equal(t, "Review", o.top("U0BOB").Title)
}
