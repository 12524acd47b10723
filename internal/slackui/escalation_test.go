package slackui_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/stretchr/testify/require"
)

// escalating is a call that is shown in #general too after a minute.
func escalating(o *workspace) approvals.Deferral {
	d := call("c1", "delete_file", `{"path":"a.txt"}`, sre)
	d.Ask.Requirement.Ladder = []approvals.Rung{{
		At: o.now.Now().Add(time.Minute), Kind: approvals.Escalate, Quorum: "sre", Add: approvals.From{Users: []approvals.UserID{"U0DAVE"}}, Channel: "C0GENERAL",
	}}
	return d
}

func TestAnEscalationShowsTheCardInItsChannelToo(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, escalating(o))
	o.draw(b)
	require.Len(t, o.Calls("chat.postMessage"), 1)
	o.now.Advance(2 * time.Minute)
	require.NoError(t, o.desk.Tick(t.Context(), b.ID))
	o.draw(b)
	o.draw(b)
	further, err := o.Messages("U0DAVE", "C0GENERAL", "")
	require.NoError(t, err)
	require.Len(t, further, 1)
	require.Empty(t, further[0].ThreadTS)
	require.Contains(t, plainWords(further[0]), "Asked in C0OPS, and is shown here too")
	require.Contains(t, plainWords(o.card("U0BOB", root)), "from S0SRE, U0DAVE")
	require.Equal(t, 200, o.press("U0DAVE", further[0], "approve", 0).Status)
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	o.draw(b)
	further, _ = o.Messages("U0DAVE", "C0GENERAL", "")
	require.Len(t, further, 1)
	require.Contains(t, further[0].Shown(), "Approved: ")
	require.Contains(t, o.card("U0BOB", root).Shown(), "Approved: ")
	require.Len(t, o.Calls("chat.postMessage"), 2)
	require.Contains(t, o.command("U0BOB", "list"), "Nothing waits")
}

func TestAChannelThatIsClosedToTheAppIsSaidAndNotTriedAgain(t *testing.T) {
	for code, says := range map[string]string{
		"not_in_channel": "the app isn't in the channel", "channel_not_found": "the app isn't in the channel", "is_archived": "the channel is archived",
		"restricted_action": "the app isn't allowed to post", "restricted_action_read_only_channel": "the app isn't allowed to post",
	} {
		t.Run(code, func(t *testing.T) {
			o := newWorkspace(t, slacksim.Config{})
			root := o.say("U0ALICE", "clean up")
			b := o.opens(root, escalating(o))
			o.draw(b)
			o.now.Advance(2 * time.Minute)
			require.NoError(t, o.desk.Tick(t.Context(), b.ID))
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.postMessage", Error: code}}})
			o.draw(b)
			require.Contains(t, plainWords(o.card("U0BOB", root)), "This couldn't be shown in C0GENERAL: "+says)
			o.approves(o.batch(b.ID), 0)
			o.draw(b)
			require.Len(t, o.Calls("chat.postMessage"), 2)
			require.Contains(t, o.card("U0BOB", root).Shown(), "Approved: ")
		})
	}
}

// A channel that Slack limits does not keep the thread from being right.
func TestATroubledFurtherChannelDoesNotKeepTheThreadWaiting(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, escalating(o))
	o.draw(b)
	o.now.Advance(2 * time.Minute)
	require.NoError(t, o.desk.Tick(t.Context(), b.ID))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.postMessage", Status: 429, RetryAfter: 7}}})
	var later *slackapi.LaterError
	require.ErrorAs(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), &later)
	require.Contains(t, plainWords(o.card("U0BOB", root)), "from S0SRE, U0DAVE")
	o.now.Advance(later.After)
	o.draw(b)
	further, err := o.Messages("U0DAVE", "C0GENERAL", "")
	require.NoError(t, err)
	require.Len(t, further, 1)
}

// Slack has a code of its own for a message in a channel that was archived after it was
// posted: https://docs.slack.dev/reference/methods/chat.update.
func TestACardInAChannelThatWasArchivedIsLeftAsItIs(t *testing.T) {
	for _, code := range []string{"is_archived", "is_inactive"} {
		t.Run(code, func(t *testing.T) {
			o := newWorkspace(t, slacksim.Config{})
			root := o.say("U0ALICE", "clean up")
			b := o.opens(root, escalating(o))
			o.draw(b)
			o.now.Advance(2 * time.Minute)
			require.NoError(t, o.desk.Tick(t.Context(), b.ID))
			o.draw(b)
			require.Len(t, o.Calls("chat.postMessage"), 2)
			o.approves(o.batch(b.ID), 0)
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.update", Error: code}}})
			o.draw(b)
			require.Contains(t, plainWords(o.card("U0BOB", root)), "This couldn't be shown in C0GENERAL: the channel is archived")
			require.Contains(t, o.card("U0BOB", root).Shown(), "Approved: ")
		})
	}
}

// Somebody removes the app from the channel of an escalation, or archives it, and undoes that.
// The card there shows the next change of the request. What changed meanwhile it shows at a
// click on it.
func TestTheCardOfAnEscalationIsDrawnAgainOnceItsChannelIsOpen(t *testing.T) {
	shuts := map[string]func(o *workspace) error{
		"removed":  func(o *workspace) error { return o.Leave("U0BOT", "C0GENERAL") },
		"archived": func(o *workspace) error { return o.Archive("U0ALICE", "C0GENERAL", true) },
	}
	opens := map[string]func(o *workspace) error{
		"removed":  func(o *workspace) error { return o.Join("U0BOT", "C0GENERAL") },
		"archived": func(o *workspace) error { return o.Archive("U0ALICE", "C0GENERAL", false) },
	}
	for how := range shuts {
		for _, clicked := range []bool{false, true} {
			t.Run(fmt.Sprint(how, " clicked ", clicked), func(t *testing.T) {
				o := newWorkspace(t, slacksim.Config{})
				root := o.say("U0ALICE", "clean up")
				two := escalating(o)
				two.Ask.Requirement.Quorums[0].Need = 2
				b := o.opens(root, two)
				o.draw(b)
				o.now.Advance(2 * time.Minute)
				require.NoError(t, o.desk.Tick(t.Context(), b.ID))
				o.draw(b)
				posts := len(o.Calls("chat.postMessage"))
				require.NoError(t, shuts[how](o))
				o.approves(o.batch(b.ID), 0)
				o.draw(b)
				require.Contains(t, plainWords(o.card("U0BOB", root)), "This couldn't be shown in C0GENERAL")
				further := func() slacksim.Message {
					all, err := o.Messages("U0DAVE", "C0GENERAL", "")
					require.NoError(t, err)
					require.Len(t, slices.DeleteFunc(slices.Clone(all), func(m slacksim.Message) bool { return m.Ephemeral }), 1)
					return all[0]
				}
				require.Contains(t, plainWords(further()), "0 of 2")
				require.NoError(t, opens[how](o))
				if clicked {
					o.press("U0BOB", further(), "approve", 0) // who has approved already
				} else {
					o.press("U0CAROL", o.card("U0CAROL", root), "approve", 0)
				}
				require.NoError(t, o.ui.Server.Shutdown(t.Context()))
				o.draw(b)
				if clicked {
					require.Contains(t, plainWords(further()), "1 of 2")
				} else {
					require.Contains(t, further().Shown(), "Approved: ")
				}
				require.NotContains(t, plainWords(o.card("U0BOB", root)), "This couldn't be shown")
				require.Len(t, o.Calls("chat.postMessage"), posts)
			})
		}
	}
}
