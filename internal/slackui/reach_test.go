package slackui_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// opsOf is a workspace in which only these people and the bot are in #ops.
func opsOf(members ...string) slacksim.Config {
	channels := slacksim.DefaultChannels()
	for i := range channels {
		if channels[i].ID == "C0OPS" {
			channels[i].Members = append([]string{slacksim.BotUser}, members...)
		}
	}
	return slacksim.Config{Channels: channels}
}

// asks draws a batch of Alice's in #ops.
func asks(t *testing.T, sim slacksim.Config, d ...approvals.Deferral) (*workspace, string, approvals.Batch) {
	t.Helper()
	o := newWorkspace(t, sim)
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, d...)
	o.draw(b)
	return o, root, b
}

// dave is a quorum of somebody outside of the groups.
var dave = by("dave", fromUser("U0DAVE"))

// Only who cannot see the card in the channel gets it in a direct message, can
// approve there, and sees what became of it.
func TestAnApproverOutsideOfTheChannelIsAskedDirectly(t *testing.T) {
	o, root, b := asks(t, opsOf("U0ALICE", "U0CAROL"), call("c1", "delete_file", `{"path":"a.txt"}`, sre))
	require.Len(t, o.directs("U0BOB"), 1)
	require.Empty(t, o.directs("U0CAROL"), "she is in the channel")
	require.Empty(t, o.directs("U0ALICE"))
	o.draw(b)
	require.Len(t, o.Calls("chat.postMessage"), 2, "nobody is asked twice")

	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", o.directs("U0BOB")[0], "approve", 0))
	require.Equal(t, approvals.Approved, o.status(b, 0))
	o.draw(b)
	for _, card := range []slacksim.Message{o.card("U0ALICE", root), o.directs("U0BOB")[0]} {
		require.Contains(t, plainWords(card), "Approved by U0BOB")
		require.Empty(t, card.Actions())
	}
}

func TestAPolicySaysWhoGetsDirectMessages(t *testing.T) {
	for name, c := range map[string]struct {
		to         approvals.DirectMessages
		bob, carol int
	}{
		"those outside": {approvals.DirectOutside, 1, 0},
		"everyone":      {approvals.DirectEveryone, 1, 1},
		"nobody":        {approvals.DirectNobody, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := call("c1", "delete_file", `{}`, sre)
			d.Ask.Requirement.Direct = c.to
			o, _, _ := asks(t, opsOf("U0ALICE", "U0CAROL"), d)
			require.Len(t, o.directs("U0BOB"), c.bob)
			require.Len(t, o.directs("U0CAROL"), c.carol)
			require.Empty(t, o.directs("U0ALICE"), "Carol reads it in the channel")
		})
	}
}

// In a direct message to the bot nobody else reads along.
func TestWhatIsAskedInADirectMessageReachesApprovers(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root, err := o.PostAs(slacksim.Post{User: "U0ALICE", Channel: "@countersign", Text: "clean up"})
	require.NoError(t, err)
	o.draw(o.opensIn("D0ALICE", root, call("c1", "delete_file", `{}`, by("named", fromUser("U0ALICE", "U0BOB")))))
	require.Len(t, o.directs("U0BOB"), 1)
	require.Empty(t, o.Calls("conversations.members"), "it is known who reads a direct message")
	require.Len(t, o.Calls("chat.postMessage"), 2, "Alice has the card in the conversation")
}

func TestOutsidersAreCountedWithoutThoseInTheChannel(t *testing.T) {
	for name, c := range map[string]struct{ outside, direct, told int }{
		"twenty get a message each":         {20, 20, 0},
		"of twenty-one only those here are": {21, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sim := opsOf("U0ALICE", "U0CAROL")
			sim.People = slacksim.DefaultPeople()
			from := fromUser("U0CAROL")
			for i := range c.outside {
				p := slacksim.Person{ID: fmt.Sprintf("U1%04d", i), Name: fmt.Sprintf("p%d", i)}
				sim.People, from.Users = append(sim.People, p), append(from.Users, approvals.UserID(p.ID))
			}
			o, root, _ := asks(t, sim, call("c1", "delete_file", `{}`, by("all", from)))
			require.Len(t, o.Calls("conversations.open"), c.direct)
			require.Len(t, o.directs("U0ALICE"), c.told, "Carol is in the channel")
			require.NotContains(t, plainWords(o.card("U0ALICE", root)), "Nobody was asked")
		})
	}
}

// Whoever asked reads once of each call that nobody was asked about, also after a
// restart, and the card says it for as long as it is so.
func TestWhoeverAskedReadsThatNobodyWasAsked(t *testing.T) {
	many := slacksim.Group{ID: "S0ALL", Handle: "all", Name: "All"}
	people := slacksim.DefaultPeople()
	for i := range 21 {
		p := slacksim.Person{ID: fmt.Sprintf("U1%04d", i), Name: fmt.Sprintf("p%d", i)}
		people, many.Users = append(people, p), append(many.Users, p.ID)
	}
	none := call("c1", "delete_file", `{}`, sre)
	none.Ask.Requirement.Direct = approvals.DirectNobody
	for name, c := range map[string]struct {
		call   approvals.Deferral
		refuse []slacksim.Fault
		want   string
	}{
		"a group without members": {call("c1", "delete_file", `{}`, by("none", fromGroup("S0NONE"))), nil, "nobody can approve this now. It needs S0NONE"},
		"a deactivated account":   {call("c1", "delete_file", `{}`, by("gone", fromUser("U0GONE"))), nil, "nobody can approve this now. It needs U0GONE"},
		"only whoever asked":      {separated("c1", by("own", fromUser("U0ALICE"))), nil, "nobody can approve this now. It needs U0ALICE"},
		"a group that is not known": {
			call("c1", "delete_file", `{}`, by("lost", fromGroup("S0LOST"))), nil, "Slack doesn't say who can approve this. It needs S0LOST",
		},
		"too many": {call("c1", "delete_file", `{}`, by("all", fromGroup("S0ALL"))), nil, "there are too many of them for direct messages: S0ALL"},
		"no direct messages taken": {
			call("c1", "delete_file", `{}`, dave),
			[]slacksim.Fault{{Method: "conversations.open", Error: "user_disabled"}},
			"these can't be sent a direct message: U0DAVE",
		},
		"none sent": {none, nil, "the policy sends no direct messages to S0SRE"},
	} {
		t.Run(name, func(t *testing.T) {
			sim := opsOf("U0ALICE")
			sim.People, sim.Groups = people, append(slacksim.DefaultGroups(), many, slacksim.Group{ID: "S0NONE", Handle: "none", Name: "None"})
			var config slackui.Config
			o := atNoon(t, sim, func(c *slackui.Config) { config = *c })
			root := o.say("U0ALICE", "clean up")
			b := o.opens(root, c.call)
			o.SetFaults(slacksim.Faults{Next: c.refuse})
			o.draw(b)
			o.moves(b, func(*approvals.Batch) {})
			again, err := slackui.New(config)
			require.NoError(t, err)
			if err := again.Cards.Reconcile(t.Context(), string(b.ID)); err != nil {
				require.ErrorContains(t, err, "others may be asked later")
			}
			o.notify(b)
			told := o.directs("U0ALICE")
			require.Len(t, told, 1)
			require.Contains(t, plainWords(told[0]), "Nobody was asked to approve 1 call that you asked for")
			require.Contains(t, plainWords(told[0]), c.want)
			require.Contains(t, plainWords(o.card("U0ALICE", root)), c.want)
			if name == "too many" {
				kept(t, "notice_unasked.json", o.sent())
			}
		})
	}
}

// Whoever asked, and whoever looks at the card, reads that too few people can approve a call,
// until enough can. People whom an escalation adds later are enough.
func TestTooFewPeopleCanApprove(t *testing.T) {
	two := approvals.Quorum{Name: "sre", Need: 2, From: fromGroup("S0SRE")}
	for name, c := range map[string]struct {
		users []string
		quo   []approvals.Quorum
		later bool
		want  string
	}{
		"enough":                        {[]string{"U0BOB", "U0CAROL"}, []approvals.Quorum{two}, false, ""},
		"a group that has shrunk":       {[]string{"U0BOB"}, []approvals.Quorum{two}, false, "S0SRE"},
		"one of two has left":           {[]string{"U0BOB", "U0GONE"}, []approvals.Quorum{two}, false, "S0SRE"},
		"one person in both quorums":    {[]string{"U0BOB"}, []approvals.Quorum{by("sre", fromGroup("S0SRE")), by("bob", fromUser("U0BOB"))}, false, "S0SRE, U0BOB"},
		"an escalation adds the second": {[]string{"U0BOB"}, []approvals.Quorum{two}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sim := opsOf("U0ALICE", "U0BOB", "U0CAROL")
			sim.Groups = []slacksim.Group{{ID: "S0SRE", Handle: "sre", Name: "SRE", Users: c.users}}
			d := separated("c1", c.quo[0])
			d.Ask.Requirement.Quorums = c.quo
			if c.later {
				d.Ask.Requirement.Ladder = []approvals.Rung{{Kind: approvals.Escalate, At: noon.Add(time.Hour), Quorum: "sre", Add: fromUser("U0DAVE")}}
			}
			o, root, b := asks(t, sim, d)
			if c.want == "" {
				require.Empty(t, o.directs("U0ALICE"))
				require.NotContains(t, plainWords(o.card("U0ALICE", root)), "Too few people")
				return
			}
			told := o.directs("U0ALICE")
			require.Len(t, told, 1)
			require.Contains(t, plainWords(told[0]), "Too few people can approve 1 call that you asked for")
			words := "it can't get all the approvals that it still needs from " + c.want
			require.Contains(t, plainWords(told[0]), words)
			require.Contains(t, plainWords(o.card("U0ALICE", root)), "Too few people can approve delete_file: "+words)

			require.NoError(t, o.SetGroup("S0SRE", []string{"U0BOB", "U0CAROL"}))
			o.now.Advance(5 * time.Minute)
			o.draw(b)
			require.NotContains(t, plainWords(o.card("U0ALICE", root)), "Too few people")
			require.Len(t, o.directs("U0ALICE"), 1)
		})
	}
}

// Too few are left where one of them has denied the call, until they take that back.
func TestTooFewUntilADenialIsTakenBack(t *testing.T) {
	d := separated("c1", approvals.Quorum{Name: "both", Need: 2, From: fromUser("U0BOB", "U0CAROL")})
	d.Ask.Requirement.Deny = 2
	o, root, b := asks(t, opsOf("U0ALICE", "U0BOB", "U0CAROL"), d)
	require.Empty(t, o.directs("U0ALICE"))
	_, err := o.desk.Decide(t.Context(), b.ID, "bob", approvals.Decide{Decision: approvals.Decision{
		Call: "c1", By: approvals.Principal{User: "U0BOB"}, Verdict: approvals.Deny, Digest: b.Approvals[0].Call.Digest, At: o.now.Now(),
	}})
	require.NoError(t, err)
	o.draw(b)
	words := "it can't get all the approvals that it still needs from U0BOB, U0CAROL, unless those who denied it take that back"
	require.Contains(t, plainWords(o.card("U0ALICE", root)), "Too few people can approve delete_file: "+words+".")
	require.Contains(t, plainWords(o.directs("U0ALICE")[0]), words)
	require.Equal(t, 200, o.press("U0BOB", o.card("U0BOB", root), "retract", 0).Status)
	o.draw(b)
	require.NotContains(t, plainWords(o.card("U0ALICE", root)), "Too few people")
}

// While Slack does not say who can approve, the card goes on saying what it said.
func TestTooFewIsSaidUntilItIsKnownOtherwise(t *testing.T) {
	sim := opsOf("U0ALICE", "U0BOB")
	sim.Groups = []slacksim.Group{{ID: "S0SRE", Handle: "sre", Name: "SRE", Users: []string{"U0BOB"}}}
	d := call("c1", "delete_file", `{}`, approvals.Quorum{Name: "sre", Need: 2, From: fromGroup("S0SRE")})
	d.Ask.Requirement.Ladder = []approvals.Rung{{Kind: approvals.Escalate, At: noon.Add(time.Hour), Quorum: "sre", Add: fromUser("U0GONE")}}
	o, root, b := asks(t, sim, d)
	require.Contains(t, plainWords(o.card("U0ALICE", root)), "Too few people")
	drawn := len(o.Calls("chat.update"))
	o.now.Advance(5 * time.Minute)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "users.info"}, {Method: "users.info", Status: 429, RetryAfter: 30}}})
	o.drawnUntil(b, 30*time.Second)
	require.Contains(t, plainWords(o.card("U0ALICE", root)), "Too few people")
	o.now.Advance(30 * time.Second)
	o.drawnUntil(b, 5*time.Minute)
	require.Len(t, o.Calls("chat.update"), drawn, "nothing else is said meanwhile")
}

// A message that has to wait does not repeat the one before it.
func TestNobodyAskedAndTooFewAreEachSaidOnce(t *testing.T) {
	sim := opsOf("U0ALICE", "U0BOB")
	sim.Groups = []slacksim.Group{{ID: "S0SRE", Handle: "sre", Name: "SRE", Users: []string{"U0BOB"}}, {ID: "S0NONE", Handle: "none", Name: "None"}}
	o := newWorkspace(t, sim, func(c *slackui.Config) { c.MessagesPerMinute = 1 })
	b := o.opens(o.say("U0ALICE", "clean up"), call("c1", "delete_file", `{}`, by("none", fromGroup("S0NONE"))),
		call("c2", "delete_file", `{}`, approvals.Quorum{Name: "sre", Need: 2, From: fromGroup("S0SRE")}))
	for range 4 {
		var later *slackapi.LaterError
		require.ErrorAs(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), &later)
		o.now.Advance(later.After)
	}
	told := o.directs("U0ALICE")
	require.Len(t, told, 2)
	require.Contains(t, plainWords(told[0])+plainWords(told[1]), "Nobody was asked to approve 1 call")
	require.Contains(t, plainWords(told[0])+plainWords(told[1]), "Too few people can approve 1 call")
}

// Of those who share a credential each is told once, whoever of them cannot be told or
// must wait.
func TestEachOfSeveralWhoAskIsToldOnce(t *testing.T) {
	sim := opsOf("U0ALICE", "U0BOB", "U0DAVE")
	sim.Groups = []slacksim.Group{{ID: "S0NONE", Handle: "none", Name: "None"}}
	o := newWorkspace(t, sim)
	b := o.opens("", separated("c1", by("none", fromGroup("S0NONE"))))
	b.Requester, b.Participants = approvals.ServiceUser("shared"), []approvals.UserID{"U0GONE", "U0ALICE", "U0DAVE"}
	b = o.elsewhere(b, "C0OPS")
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{ // the card, and what Alice and Dave are told
		{Method: "chat.postMessage"}, {Method: "chat.postMessage"}, {Method: "chat.postMessage", Status: 429, RetryAfter: 30},
	}})
	o.drawnUntil(b, 30*time.Second)
	require.Len(t, o.directs("U0ALICE"), 1)
	require.Empty(t, o.directs("U0DAVE"))
	o.now.Advance(30 * time.Second)
	o.drawnUntil(b, 5*time.Minute)
	require.Len(t, o.directs("U0ALICE"), 1)
	require.Len(t, o.directs("U0DAVE"), 1)
}

// Whoever has approved is not named among those who were not asked.
func TestWhoeverHasApprovedIsNotOneWhoWasNotAsked(t *testing.T) {
	from, sim := fromUser("U0ALICE", "U0BOB"), opsOf("U0ALICE", "U0BOB")
	sim.People = slacksim.DefaultPeople()
	for i := range 21 {
		p := slacksim.Person{ID: fmt.Sprintf("U1%04d", i), Name: fmt.Sprintf("p%d", i)}
		sim.People, from.Users = append(sim.People, p), append(from.Users, approvals.UserID(p.ID))
	}
	o, root, b := asks(t, sim, separated("c1", approvals.Quorum{Name: "all", Need: 2, From: from}))
	require.Equal(t, 200, o.press("U0BOB", o.card("U0BOB", root), "approve", 0).Status)
	o.draw(b)
	require.Contains(t, plainWords(o.card("U0BOB", root)), "there are too many of them for direct messages: U10000, ")
}

// The card says no more that nobody was asked when somebody is.
func TestTheCardIsRightAgainWhenSomebodyCanApprove(t *testing.T) {
	sim := opsOf("U0ALICE")
	sim.Groups = append(slacksim.DefaultGroups(), slacksim.Group{ID: "S0NONE", Handle: "none", Name: "None"})
	o, root, b := asks(t, sim, call("c1", "delete_file", `{}`, by("none", fromGroup("S0NONE"))))
	require.Contains(t, plainWords(o.card("U0ALICE", root)), "Nobody was asked yet")
	var later *slackapi.LaterError
	require.ErrorAs(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), &later)
	require.NoError(t, o.SetGroup("S0NONE", []string{"U0DAVE"}))
	o.now.Advance(later.After)
	require.NoError(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)))
	require.Len(t, o.directs("U0DAVE"), 1)
	require.NotContains(t, plainWords(o.card("U0ALICE", root)), "Nobody was asked yet")
	require.Len(t, o.directs("U0ALICE"), 1)
}

// Who is in the channel is asked again while Slack has troubles, which never delays
// the card.
func TestAChannelThatCannotBeLookedUpNowDelaysOnlyDirectMessages(t *testing.T) {
	o := newWorkspace(t, opsOf("U0ALICE", "U0CAROL"))
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "conversations.members", Error: "internal_error"}}})
	var later *slackapi.LaterError
	require.ErrorAs(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), &later)
	require.NotEmpty(t, o.card("U0CAROL", root).Actions())
	require.Empty(t, o.Calls("conversations.open"))
	o.now.Advance(later.After)
	o.draw(b)
	require.Len(t, o.directs("U0BOB"), 1)
	require.Empty(t, o.directs("U0CAROL"))
}

// Where Slack never says who is in the channel, everybody is taken to be outside.
func TestAChannelThatIsNeverKnownMakesEverybodyAnOutsider(t *testing.T) {
	o := newWorkspace(t, opsOf("U0ALICE", "U0CAROL"))
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "conversations.members", Error: "missing_scope"}}})
	o.draw(b)
	require.Len(t, o.directs("U0BOB"), 1)
	require.Len(t, o.directs("U0CAROL"), 1)
	require.Empty(t, o.directs("U0ALICE"))
}

// A group that Slack does not tell of for minutes is said to be so, and is looked up
// further.
func TestAGroupThatCannotBeLookedUpIsSaidAfterAWhile(t *testing.T) {
	o := newWorkspace(t, opsOf("U0ALICE"))
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	down := slacksim.Fault{Method: "usergroups.users.list", Error: "internal_error"}
	var later *slackapi.LaterError
	draws := func() {
		o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{down}})
		require.ErrorAs(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), &later)
	}
	draws()
	require.Empty(t, o.directs("U0ALICE"), "it may be known in a moment")
	o.now.Advance(2 * time.Minute)
	draws()
	draws()
	require.Len(t, o.directs("U0ALICE"), 1)
	require.Contains(t, plainWords(o.directs("U0ALICE")[0]), "Slack doesn't say who can approve this. It needs S0SRE")
	require.Contains(t, plainWords(o.card("U0ALICE", root)), "Slack doesn't say who can approve this. It needs S0SRE")
	o.draw(b)
	require.Len(t, o.directs("U0BOB"), 1)
	require.NotContains(t, plainWords(o.card("U0ALICE", root)), "Nobody was asked yet")
}

// A group that has approved is not named as what the call still needs, and was asked.
func TestWhoHasApprovedIsNotSaidToBeMissing(t *testing.T) {
	sim := slacksim.Config{Groups: append(slacksim.DefaultGroups(), slacksim.Group{ID: "S0NONE", Handle: "none", Name: "None", Users: []string{"U0DAVE"}})}
	o := newWorkspace(t, sim)
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre, by("none", fromGroup("S0NONE"))))
	o.draw(b)
	require.NoError(t, o.SetGroup("S0NONE", nil))
	o.now.Advance(2 * time.Minute)
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", o.card("U0BOB", root), "approve", 0))
	var later *slackapi.LaterError
	require.ErrorAs(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), &later, "somebody may join the group")
	require.Contains(t, plainWords(o.card("U0ALICE", root)), "No one else was asked yet about delete_file: nobody can approve this now. It needs S0NONE.")
	require.Contains(t, plainWords(o.directs("U0ALICE")[0]), "No one else was asked to approve 1 call that you asked for")
	require.NotContains(t, plainWords(o.directs("U0ALICE")[0]), "S0SRE")
}
