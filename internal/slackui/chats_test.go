package slackui_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/directory"
)

// inChat makes the batch one of a chat on the web, whose person wrote this.
func (o *workspace) inChat(b approvals.Batch, prompt string) approvals.Batch {
	o.t.Helper()
	run := o.run(b.Run)
	run.Origin = agentrun.Origin{Surface: "web", Team: "U0ALICE", Channel: "C0OPS", Root: "chat-1"}
	b.Prompt = approvals.QuoteOf(prompt)
	o.setRun(run)
	o.setBatch(b)
	return b
}

// chatCalls opens a batch of a chat.
func (o *workspace) chatCalls(prompt string, calls ...approvals.Deferral) approvals.Batch {
	o.t.Helper()
	return o.inChat(o.opens("", calls...), prompt)
}

// nextInChat opens another batch of the chat, with one call.
func (o *workspace) nextInChat(n int) approvals.Batch {
	o.t.Helper()
	b := o.another(fmt.Sprint("n", n), 0, call("c1", "delete_file", fmt.Sprintf(`{"path":"next-%d"}`, n), sre))
	run := o.run(b.Run)
	run.Thread = "thread-07-one"
	o.setRun(run)
	return o.inChat(b, "And more")
}

// inChannel is what the bot shows in #ops outside threads.
func (o *workspace) inChannel() []slacksim.Message {
	o.t.Helper()
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(o.t, err)
	return slices.DeleteFunc(all, func(m slacksim.Message) bool {
		return m.User == "U0ALICE" || m.ThreadTS != "" && m.ThreadTS != m.TS
	})
}

func withPage(c *slackui.Config) {
	c.ChatPage = func(r agentrun.Run) string { return "https://chat.example/c/" + r.Origin.Root }
}

// The cards of a chat hang on one message that names it, whichever of its batches
// came first.
func TestAllCardsOfAChatAreInOneThreadThatNamesIt(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, withPage)
	b := o.chatCalls("Delete the old logs, please", call("a", "delete_file", `{"path":"/srv/a"}`, sre))
	o.draw(b)
	next := o.nextInChat(1)
	o.draw(next)

	heads := o.inChannel()
	require.Len(t, heads, 1)
	shown := heads[0].Shown()
	for _, words := range []string{"Chat on the web", "ops", "Delete the old logs, please", "Open the chat (only its owner can)"} {
		require.Contains(t, strings.ReplaceAll(shown, "\n", ""), words)
	}
	require.Contains(t, fmt.Sprint(heads[0].Blocks), "https://chat.example/c/chat-1")
	require.NotContains(t, shown, "/srv/a")
	cards := o.thread("U0BOB", heads[0].TS)
	require.Len(t, cards, 2)
	require.Contains(t, cards[0].Shown(), "/srv/a")
	require.Contains(t, cards[1].Shown(), "next-1")

	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", cards[0], "approve", 0))
	o.draw(b)
	require.Contains(t, o.thread("U0BOB", heads[0].TS)[0].Shown(), "Approved: ")
	require.Len(t, o.inChannel(), 1)
}

// Batches of a chat may be drawn at once, by several processes.
func TestAChatIsNamedOnceHoweverManyDrawIt(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	all := []approvals.Batch{o.chatCalls("Clean up", call("a", "delete_file", `{"path":"/srv/a"}`, sre))}
	for n := range 7 {
		all = append(all, o.nextInChat(n))
	}
	uis := []*slackui.UI{o.ui, o.replica(func(*slackui.Config) {})}
	var drawing sync.WaitGroup
	for i, b := range all {
		drawing.Go(func() {
			_ = uis[i%2].Cards.Reconcile(t.Context(), string(b.ID)) // whoever comes second tries again
		})
	}
	drawing.Wait()
	o.drawsAll(all...)
	heads := o.inChannel()
	require.Len(t, heads, 1)
	require.Len(t, o.thread("U0BOB", heads[0].TS), len(all))
}

// A process that dies after the message was posted and before a card was, and one
// that could not post the card, leave the thread for the next.
func TestTheThreadOfAChatOutlivesWhoBeganIt(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	b := o.chatCalls("Clean up", call("a", "delete_file", `{"path":"/srv/a"}`, sre))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.postMessage", Status: 503}}})
	require.Error(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)))
	require.Empty(t, o.inChannel(), "nothing was posted")
	o.now.Advance(time.Minute)
	o.draw(b)
	require.Len(t, o.inChannel(), 1)
	second := o.replica(func(*slackui.Config) {})
	next := o.nextInChat(1)
	require.NoError(t, second.Cards.Reconcile(t.Context(), string(next.ID)))
	require.Len(t, o.thread("U0BOB", o.inChannel()[0].TS), 2)
}

// If Slack's answer is lost there are two such messages, and the cards are under one.
func TestTheCardsOfAChatStayTogetherWhenAnAnswerIsLost(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	b := o.chatCalls("Clean up", call("a", "delete_file", `{"path":"/srv/a"}`, sre))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.postMessage", LostReply: true}}})
	require.Error(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)))
	o.drawsAll(b, o.nextInChat(1))
	heads := o.inChannel()
	require.Len(t, heads, 2)
	require.Empty(t, o.thread("U0BOB", heads[0].TS))
	require.Len(t, o.thread("U0BOB", heads[1].TS), 2)
}

// What people write names the chat, and does nothing else.
func TestTheNameOfAChatIsNoMarkup(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	o.draw(o.chatCalls("<!channel> *Approve* <https://evil.example|now>\u202e\nsecond line "+strings.Repeat("x", 300), call("a", "delete_file", `{"path":"/srv/a"}`, sre)))
	head := o.inChannel()[0]
	require.Contains(t, head.Shown(), "<!channel> *Approve* <https://evil.example|now>⟦U+202E⟧ second line")
	require.NotContains(t, head.Shown(), strings.Repeat("x", 80))
	require.NotContains(t, head.Shown(), "Open the chat", "no page is configured")
	require.NotContains(t, head.Text, "<!channel>")
}

// If someone removes the message, the next card begins another thread. Where that
// goes on, as in a channel that takes no replies, cards are in the channel itself.
func TestAChatWhoseThreadIsGoneGetsAnotherAFewTimes(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	api := slack.New(o.BotToken(), slack.OptionAPIURL(o.api))
	o.draw(o.chatCalls("Clean up", call("a", "delete_file", `{"path":"/srv/a"}`, sre)))
	for n := range 3 {
		head := o.inChannel()[0]
		for _, m := range append(o.thread("U0BOB", head.TS), head) {
			_, _, err := api.DeleteMessageContext(t.Context(), "C0OPS", m.TS)
			require.NoError(t, err)
		}
		next := o.nextInChat(n)
		require.Error(t, o.ui.Cards.Reconcile(t.Context(), string(next.ID)))
		o.draw(next)
		left := o.inChannel()
		require.Len(t, left, 1)
		if n < 2 {
			require.Contains(t, left[0].Shown(), "Chat on the web")
			require.Len(t, o.thread("U0BOB", left[0].TS), 1)
		} else {
			require.Contains(t, left[0].Shown(), "next-2")
		}
	}
}

// So does a card that is posted again because someone removed the whole thread.
func TestACardOfAChatWhoseThreadIsGoneIsPostedInAnother(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	api := slack.New(o.BotToken(), slack.OptionAPIURL(o.api))
	b := o.chatCalls("Clean up", call("a", "x", `{}`, sre), call("b", "x", `{"n":2}`, sre))
	o.draw(b)
	head := o.inChannel()[0]
	for _, m := range append(o.thread("U0BOB", head.TS), head) {
		_, _, err := api.DeleteMessageContext(t.Context(), "C0OPS", m.TS)
		require.NoError(t, err)
	}
	o.approves(b, 0)
	require.Error(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)))
	o.draw(b)
	require.Len(t, o.thread("U0BOB", o.inChannel()[0].TS), 1)
}

// A message that was written on the web is not in the thread, so the reply quotes it.
func TestWhatIsWrittenOnTheWebIsQuotedInItsThread(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, withPage)
	root := o.say("U0ALICE", "clean up")
	run := startedIn(root)
	run.Requester, run.Via, run.Prompt = "U0BOB", "web", "Delete <!channel> *all*\u202e "+strings.Repeat("x", 600)
	require.NoError(t, o.reply(run))
	run.Status, run.Output, run.Version = agentrun.RunCompleted, "All gone.", 2
	require.NoError(t, o.reply(run))
	m := o.thread("U0ALICE", root)[0]
	shown := strings.ReplaceAll(m.Shown(), "\n", "")
	require.Contains(t, shown, " wrote in this thread on the web:Delete <!channel> *all*⟦U+202E⟧ xxx")
	require.Contains(t, shown, "⟦125 characters left out⟧")
	require.Contains(t, shown, "All gone.")
	require.Contains(t, shown, "Open this thread on the web")
	require.Contains(t, fmt.Sprint(m.Blocks), "https://chat.example/c/"+root)
	require.NotContains(t, m.Text, "<!channel>")

	resumed := run
	resumed.ID, resumed.Parent, resumed.Prompt = "run-07-c", run.ID, ""
	require.NoError(t, o.reply(resumed))
	require.NotContains(t, o.thread("U0ALICE", root)[1].Shown(), "wrote", "a resumed run has no message of its own")

	run.ID, run.Via = "run-07-b", ""
	require.NoError(t, o.reply(run))
	require.NotContains(t, o.thread("U0ALICE", root)[2].Shown(), "xxx", "what was written in Slack is there already")
}

// The right to open a thread on the web is that to read it in Slack, at that moment.
func TestAConversationIsOpenedForWhoIsInIt(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) { c.Agent, c.Agents = "", map[string]string{"C0OPS": "ops"} })
	_, err := o.PostAs(slacksim.Post{User: "U0CAROL", Channel: "@countersign", Text: "hello"})
	require.NoError(t, err)
	in := func(channel string) agentrun.Origin {
		return agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: channel, Root: "1700000000.000100"}
	}
	agent, err := o.ui.MayOpen(t.Context(), "U0BOB", in("C0OPS"))
	require.NoError(t, err)
	require.Equal(t, "ops", agent)
	agent, err = o.ui.MayOpen(t.Context(), "U0CAROL", in("D0CAROL"))
	require.NoError(t, err)
	require.Empty(t, agent, "no agent answers there")

	for name, refused := range map[string]struct {
		user approvals.UserID
		at   agentrun.Origin
	}{
		"someone else's direct messages": {"U0BOB", in("D0CAROL")},
		"who is not in the channel":      {"U0NOBODY", in("C0OPS")},
		"another surface":                {"U0BOB", agentrun.Origin{Surface: "api", Team: "ci", Channel: "C0OPS", Root: "r"}},
		"no channel":                     {"U0BOB", in("")},
	} {
		_, err := o.ui.MayOpen(t.Context(), refused.user, refused.at)
		require.ErrorIs(t, err, directory.ErrMayNotRead, name)
	}
	o.now.Advance(time.Hour)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "conversations.members", Error: "internal_error"}}})
	_, err = o.ui.MayOpen(t.Context(), "U0BOB", in("C0OPS"))
	require.Error(t, err, "who is in it is not known now")
	require.NotErrorIs(t, err, directory.ErrMayNotRead)
}
