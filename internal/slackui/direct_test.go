package slackui_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
)

// directCall asks each of those who can sign by a message of their own.
func directCall(q ...approvals.Quorum) approvals.Deferral {
	d := call("c1", "delete_file", `{"path":"a.txt"}`, q...)
	d.Ask.Requirement.Direct = approvals.DirectEveryone
	return d
}

// directs are the app's messages to one person.
func (o *workspace) directs(user string) []slacksim.Message {
	o.t.Helper()
	all, err := o.Messages(user, "D"+user[1:], "")
	if errors.Is(err, slacksim.ErrNoSuch) {
		return nil
	}
	require.NoError(o.t, err)
	return all
}

func TestThoseWhoCanSignAreAskedDirectly(t *testing.T) {
	o, root, b := one(t, directCall(sre))
	for _, user := range []string{"U0BOB", "U0CAROL"} {
		cards := o.directs(user)
		require.Len(t, cards, 1, user)
		require.Contains(t, plainWords(cards[0]), "Asked in C0OPS, and is shown to you because you can approve it.")
		require.NotEmpty(t, cards[0].Actions())
	}
	require.Empty(t, o.directs("U0DAVE"), "who cannot sign is not asked")
	require.Empty(t, o.directs("U0ALICE"))
	o.draw(b)
	require.Len(t, o.Calls("chat.postMessage"), 3, "nobody is asked twice")

	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", o.directs("U0BOB")[0], "approve", 0))
	require.Equal(t, approvals.Approved, o.status(b, 0))
	o.draw(b)
	for _, card := range []slacksim.Message{o.card("U0ALICE", root), o.directs("U0BOB")[0], o.directs("U0CAROL")[0]} {
		require.Contains(t, plainWords(card), "Approved by U0BOB")
		require.Empty(t, card.Actions())
	}
	require.Len(t, o.Calls("chat.postMessage"), 3)
}

// TestACopyDoesNotSayThatItsEditorCanSign: who changed the arguments may not
// sign them any more, and keeps the copy.
func TestACopyDoesNotSayThatItsEditorCanSign(t *testing.T) {
	d := deletion(sre)
	d.Ask.Requirement.Direct = approvals.DirectEveryone
	o, root, b := rewrite(t, rulings{}, nil, d)
	require.NotNil(t, o.sends("U0BOB", o.edit("U0BOB", root), map[string]string{"path": "c.txt"}).View)
	o.draw(b)
	require.Contains(t, plainWords(o.directs("U0BOB")[0]), "and was shown to you when you could approve it.")
	require.Contains(t, plainWords(o.directs("U0CAROL")[0]), "and is shown to you because you can approve it.")
}

// A stage that comes later asks its people when it is their turn.
func TestWhoCanHelpLaterIsAskedThen(t *testing.T) {
	first, second := sre, approvals.Quorum{Name: "boss", Need: 1, Stage: 2, From: approvals.From{Users: []approvals.UserID{"U0DAVE"}}}
	first.Stage = 1
	o, _, b := one(t, directCall(first, second))
	require.Empty(t, o.directs("U0DAVE"))
	o.approves(b, 0)
	o.draw(b)
	require.Len(t, o.directs("U0DAVE"), 1)
	require.Contains(t, plainWords(o.directs("U0BOB")[0]), "boss: 0 of 1 approval")
}

func TestAnEscalationAsksItsPeopleDirectly(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	d := escalating(o)
	d.Ask.Requirement.Direct = approvals.DirectEveryone
	b := o.opens(root, d)
	o.draw(b)
	require.Empty(t, o.directs("U0DAVE"))
	o.now.Advance(2 * time.Minute)
	require.NoError(t, o.desk.Tick(t.Context(), b.ID))
	o.draw(b)
	require.Len(t, o.directs("U0DAVE"), 1)
}

func TestWhoCannotBeWrittenToIsPassedOver(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, directCall(sre))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "conversations.open", Error: "user_disabled"}}})
	o.draw(b)
	o.draw(b)
	require.Len(t, o.Calls("conversations.open"), 2, "once each, and not again")
	require.Empty(t, o.directs("U0BOB"))
	require.Len(t, o.directs("U0CAROL"), 1)
	require.NotEmpty(t, o.card("U0BOB", root).Actions())
}

func TestACrowdIsAskedInTheChannelOnly(t *testing.T) {
	people, group := slacksim.DefaultPeople(), slacksim.Group{ID: "S0ALL", Handle: "all", Name: "All"}
	for i := range 21 {
		id := fmt.Sprintf("U0MANY%02d", i)
		people = append(people, slacksim.Person{ID: id, Name: id, Team: slacksim.TeamID})
		group.Users = append(group.Users, id)
	}
	o := newWorkspace(t, slacksim.Config{People: people, Groups: append(slacksim.DefaultGroups(), group)})
	root := o.say("U0ALICE", "clean up")
	o.draw(o.opens(root, directCall(approvals.Quorum{Name: "all", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"S0ALL"}}})))
	require.Len(t, o.Calls("conversations.open"), 1, "only whoever asked reads that nobody was asked")
	require.Len(t, o.directs("U0ALICE"), 1)
	require.Contains(t, plainWords(o.card("U0BOB", root)), "from S0ALL")
}

// TestACopyIsNotRedrawnForWhoMayNotLook: new arguments are not sent to somebody
// who was asked, is asked no more, and sees the request nowhere else.
func TestACopyIsNotRedrawnForWhoMayNotLook(t *testing.T) {
	channels := slacksim.DefaultChannels()
	for i := range channels {
		if channels[i].ID == "C0OPS" {
			channels[i].Members = []string{slacksim.BotUser, "U0ALICE", "U0CAROL"}
		}
	}
	o := newWorkspace(t, slacksim.Config{Channels: channels})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, directCall(sre))
	o.draw(b)
	require.NotEmpty(t, o.directs("U0BOB")[0].Actions())
	require.NoError(t, o.SetGroup("S0SRE", []string{"U0CAROL"}))
	o.now.Advance(11 * time.Minute)
	next := json.RawMessage(`{"path":"TOPSECRET"}`)
	o.moves(b, func(now *approvals.Batch) {
		a := now.Approvals[0]
		from := a.Call.Digest
		a.Call.Digest = approvals.DigestOf(b.ID, approvals.ToolCall{ID: "c1", Name: "delete_file", Args: next})
		a.Call.Size = len(next)
		a.Amendments = append(a.Amendments, approvals.Amendment{From: from, To: a.Call.Digest, By: approvals.Principal{User: "U0ALICE"}, At: o.now.Now()})
		now.Approvals[0] = a
	}, approvals.ToolCall{ID: "c1", Name: "delete_file", Args: next})
	o.draw(b)
	bob, carol := o.directs("U0BOB")[0], o.directs("U0CAROL")[0]
	require.NotContains(t, plainWords(bob)+bob.Text, "TOPSECRET")
	require.Contains(t, plainWords(bob), "You no longer need to look at this request")
	require.Empty(t, bob.Actions())
	require.Contains(t, plainWords(carol), "TOPSECRET")
	require.NotEmpty(t, carol.Actions())
}

// Nobody else can open the direct messages in which something was asked for: links lead to
// what the person has, and where that is nothing, they review the request from the list.
func TestLinksLeadNobodyIntoTheDirectMessagesOfSomebodyElse(t *testing.T) {
	for name, direct := range map[string]approvals.DirectMessages{"with a copy": approvals.DirectEveryone, "without": approvals.DirectNobody} {
		t.Run(name, func(t *testing.T) {
			o := atNoon(t, slacksim.Config{}, inLists)
			root, err := o.PostAs(slacksim.Post{User: "U0ALICE", Channel: "@countersign", Text: "clean up"})
			require.NoError(t, err)
			d := laddered(directCall(sre), reminds(time.Hour))
			d.Ask.Requirement.Direct = direct
			b := o.opensIn("D0ALICE", root, d)
			o.draw(b)
			require.NoError(t, o.stirs(b))
			o.pass(time.Hour)
			o.climbs(b)
			o.notify(b)
			theirs := linksOf(t, o.directs("U0BOB"))
			require.Contains(t, theirs, "1 call waits for your approval")
			require.NotContains(t, theirs, "archives/D0ALICE")
			require.Equal(t, direct == approvals.DirectEveryone, strings.Contains(theirs, "archives/D0BOB"))

			list := linksOf(t, o.listed("U0BOB"))
			require.NotContains(t, list, "archives/D0ALICE")
			require.Equal(t, direct == approvals.DirectNobody, strings.Contains(list, "countersign.review"))
			require.Contains(t, linksOf(t, o.listed("U0ALICE")), "archives/D0ALICE", "she can open hers")
		})
	}
}

// listed is the whole list as the person gets it.
func (o *workspace) listed(user string) *slacksim.Message {
	o.t.Helper()
	out, err := o.Command(slacksim.Command{User: user, Channel: "C0OPS", Command: "/countersign", Text: "list all"})
	require.NoError(o.t, err)
	return out.Message
}

// linksOf is everything that a message has, with the addresses of its links.
func linksOf(t *testing.T, messages any) string {
	t.Helper()
	raw, err := json.Marshal(messages)
	require.NoError(t, err)
	return string(raw)
}
