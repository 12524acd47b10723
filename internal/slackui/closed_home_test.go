package slackui_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
)

// Someone archives the channel of the thread, or removes the app from it. Those who are
// asked directly still get the request, and read what became of it. The card in the thread
// stays a failure, so that an operator hears of it.
func TestPeopleAreAskedDirectlyWhereTheThreadTakesNoCard(t *testing.T) {
	closed := map[string]string{
		"archived": "is_archived", "frozen": "is_inactive", "left": "not_in_channel", "gone": "channel_not_found",
		"restricted": "restricted_action", "without the first message": "cannot_reply_to_message",
	}
	for name, code := range closed {
		t.Run(name+" before the card", func(t *testing.T) {
			o := newWorkspace(t, slacksim.Config{})
			b := o.opens(o.say("U0ALICE", "clean up"), directCall(sre))
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.postMessage", Error: code}}})
			require.ErrorContains(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), code)
			for _, user := range []string{"U0BOB", "U0CAROL"} {
				require.Len(t, o.directs(user), 1, user)
				require.NotEmpty(t, o.directs(user)[0].Actions(), user)
			}
			require.Len(t, o.Calls("chat.postMessage"), 3)
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.postMessage", Error: code}}})
			require.ErrorContains(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), code)
			require.Len(t, o.Calls("chat.postMessage"), 4, "nobody is asked twice")
		})
		t.Run(name+" before the decision", func(t *testing.T) {
			o, _, b := one(t, directCall(sre))
			o.press("U0BOB", o.directs("U0BOB")[0], "approve", 0)
			require.Equal(t, approvals.Approved, o.status(b, 0))
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.update", Error: code}}})
			_ = o.ui.Cards.Reconcile(t.Context(), string(b.ID))
			for _, user := range []string{"U0BOB", "U0CAROL"} {
				require.Contains(t, plainWords(o.directs(user)[0]), "Approved by U0BOB")
				require.Empty(t, o.directs(user)[0].Actions(), "no button stays that decides nothing any more")
			}
		})
	}
}

// Those who are in the channel are asked directly too if it takes no card, and the card is
// posted there once it does. If the rule sends no direct messages, the requester is told that
// nobody was asked.
func TestPeopleInAChannelThatTakesNoCardAreAskedDirectly(t *testing.T) {
	for _, direct := range []approvals.DirectMessages{approvals.DirectOutside, approvals.DirectNobody} {
		o := newWorkspace(t, slacksim.Config{})
		d := call("c1", "delete_file", `{"path":"a.txt"}`, sre)
		d.Ask.Requirement.Direct = direct
		root := o.say("U0ALICE", "clean up")
		b := o.opens(root, d)
		require.NoError(t, o.Archive("U0ALICE", "C0OPS", true))
		for range 2 {
			require.ErrorContains(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), "is_archived")
		}
		want := map[string]int{"U0BOB": 1, "U0CAROL": 1}
		if direct == approvals.DirectNobody {
			want = map[string]int{"U0ALICE": 1}
			require.Contains(t, plainWords(o.directs("U0ALICE")[0]), "Nobody was asked")
		}
		for _, user := range []string{"U0ALICE", "U0BOB", "U0CAROL"} {
			require.Len(t, o.directs(user), want[user], "%s %s", direct, user)
		}
		require.NoError(t, o.Archive("U0ALICE", "C0OPS", false))
		o.draw(b)
		o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
		o.draw(b)
		for user, n := range want {
			require.Len(t, o.directs(user), n, user)
			require.Empty(t, o.directs(user)[0].Actions())
		}
	}
}

// The request can be decided while its channel is archived, and its card is drawn once the
// channel is opened again.
func TestARequestIsDecidedWhileItsChannelIsArchived(t *testing.T) {
	o, root, b := one(t, directCall(sre))
	require.NoError(t, o.Archive("U0ALICE", "C0OPS", true))
	o.press("U0BOB", o.directs("U0BOB")[0], "approve", 0)
	require.Equal(t, approvals.Approved, o.status(b, 0))
	require.ErrorContains(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), "is_inactive")
	require.Contains(t, plainWords(o.directs("U0CAROL")[0]), "Approved by U0BOB")
	require.NoError(t, o.Archive("U0ALICE", "C0OPS", false))
	require.NoError(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)))
	require.Contains(t, plainWords(o.card("U0BOB", root)), "Approved by U0BOB")
}

// Somebody removes the app from the channel and invites it again. The card shows what became
// of the request meanwhile, and there is no second one beside it.
func TestTheCardIsDrawnAgainOnceTheAppIsInvitedAgain(t *testing.T) {
	for need, status := range map[int]approvals.Status{1: approvals.Approved, 2: approvals.Pending} {
		o, root, b := one(t, directCall(approvals.Quorum{Name: "sre", Need: need, From: sre.From}))
		before := o.thread("U0DAVE", root)
		require.NoError(t, o.Leave("U0BOT", "C0OPS"))
		o.press("U0BOB", o.directs("U0BOB")[0], "approve", 0)
		require.ErrorContains(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), "channel_not_found")
		require.NoError(t, o.Join("U0BOT", "C0OPS"))
		o.draw(b)
		require.Equal(t, status, o.status(b, 0))
		require.Len(t, o.thread("U0DAVE", root), len(before))
		card := o.card("U0DAVE", root)
		require.Contains(t, plainWords(card), "U0BOB")
		require.Equal(t, status == approvals.Pending, len(card.Actions()) > 0)
	}
}

// A card whose drawing was given up while its channel was archived is drawn again once
// somebody presses it.
func TestAPressOnACardThatWasGivenUpHasItDrawnAgain(t *testing.T) {
	o, root, b := one(t)
	o.approves(b, 0)
	require.NoError(t, server.Del(t.Context(), o.Store.Prefix()+":{p07}:due").Err()) // with all that is due there
	require.False(t, o.isDue(b))
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0CAROL", o.card("U0CAROL", root), "approve", 0))
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	require.True(t, o.isDue(b))
	o.draw(b)
	require.Contains(t, plainWords(o.card("U0CAROL", root)), "Approved by U0BOB")
	require.False(t, o.isDue(b))
}
