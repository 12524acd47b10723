package slackui_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// one is a workspace with one card in a thread.
func one(t *testing.T, calls ...approvals.Deferral) (o *workspace, root string, b approvals.Batch) {
	t.Helper()
	o = newWorkspace(t, slacksim.Config{})
	root = o.say("U0ALICE", "clean up")
	if len(calls) == 0 {
		calls = []approvals.Deferral{call("c1", "delete_file", `{"path":"a.txt"}`, sre)}
	}
	b = o.opens(root, calls...)
	o.draw(b)
	return o, root, b
}

func (o *workspace) card(user, root string) slacksim.Message {
	o.t.Helper()
	for _, m := range o.thread(user, root) {
		if !m.Ephemeral {
			return m
		}
	}
	o.t.Fatal("no card in the thread")
	return slacksim.Message{}
}

func (o *workspace) status(b approvals.Batch, i int) approvals.Status {
	return o.batch(b.ID).Approvals[i].Status
}

func TestADenialAsksForItsReason(t *testing.T) {
	o, root, b := one(t)
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", o.card("U0BOB", root), "deny", 0))
	views := o.Views("U0BOB")
	require.Len(t, views, 1)
	require.Equal(t, approvals.Pending, o.status(b, 0), "opening the form decides nothing")
	out, err := o.SubmitView(slacksim.Submit{User: "U0BOB", ViewID: views[0].ID, Values: map[string]map[string]any{
		"reason": {"text": " Use the archive.\n<!channel> "},
	}})
	require.NoError(t, err)
	require.True(t, out.Closed)
	require.Equal(t, approvals.Denied, o.status(b, 0))
	require.Equal(t, "Use the archive.\n<!channel>", o.batch(b.ID).Approvals[0].Decisions[0].Reason)
	o.draw(b)
	require.Contains(t, o.card("U0ALICE", root).Shown(), "Use the archive.\n<!channel>")
	require.Empty(t, o.card("U0ALICE", root).Actions())
}

func TestARefusedDenialIsExplainedInItsForm(t *testing.T) {
	o, root, b := one(t)
	o.press("U0BOB", o.card("U0BOB", root), "deny", 0)
	view := o.Views("U0BOB")[0]
	require.Equal(t, 200, o.press("U0CAROL", o.card("U0CAROL", root), "approve", 0).Status)
	out, err := o.SubmitView(slacksim.Submit{User: "U0BOB", ViewID: view.ID})
	require.NoError(t, err)
	require.False(t, out.Closed)
	require.Contains(t, words(out.View.Blocks), "approved by <@U0CAROL>")
	require.Equal(t, approvals.Approved, o.status(b, 0))
}

func TestADenialDuringAnOutageKeepsItsForm(t *testing.T) {
	o, root, b := one(t)
	o.press("U0BOB", o.card("U0BOB", root), "deny", 0)
	view := o.Views("U0BOB")[0]
	o.breaks(errOutage)
	out, err := o.SubmitView(slacksim.Submit{User: "U0BOB", ViewID: view.ID})
	require.NoError(t, err)
	require.Equal(t, 500, out.Status)
	require.NotEmpty(t, out.VisibleError)
	o.breaks(nil)
	out, err = o.SubmitView(slacksim.Submit{User: "U0BOB", ViewID: view.ID})
	require.NoError(t, err)
	require.True(t, out.Closed)
	require.Equal(t, approvals.Denied, o.status(b, 0))
}

// Each refusal is told in its own words, to the person alone, and counts for
// nothing.
// An approval that brings a call no further is on the card all the same: its person
// would see nothing of their click otherwise.
func TestAnApprovalWithoutAPlaceIsOnTheCard(t *testing.T) {
	o, root, b := one(t, call("c1", "delete_file", `{"path":"a.txt"}`, sre, by("legal", fromUser("U0DAVE"))))
	o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
	o.draw(b)
	require.NotContains(t, plainWords(o.card("U0ALICE", root)), "Also approved")
	o.press("U0CAROL", o.card("U0CAROL", root), "approve", 0)
	o.draw(b)
	require.Contains(t, plainWords(o.card("U0ALICE", root)), "Also approved by U0CAROL, which doesn't count toward what is missing.")
}

func TestRefusalsAreExplained(t *testing.T) {
	both := sre
	both.Need = 2
	separate := func(d approvals.Deferral) approvals.Deferral { return until(d, time.Time{}, true) }
	alice := approvals.Quorum{Name: "leads", Need: 1, From: approvals.From{Users: []approvals.UserID{"U0ALICE", "U0BOB"}}}
	for name, c := range map[string]struct {
		call   approvals.Deferral
		before func(o *workspace, root string, b approvals.Batch)
		user   string
		words  string
	}{
		"an outsider": {call("c1", "x", `{}`, sre), nil, "U0DAVE", "You can't approve this. Nothing changed."},
		"one's own":   {separate(call("c1", "x", `{}`, alice)), nil, "U0ALICE", "You asked for this"},
		"settled": {call("c1", "x", `{}`, sre), func(o *workspace, root string, _ approvals.Batch) {
			o.press("U0CAROL", o.card("U0CAROL", root), "approve", 0)
		}, "U0BOB", "Already approved by <@U0CAROL>"},
		"decided otherwise": {call("c1", "x", `{}`, both), func(o *workspace, _ string, b approvals.Batch) {
			b.Approvals[0].Requirement.Deny = 2
			b.Approvals[0].Decisions = []approvals.Decision{{Call: "c1", By: approvals.Principal{User: "U0BOB"}, Verdict: approvals.Deny}}
			o.setBatch(b)
		}, "U0BOB", "You already denied this call"},
		"expired": {until(call("c1", "x", `{}`, sre), time.Now().Add(2*time.Minute), false), func(o *workspace, _ string, _ approvals.Batch) {
			o.now.Advance(3 * time.Minute)
		}, "U0BOB", "Too late"},
		"gone": {call("c1", "x", `{}`, sre), func(o *workspace, _ string, b approvals.Batch) {
			o.loses(b)
		}, "U0BOB", "no longer exists"},
		"withdrawn": {call("c1", "x", `{}`, sre), func(o *workspace, _ string, b approvals.Batch) {
			_, err := o.desk.Withdraw(o.t.Context(), b.ID, "w", approvals.Withdraw{By: "U0ALICE"})
			require.NoError(o.t, err)
		}, "U0BOB", "withdrawn by <@U0ALICE>"},
		"group not known": {call("c1", "x", `{}`, sre), func(o *workspace, _ string, b approvals.Batch) {
			b.Approvals[0].Requirement.Quorums[0].From.Groups = []approvals.GroupID{"S0SEC"} // nobody has looked that up yet
			o.setBatch(b)
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "internal_error"}}})
		}, "U0BOB", "couldn't tell who is in <!subteam^S0SEC>"},
		"group refused": {call("c1", "x", `{}`, sre), func(o *workspace, _ string, b approvals.Batch) {
			b.Approvals[0].Requirement.Quorums[0].From.Groups = []approvals.GroupID{"S0SEC"}
			o.setBatch(b)
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "missing_scope"}}})
		}, "U0BOB", "Slack refuses to tell this app who is in <!subteam^S0SEC>, so your permission couldn't be checked. Nothing changed. Tell your Countersign admin."},
		"account refused": {call("c1", "x", `{}`, sre), func(o *workspace, _ string, _ approvals.Batch) {
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "users.info", Error: "invalid_auth"}}})
		}, "U0DAVE", "Slack refuses to confirm your account to this app. Nothing changed. Tell your Countersign admin."},
		"account not known": {call("c1", "x", `{}`, sre), func(o *workspace, _ string, _ approvals.Batch) {
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "users.info", Status: 503}}})
		}, "U0DAVE", "couldn't confirm your account"},
	} {
		t.Run(name, func(t *testing.T) {
			o, root, b := one(t, c.call)
			card := o.card("U0BOB", root)
			if c.before != nil {
				c.before(o, root, b)
			}
			before := o.batch(b.ID).Version
			require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press(c.user, card, "approve", 0))
			told := o.whispers(c.user, root)
			require.Len(t, told, 1)
			require.Contains(t, told[0], c.words)
			require.Equal(t, before, o.batch(b.ID).Version)
		})
	}
}

// TestARefusalNamesOnlyThoseWhoMaySign: not the one it refuses, nor others who
// asked for the call or changed it.
func TestARefusalNamesOnlyThoseWhoMaySign(t *testing.T) {
	named := func(users ...approvals.UserID) approvals.Quorum {
		return approvals.Quorum{Name: "leads", Need: 1, From: approvals.From{Users: users}}
	}
	edits := func(o *workspace, root string) {
		o.t.Helper()
		require.NotNil(o.t, o.sends("U0BOB", o.edit("U0BOB", root), map[string]string{"path": "c.txt"}).View)
		o.draw(o.batch("batch-07-one"))
	}
	for name, c := range map[string]struct {
		from   []approvals.UserID
		before func(o *workspace, root string)
		user   string
		says   string
		not    []string
	}{
		"one's own":               {[]approvals.UserID{"U0ALICE", "U0BOB"}, nil, "U0ALICE", "<@U0BOB> can approve it.", []string{"<@U0ALICE>"}},
		"nobody else":             {[]approvals.UserID{"U0ALICE"}, nil, "U0ALICE", "No one else can approve it: the policy names no other approvers.", []string{"<@U0ALICE>"}},
		"one's own edit":          {[]approvals.UserID{"U0ALICE", "U0BOB", "U0CAROL"}, edits, "U0BOB", "<@U0CAROL> can approve it.", []string{"<@U0BOB>", "<@U0ALICE>"}},
		"somebody not among them": {[]approvals.UserID{"U0ALICE", "U0BOB", "U0CAROL"}, edits, "U0DAVE", "<@U0CAROL> can approve it.", []string{"<@U0BOB>", "<@U0ALICE>"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := deletion(named(c.from...))
			d.Ask.Requirement.Separation = true
			o, root, _ := rewrite(t, rulings{}, nil, d)
			if c.before != nil {
				c.before(o, root)
			}
			card := o.card(c.user, root)
			o.press(c.user, card, "approve", 0)
			told := o.whispers(c.user, root)
			require.Len(t, told, 1)
			require.Contains(t, told[0], c.says)
			for _, id := range c.not {
				require.NotContains(t, told[0], id)
				_, from, _ := strings.Cut(plainWords(card), "approval, from ")
				from, _, _ = strings.Cut(from, "One denial")
				require.NotContains(t, from, id[2:len(id)-1], "nor does the card")
			}
		})
	}
}

// TestARefusalNamesNoGroupInWhichNobodyIsLeft: whoever reads that a group can approve
// asks there, and waits.
func TestARefusalNamesNoGroupInWhichNobodyIsLeft(t *testing.T) {
	leads := approvals.Quorum{Name: "leads", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"S0SRE", "S0SEC"}}}
	for name, c := range map[string]struct {
		sre, sec []string
		user     string
		says     string
	}{
		"some are left":            {nil, []string{"U0CAROL"}, "U0BOB", "<!subteam^S0SEC> can approve it."},
		"both are emptied":         {nil, nil, "U0BOB", "No one else can approve it right now: no one else is left in <!subteam^S0SEC> and <!subteam^S0SRE>."},
		"only whoever asked":       {[]string{"U0ALICE"}, nil, "U0ALICE", "No one else can approve it right now: no one else is left in <!subteam^S0SEC> and <!subteam^S0SRE>."},
		"whoever asked and others": {[]string{"U0ALICE", "U0BOB"}, nil, "U0ALICE", "<!subteam^S0SRE> can approve it."},
	} {
		t.Run(name, func(t *testing.T) {
			d := deletion(leads)
			d.Ask.Requirement.Separation = true
			o, root, _ := rewrite(t, rulings{}, nil, d)
			require.NoError(t, o.SetGroup("S0SRE", c.sre))
			require.NoError(t, o.SetGroup("S0SEC", c.sec))
			require.NoError(t, o.Idle(t.Context()), "the app knows of the change")
			o.press(c.user, o.card(c.user, root), "approve", 0)
			told := o.whispers(c.user, root)
			require.Len(t, told, 1)
			require.Contains(t, told[0], c.says)
			require.NotContains(t, told[0], "<!subteam^S0SRE> and <!subteam^S0SEC> can")
		})
	}
}

// Whoever reads that a person can approve asks them, and waits: also for an account that is
// deactivated since the request was made.
func TestARefusalNamesNobodyWhoseAccountIsDeactivated(t *testing.T) {
	for name, c := range map[string]struct {
		from approvals.From
		gone []string
		says string
	}{
		"another is left":       {fromUser("U0BOB", "U0CAROL"), []string{"U0BOB"}, "Nothing changed. <@U0CAROL> can approve it."},
		"nobody is left":        {fromUser("U0BOB"), []string{"U0BOB"}, "No one else can approve it right now: <@U0BOB> can no longer take part. Tell your Countersign admin."},
		"in a group":            {fromGroup("S0SEC"), []string{"U0CAROL"}, "No one else can approve it right now: no one else is left in <!subteam^S0SEC>."},
		"a group that has more": {fromGroup("S0SRE"), []string{"U0BOB"}, "<!subteam^S0SRE> can approve it."},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWorkspace(t, slacksim.Config{Events: []string{"user_change"}})
			root := o.say("U0ALICE", "clean up")
			o.draw(o.opens(root, call("c1", "delete_file", `{}`, by("all", c.from))))
			for _, user := range c.gone {
				require.NoError(t, o.SetActive(user, false))
			}
			require.NoError(t, o.Idle(t.Context()), "the app knows of the change")
			o.press("U0DAVE", o.card("U0DAVE", root), "approve", 0)
			told := o.whispers("U0DAVE", root)
			require.Len(t, told, 1)
			require.Contains(t, told[0], c.says)
		})
	}
}

func TestGuestsCannotTakePart(t *testing.T) {
	people := slacksim.DefaultPeople()
	for i := range people {
		switch people[i].ID {
		case "U0BOB":
			people[i].Guest = true
		case "U0CAROL":
			people[i].Stranger = true
		}
	}
	o := newWorkspace(t, slacksim.Config{People: people})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	o.draw(b)
	for user, says := range map[string]string{"U0BOB": "Guests", "U0CAROL": "other organizations"} {
		o.press(user, o.card(user, root), "approve", 0)
		told := o.whispers(user, root)
		require.Len(t, told, 1)
		require.Contains(t, told[0], says)
	}
	require.Equal(t, approvals.Pending, o.status(b, 0))

	o.say("U0BOB", "<@U0BOT> do it")
	require.NoError(t, o.Idle(t.Context()))
	require.Empty(t, o.mentioned())
}

func TestAnotherWorkspaceIsRefused(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) { c.Team = "T0ANOTHER" })
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	o.draw(b)
	o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
	require.Contains(t, strings.Join(o.whispers("U0BOB", root), ""), "another Slack workspace")
	require.Equal(t, approvals.Pending, o.status(b, 0))
}

func TestSomebodyWhoIsNotToldInTheChannelIsToldDirectly(t *testing.T) {
	for _, code := range []string{
		"user_not_in_channel", "not_in_channel", "is_archived", "restricted_action", "restricted_action_thread_locked", "cannot_reply_to_message",
	} {
		t.Run(code, func(t *testing.T) {
			o, root, _ := one(t)
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.postEphemeral", Error: code}}})
			o.press("U0DAVE", o.card("U0DAVE", root), "approve", 0)
			require.Empty(t, o.whispers("U0DAVE", root))
			require.Len(t, o.Calls("conversations.open"), 1)
			require.Contains(t, o.Calls("chat.postMessage")[1].Request, "can%27t+approve+this")
		})
	}
}

func TestForgedButtonsAreExplained(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	digest := b.Approvals[0].Call.Digest.String()
	other := approvals.DigestOf("batch-07-two", approvals.ToolCall{ID: "c1"}).String()
	for value, says := range map[string]string{
		"garbage":                                  "damaged",
		"1|batch-07-one|" + digest + "|c2":         "no longer exists",
		"1|batch-07-two|" + digest + "|c1":         "no longer exists",
		"1|batch-07-one|" + other + "|c1":          "edited the arguments",
		`{"batch":"batch-07-one","approve":"yes"}`: "damaged",
	} {
		button := blockkit.Button("countersign.approve.0", value, "Approve", "Approve the call of a test")
		api := slack.New(o.BotToken(), slack.OptionAPIURL(o.api))
		_, ts, err := api.PostMessage("C0OPS", slack.MsgOptionText("x", false), slack.MsgOptionTS(root), slack.MsgOptionBlocks(slack.NewActionBlock("", button)))
		require.NoError(t, err)
		out := o.press("U0BOB", slacksim.Message{Channel: "C0OPS", TS: ts}, "approve", 0)
		require.Equal(t, slacksim.ClickOutcome{Status: 200}, out)
		told := o.whispers("U0BOB", root)
		require.Contains(t, told[len(told)-1], says, value)
		require.Equal(t, approvals.Pending, o.status(b, 0))
	}
}

func TestMembershipsAreRememberedForAMinute(t *testing.T) {
	o, root, _ := one(t, call("c1", "x", `{}`, sre), call("c2", "x", `{}`, sre), call("c3", "x", `{}`, sre))
	card := o.card("U0BOB", root)
	o.press("U0BOB", card, "approve", 0)
	o.press("U0BOB", card, "approve", 1)
	require.Len(t, o.Calls("usergroups.users.list"), 1)
	require.NoError(t, o.SetGroup("S0SRE", []string{"U0CAROL"}))
	o.now.Advance(61 * time.Second)
	o.press("U0BOB", card, "approve", 2)
	require.Greater(t, len(o.Calls("usergroups.users.list")), 1, "once more if the event about the group comes during the press")
	require.Contains(t, strings.Join(o.whispers("U0BOB", root), ""), "You can't approve this")
}

// words joins every text in blocks.
func words(blocks any) string {
	switch b := blocks.(type) {
	case []any:
		var all []string
		for _, x := range b {
			all = append(all, words(x))
		}
		return strings.Join(all, " ")
	case map[string]any:
		var all []string
		for _, k := range slices.Sorted(maps.Keys(b)) {
			if s, ok := b[k].(string); ok && k == "text" {
				all = append(all, s)
			}
			all = append(all, words(b[k]))
		}
		return strings.Join(all, " ")
	}
	return ""
}

// TestASecondApprovalIsSaidToCountAlready: silence would look like a click that
// went nowhere.
func TestASecondApprovalIsSaidToCountAlready(t *testing.T) {
	two := sre
	two.Need = 2
	o, root, b := one(t, call("c1", "delete_file", `{"path":"a"}`, two))
	for range 2 {
		require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", o.card("U0BOB", root), "approve", 0))
	}
	require.Len(t, o.whispers("U0BOB", root), 1)
	require.Contains(t, o.whispers("U0BOB", root)[0], "You already approved this call, and that counts once.")
	after, err := o.Batch(t.Context(), b.ID)
	require.NoError(t, err)
	require.Len(t, after.Approvals[0].Decisions, 1)
}
