package slackui_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

func by(name string, from approvals.From) approvals.Quorum {
	return approvals.Quorum{Name: name, Need: 1, From: from}
}

func fromGroup(ids ...approvals.GroupID) approvals.From { return approvals.From{Groups: ids} }

func fromUser(ids ...approvals.UserID) approvals.From { return approvals.From{Users: ids} }

func warRoom() slacksim.Config {
	return slacksim.Config{Channels: append(slacksim.DefaultChannels(),
		slacksim.Channel{ID: "G0WAR", Name: "war-room", Private: true, Members: []string{"U0DAVE", "U0GUEST", slacksim.BotUser}})}
}

func TestTheMembersOfAChannelSign(t *testing.T) {
	o := newWorkspace(t, warRoom())
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, by("war room", fromGroup("G0WAR"))))
	o.draw(b)
	card := o.thread("U0BOB", root)[0]
	o.press("U0BOB", card, "approve", 0)
	require.Equal(t, approvals.Pending, o.status(b, 0), "he is not in the channel")
	require.Contains(t, o.whispers("U0BOB", root)[0], "<#G0WAR> can approve it.")
	o.press("U0DAVE", card, "approve", 0)
	require.Equal(t, approvals.Approved, o.status(b, 0))
}

func TestALargeChannelIsReadToItsEnd(t *testing.T) {
	sim := slacksim.Config{People: slacksim.DefaultPeople()}
	var all []string
	for i := range 1500 {
		all = append(all, fmt.Sprintf("U1%04d", i))
		sim.People = append(sim.People, slacksim.Person{ID: all[i], Name: fmt.Sprintf("p%d", i)})
	}
	sim.Channels = append(slacksim.DefaultChannels(), slacksim.Channel{ID: "C0ALL", Name: "all", Members: append(all, "U0DAVE")})
	o := newWorkspace(t, sim)
	users, at, err := o.ui.Members(t.Context(), "C0ALL")
	require.NoError(t, err)
	require.Equal(t, o.now.Now().UTC(), at.UTC())
	require.Len(t, users, 1501)
	require.Equal(t, approvals.UserID("U0DAVE"), users[1500])
	require.Len(t, o.Calls("conversations.members"), 2)
	_, _, err = o.ui.Members(t.Context(), "C0ALL")
	require.NoError(t, err)
	require.Len(t, o.Calls("conversations.members"), 2, "it is remembered")
}

// A group that is empty, disabled, unknown or hidden signs nothing.
func TestAGroupWithoutMembersNeverCounts(t *testing.T) {
	sim := warRoom()
	sim.Channels = append(sim.Channels, slacksim.Channel{ID: "C0HIDDEN", Name: "hidden", Private: true, Members: []string{"U0BOB"}},
		slacksim.Channel{ID: "C0EMPTY", Name: "empty"})
	sim.Groups = append(slacksim.DefaultGroups(), slacksim.Group{ID: "S0NONE", Handle: "none"},
		slacksim.Group{ID: "S0OLD", Handle: "old", Users: []string{"U0BOB"}, Disabled: true})
	for group, words := range map[approvals.GroupID]string{
		"S0NONE": "You can't approve this. Nothing changed.", "C0EMPTY": "You can't approve this. Nothing changed.",
		"S0OLD": "Slack no longer has <!subteam^S0OLD>", "S0NOWHERE": "Slack no longer has <!subteam^S0NOWHERE>",
		"C0HIDDEN": "Slack no longer has <#C0HIDDEN>",
	} {
		t.Run(string(group), func(t *testing.T) {
			o := newWorkspace(t, sim)
			root := o.say("U0ALICE", "clean up")
			b := o.opens(root, call("c1", "delete_file", `{}`, by("somebody", fromGroup(group))))
			o.draw(b)
			o.press("U0BOB", o.thread("U0BOB", root)[0], "approve", 0)
			require.Equal(t, approvals.Pending, o.status(b, 0))
			require.Contains(t, o.whispers("U0BOB", root)[0], words)
		})
	}
}

// A group that is disabled while a request waits takes no right from anyone else.
func TestAGroupThatIsGoneKeepsNobodyElseFromDeciding(t *testing.T) {
	sim := warRoom()
	sim.Groups = append(slacksim.DefaultGroups(), slacksim.Group{ID: "S0OLD", Handle: "old", Users: []string{"U0ALICE"}, Disabled: true})
	asked := approvals.From{Groups: []approvals.GroupID{"S0OLD", "S0SRE"}, Users: []approvals.UserID{"U0DAVE"}}
	for user, words := range map[string]string{
		"U0BOB": "", "U0DAVE": "", // of another group, and by name
		"U0ALICE": "Slack no longer has <!subteam^S0OLD>",
	} {
		t.Run(user, func(t *testing.T) {
			o := newWorkspace(t, sim)
			root := o.say("U0ALICE", "clean up")
			b := o.opens(root, call("c1", "delete_file", `{}`, by("somebody", asked)), call("c2", "delete_file", `{}`, by("somebody", asked)))
			o.draw(b)
			o.press(user, o.thread("U0BOB", root)[0], "approve", 0)
			o.press(user, o.thread("U0BOB", root)[0], "deny", 1)
			if words != "" {
				require.Equal(t, approvals.Pending, o.status(b, 0))
				require.Contains(t, o.whispers(user, root)[0], words)
				return
			}
			require.Equal(t, approvals.Approved, o.status(b, 0))
			require.Len(t, o.Views(user), 1, "the form of the denial")
		})
	}
}

func TestADecisionIsTakenBackAlsoWhenItsGroupIsGone(t *testing.T) {
	both := sre
	both.Need = 2
	o, root, b := one(t, call("c1", "delete_file", `{}`, both))
	o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
	o.draw(b)
	require.Len(t, o.batch(b.ID).Approvals[0].Decisions, 1)
	o.now.Advance(2 * time.Minute)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "no_such_subteam"}}})
	o.press("U0BOB", o.card("U0BOB", root), "retract", 0)
	require.Empty(t, o.batch(b.ID).Approvals[0].Decisions)
}

func TestGuestsSignOnlyWhereTheyAreNamed(t *testing.T) {
	sim := slacksim.Config{Channels: slacksim.DefaultChannels(), Groups: slacksim.DefaultGroups()}
	sim.Channels[0].Members = append(slices.Clone(sim.Channels[0].Members), "U0GUEST")
	sim.Groups[0].Users = append(slices.Clone(sim.Groups[0].Users), "U0GUEST")
	o := newWorkspace(t, sim)
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre), call("c2", "delete_file", `{}`, by("gita", fromUser("U0GUEST"))))
	o.draw(b)
	card := o.thread("U0BOB", root)[0]
	o.press("U0GUEST", card, "approve", 0)
	require.Equal(t, approvals.Pending, o.status(b, 0), "she is in the group, and a guest counts in none")
	o.press("U0GUEST", card, "approve", 1)
	require.Equal(t, approvals.Approved, o.status(b, 1))
	o.press("U0GUEST", card, "approve", 0)
	require.Contains(t, o.whispers("U0GUEST", root), "Guests of this workspace can't do this. Nothing changed. Ask a full member.",
		"the call that names her is settled")
}

func TestPeopleOfOtherOrganizationsSignOnlyWhereTheyAreNamed(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}.WithGlobex())
	root, err := o.PostAs(slacksim.Post{User: "U0ALICE", Channel: "C0DEAL", Text: "clean up"})
	require.NoError(t, err)
	b := o.opensIn("C0DEAL", root, call("c1", "delete_file", `{}`, by("deal", fromGroup("C0DEAL"))),
		call("c2", "delete_file", `{}`, by("erin", fromUser("U0ERIN"))))
	o.draw(b)
	card, err := o.Messages("U0ERIN", "C0DEAL", root)
	require.NoError(t, err)
	o.press("U0ERIN", card[1], "approve", 0)
	require.Equal(t, approvals.Pending, o.status(b, 0), "she is in the channel, and a stranger counts in none")
	o.press("U0ERIN", card[1], "deny", 1)
	view := o.Views("U0ERIN")
	require.Len(t, view, 1)
	_, err = o.SubmitView(slacksim.Submit{User: "U0ERIN", ViewID: view[0].ID})
	require.NoError(t, err)
	require.Equal(t, approvals.Denied, o.status(b, 1), "her form comes from her own workspace, and is ours all the same")
}

func TestBotsAndTheDeactivatedNeverSign(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	for user, words := range map[approvals.UserID]bool{"U0BOT": false, "U0GONE": false, "U0GUEST": true, "U0BOB": true} {
		able, err := o.ui.AbleByName(t.Context(), user)
		require.NoError(t, err)
		require.Equal(t, words, able, user)
	}
	able, err := o.ui.Able(t.Context(), "U0GUEST")
	require.NoError(t, err)
	require.False(t, able)
	_, err = o.ui.Able(t.Context(), "U0NOBODY")
	require.Error(t, err, "what is not known is not said")
}

// That Slack does not know a person is an answer, and no reason to try again.
func TestAPersonWhomSlackDoesNotKnowIsToldSo(t *testing.T) {
	const unknown = "Slack doesn't know this account, so it can't do this. Nothing changed."
	o, _, b := one(t, call("c1", "delete_file", `{}`, by("nobody", fromUser("U0NOBODY"))))
	answer := o.delivered(denied("U0NOBODY", "", "No.", button(b, 0))).Body.String()
	require.Contains(t, answer, unknown)
	require.NotContains(t, answer, "didn't answer in time")
	require.Equal(t, approvals.Pending, o.status(b, 0))
}

// organization is Countersign installed in a whole organization.
func organization(t *testing.T, sim slacksim.Config) *workspace {
	t.Helper()
	return newWorkspace(t, sim, func(c *slackui.Config) { c.Team, c.Enterprise = "E0ACME", "E0ACME" })
}

func TestAnOrganizationSigns(t *testing.T) {
	o := organization(t, slacksim.Config{}.WithOrg())
	root, err := o.PostAs(slacksim.Post{User: "U0ERIN", Channel: "C0LAB", Text: "<@U0BOT> clean up"})
	require.NoError(t, err)
	o.hears(1)
	require.Equal(t, "T0GLOBEX", o.mentioned()[0].Origin.Team)

	b := o.opensIn("C0LAB", root, call("c1", "delete_file", `{}`, by("lab", fromGroup("S0LAB"))), call("c2", "delete_file", `{}`, by("sre", fromGroup("S0SRE", "S0LAB"))))
	o.draw(b)
	all, err := o.Messages("U0ERIN", "C0LAB", root)
	require.NoError(t, err)
	card := all[1]
	o.press("U0FRED", card, "approve", 0)
	require.Equal(t, approvals.Pending, o.status(b, 0), "a colleague, and not in the group")
	o.press("U0ERIN", card, "approve", 0)
	require.Equal(t, approvals.Approved, o.status(b, 0), "her group is one of another workspace than the first")
	o.press("U0ERIN", card, "approve", 1)
	require.Equal(t, approvals.Approved, o.status(b, 1))

	out, err := o.Command(slacksim.Command{User: "U0FRED", Channel: "C0LAB", Command: "/countersign", Text: "list"})
	require.NoError(t, err)
	require.Contains(t, out.Message.Shown(), "Nothing waits")
	require.NotEmpty(t, o.Calls("auth.teams.list"))
	o.now.Advance(2 * time.Minute)
	before := len(o.Calls("usergroups.users.list"))
	_, _, err = o.ui.Members(t.Context(), "S0LAB")
	require.NoError(t, err)
	require.Len(t, o.Calls("usergroups.users.list"), before+1, "the workspace that had the group is asked first")
}

func TestAWorkspaceOfAnOrganizationHearsColleaguesAndNobodyElse(t *testing.T) {
	sim := slacksim.Config{}.WithGlobex()
	sim.Enterprise = &slacksim.Enterprise{ID: "E0ACME", Name: "Acme Group"}
	sim.Workspaces[0].Org = true
	for name, enterprise := range map[string]string{"its own": "E0ACME", "none": "", "another": "E0OTHER"} {
		t.Run(name, func(t *testing.T) {
			o := newWorkspace(t, sim, func(c *slackui.Config) { c.Enterprise = enterprise })
			root, err := o.PostAs(slacksim.Post{User: "U0ALICE", Channel: "C0DEAL", Text: "clean up"})
			require.NoError(t, err)
			b := o.opensIn("C0DEAL", root, call("c1", "delete_file", `{}`, by("deal", fromGroup("C0DEAL"))))
			o.draw(b)
			all, err := o.Messages("U0ERIN", "C0DEAL", root)
			require.NoError(t, err)
			o.press("U0ERIN", all[1], "approve", 0)
			want := approvals.Pending
			if enterprise == "E0ACME" {
				want = approvals.Approved
			}
			require.Equal(t, want, o.status(b, 0))
		})
	}
}

// What comes from an installation of another organization decides nothing.
func TestAClickOfAnotherOrganizationIsRefused(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}.WithOrg(), func(c *slackui.Config) { c.Enterprise = "E0OTHER" })
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	o.draw(b)
	o.press("U0BOB", o.thread("U0BOB", root)[0], "approve", 0)
	require.Equal(t, approvals.Pending, o.status(b, 0))
	require.Contains(t, o.whispers("U0BOB", root)[0], "without a workspace")
}

func TestWhatChangedIsAskedAgain(t *testing.T) {
	sim := warRoom()
	sim.Events = []string{"subteam_members_changed", "subteam_updated", "member_left_channel", "member_joined_channel", "user_change"}
	o := newWorkspace(t, sim)
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre), call("c2", "delete_file", `{}`, by("war room", fromGroup("G0WAR"))))
	o.draw(b)
	card := o.thread("U0BOB", root)[0]
	o.press("U0DAVE", card, "approve", 0)
	require.Equal(t, approvals.Pending, o.status(b, 0))
	require.NoError(t, o.SetGroup("S0SRE", []string{"U0CAROL", "U0DAVE"}))
	require.NoError(t, o.Idle(t.Context()))
	o.press("U0DAVE", card, "approve", 0)
	require.Equal(t, approvals.Approved, o.status(b, 0), "he joined the group a moment ago")

	o.press("U0BOB", card, "approve", 1)
	require.NoError(t, o.Join("U0BOB", "G0WAR"))
	require.NoError(t, o.Idle(t.Context()))
	require.NoError(t, o.SetActive("U0BOB", false))
	require.NoError(t, o.Idle(t.Context()))
	users, _, err := o.ui.Members(t.Context(), "G0WAR")
	require.NoError(t, err)
	require.Contains(t, users, approvals.UserID("U0BOB"))
	able, err := o.ui.Able(t.Context(), "U0BOB")
	require.NoError(t, err)
	require.False(t, able)
	require.NoError(t, o.Leave("U0DAVE", "G0WAR"))
	require.NoError(t, o.Idle(t.Context()))
	users, _, err = o.ui.Members(t.Context(), "G0WAR")
	require.NoError(t, err)
	require.NotContains(t, users, approvals.UserID("U0DAVE"))
}

// An approval counts for the groups of its moment. Whoever has joined another group since
// reads how to approve for it.
func TestAnApprovalCountsForALaterGroupOnceItIsGivenAgain(t *testing.T) {
	o, root, b := one(t, call("c1", "delete_file", `{"path":"a"}`, sre, by("security", fromGroup("S0SEC"))))
	o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
	require.NoError(t, o.SetGroup("S0SEC", []string{"U0BOB"}))
	o.now.Advance(2 * time.Minute) // what was looked up is too old
	o.press("U0CAROL", o.card("U0CAROL", root), "approve", 0)
	require.Equal(t, approvals.Pending, o.status(b, 0))

	o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
	require.Contains(t, o.whispers("U0BOB", root)[0], "if you joined another, press Take back and decide again")
	o.draw(b)
	o.press("U0BOB", o.card("U0BOB", root), "retract", 0)
	o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
	require.Equal(t, approvals.Approved, o.status(b, 0))
}
