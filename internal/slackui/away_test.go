package slackui_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
)

// slash sends /countersign and returns what the person reads; everything that
// follows has been said.
func (o *workspace) slash(user, text string) string {
	o.t.Helper()
	return o.slashIn("C0OPS", user, text)
}

func (o *workspace) slashIn(channel, user, text string) string {
	o.t.Helper()
	out, err := o.Command(slacksim.Command{User: user, Channel: channel, Command: "/countersign", Text: text})
	require.NoError(o.t, err)
	require.Empty(o.t, out.VisibleError)
	require.NoError(o.t, o.ui.Server.Shutdown(o.t.Context()))
	return out.Message.Shown()
}

// answer is what we answered last, as it was sent.
func (o *workspace) answer() any {
	o.t.Helper()
	var last any
	for _, e := range o.Log() {
		if e.Kind == "slash_command" {
			last = nil
			require.NoError(o.t, json.Unmarshal([]byte(e.Response), &last))
		}
	}
	return last
}

func escaping() slacksim.Config { return slacksim.Config{EscapeCommands: true} }

func TestSomebodyAwayIsAnsweredWithWhatWasUnderstood(t *testing.T) {
	o := atNoon(t, escaping())
	for i, text := range []string{
		"away", "away until friday, ask @bob", "away", "away until 2026-12-24 15:00", "away until christmas *now* <!here>", "back", "back",
	} {
		o.slash("U0ALICE", text)
		kept(t, fmt.Sprintf("slash_away_%d.json", i), o.answer())
	}
	letters := o.letters("U0BOB")
	require.Len(t, letters, 2)
	require.Contains(t, letters[0], "<@U0ALICE> is away until")
	require.Contains(t, letters[0], "made you their delegate")
	require.Contains(t, letters[1], "you are no longer their delegate", "he is told when she is back")
}

// Noon is one o'clock for Alice, and seven in the morning for Carol.
func TestTheEndOfAnAbsenceIsInThePersonsOwnZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	newYork, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	day := func(l *time.Location, month time.Month, day, hour, minute int) time.Time {
		return time.Date(2026, month, day, hour, minute, 0, 0, l)
	}
	for text, want := range map[string]map[string]time.Time{
		"away until friday":           {"U0ALICE": day(berlin, 3, 6, 23, 59), "U0CAROL": day(newYork, 3, 6, 23, 59)},
		"away until Wed":              {"U0ALICE": day(berlin, 3, 11, 23, 59)}, // it is Wednesday
		"away until tomorrow":         {"U0ALICE": day(berlin, 3, 5, 23, 59), "U0CAROL": day(newYork, 3, 5, 23, 59)},
		"away until tomorrow at 9:30": {"U0ALICE": day(berlin, 3, 5, 9, 30)},
		"away until today":            {"U0CAROL": day(newYork, 3, 4, 23, 59)},
		"away until 2026-04-24":       {"U0ALICE": day(berlin, 4, 24, 23, 59)}, // in summer time
		"away until 2026-04-24 15:00": {"U0CAROL": day(newYork, 4, 24, 15, 0)},
		"away until 15:00":            {"U0ALICE": day(berlin, 3, 4, 15, 0)},
		"away for 3 days":             {"U0ALICE": day(berlin, 3, 7, 23, 59)},
		"away 1 week":                 {"U0ALICE": day(berlin, 3, 11, 23, 59)},
		"away until 2h":               {"U0ALICE": noon.Add(2 * time.Hour)},
		"away for 90 minutes,":        {"U0ALICE": noon.Add(90 * time.Minute)},
	} {
		for user, end := range want {
			o := atNoon(t, escaping())
			require.Contains(t, o.slash(user, text), fmt.Sprintf("You are away until <!date^%d^", end.Unix()), "%s: %s", user, text)
		}
	}
}

func TestAnAbsenceThatCannotBeIsExplained(t *testing.T) {
	for text, words := range map[string]string{
		"away until":                          "Say until when you are away.",
		"away until whenever":                 "It isn't clear when",
		"away until 2026-02-30":               "It isn't clear when",
		"away until friday 25:00":             "It isn't clear when",
		"away until 99999 days":               "It isn't clear when",
		"away until 11:00":                    "That time has passed",
		"away until 2025-12-24":               "That time has passed",
		"away until 2026-12-24":               "an absence lasts 60 days at most",
		"away until friday, ask":              "It isn't clear when",
		"away\nuntil never\nfriday":           "It isn't clear when",
		"away forever":                        "It isn't clear when",
		"away until friday, ask bob":          "After `ask`, mention exactly one person",
		"away until friday, ask @bob @carol":  "After `ask`, mention exactly one person",
		"away @bob until friday":              "You can only set your own absence",
		"away until friday, ask @alice":       "You can't delegate to yourself",
		"away until friday, ask @gita":        "is a guest",
		"away until friday, ask @gone":        "is deactivated",
		"away until friday, ask <@U0NOBODY>":  "Slack doesn't know <@U0NOBODY>. Name someone else.",
		"away until friday, ask @countersign": "is a bot",
		"back tomorrow":                       "`back` takes nothing after it.",
	} {
		o := atNoon(t, escaping())
		require.Contains(t, o.slash("U0ALICE", text), words, text)
		require.Contains(t, o.slash("U0ALICE", "away"), "You aren't away.", "%s sets nothing", text)
		require.Empty(t, o.letters("U0BOB"))
	}
}

// A delegate who cannot approve any more is named as such, so that another one can be named.
func TestWhoIsAwayReadsThatTheirDelegateIsGone(t *testing.T) {
	o := atNoon(t, escaping())
	require.Contains(t, o.slash("U0ALICE", "away until friday, ask @bob"), "<@U0BOB> is your delegate")
	require.NoError(t, o.SetActive("U0BOB", false))
	o.pass(time.Hour)
	shown := o.slash("U0ALICE", "away")
	require.Contains(t, shown, "You are away until")
	require.Contains(t, shown, "The account of <@U0BOB> is deactivated. Name someone else.")
	require.NotContains(t, shown, "can approve for you")
}

// Slack delivers nothing of a deactivated account. Somebody who writes is back, although
// what is remembered of their account does not say so yet.
func TestWhoeverWritesAfterTheirAccountWasReactivatedIsBack(t *testing.T) {
	o := atNoon(t, slacksim.Config{EscapeCommands: true, Events: []string{"app_mention"}}) // the app does not hear of the change
	o.slash("U0ALICE", "away until friday, ask @bob")
	require.NoError(t, o.SetActive("U0ALICE", false))
	o.pass(time.Hour)
	able, err := o.ui.Able(t.Context(), "U0ALICE")
	require.NoError(t, err)
	require.False(t, able, "this is remembered now")
	require.NoError(t, o.SetActive("U0ALICE", true))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "users.info", Error: "fatal_error"}}})
	require.Contains(t, o.slash("U0ALICE", "back"), "Slack couldn't confirm your account. Nothing changed.")
	asked := len(o.Calls("users.info"))
	require.Contains(t, o.slash("U0ALICE", "back"), "Welcome back.")
	require.Contains(t, o.slash("U0ALICE", "back"), "You weren't away.")
	require.Len(t, o.Calls("users.info"), asked+1)
}

func TestStandingInDoesNotGoInACircle(t *testing.T) {
	o := atNoon(t, escaping())
	require.Contains(t, o.slash("U0BOB", "away until friday, ask @carol"), "<@U0CAROL> is your delegate")
	require.Contains(t, o.slash("U0ALICE", "away until thursday, ask @bob"), "They are away too, until", "and it is said who is asked then")
	require.Contains(t, o.slash("U0CAROL", "away until friday, ask @alice"), "their delegate leads back to you")
	shown := o.slash("U0CAROL", "away")
	require.Contains(t, shown, "You aren't away.")
	require.Contains(t, shown, "You are the delegate of <@U0BOB> until")
	require.Contains(t, shown, "You are the delegate of <@U0ALICE> until")
}

// A delegation is forgotten when it ends: the log is where it stays known who gave it.
func TestTheLogSaysWhoGaveWhomTheirPlace(t *testing.T) {
	o := atNoon(t, escaping())
	o.slash("U0CAROL", "away for 2h, ask @dave")
	line := `msg="absence set" user=U0CAROL until=` + o.now.Now().Add(2*time.Hour).UTC().Format("2006-01-02T15:04:05.000Z") + " delegate=U0DAVE"
	require.Equal(t, 1, o.log.Count(line))
}

// Only somebody who could sign themselves is signed for, only as long as they
// are away, and only where the rule lets it.
func TestASignatureInThePlaceOfSomebodyAway(t *testing.T) {
	for name, c := range map[string]struct {
		from approvals.From
		then func(*workspace)
		want approvals.Status
	}{
		"in their group": {fromGroup("S0SEC"), nil, approvals.Approved},
		"by name":        {fromUser("U0CAROL"), nil, approvals.Approved},
		"not in it any more": {fromGroup("S0SEC"), func(o *workspace) {
			require.NoError(o.t, o.SetGroup("S0SEC", nil))
			o.pass(2 * time.Minute)
		}, approvals.Pending},
		"deactivated": {fromGroup("S0SEC"), func(o *workspace) {
			require.NoError(o.t, o.SetActive("U0CAROL", false))
			o.pass(2 * time.Minute) // what was looked up is too old
		}, approvals.Pending},
		"deactivated, by name": {fromUser("U0CAROL"), func(o *workspace) {
			require.NoError(o.t, o.SetActive("U0CAROL", false))
			o.pass(2 * time.Minute)
		}, approvals.Pending},
		"back again":          {fromGroup("S0SEC"), func(o *workspace) { o.slash("U0CAROL", "back") }, approvals.Pending},
		"it is over":          {fromGroup("S0SEC"), func(o *workspace) { o.pass(72 * time.Hour) }, approvals.Pending},
		"for nobody who asks": {fromGroup("S0NONE"), nil, approvals.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			sim := escaping()
			sim.Groups = append(slacksim.DefaultGroups(), slacksim.Group{ID: "S0NONE", Handle: "none", Users: []string{"U0ALICE"}})
			o := atNoon(t, sim)
			root := o.say("U0ALICE", "clean up")
			d := call("c1", "delete_file", `{}`, by("security", c.from))
			d.Ask.Requirement.Delegation = true
			b := o.opens(root, d)
			o.draw(b)
			o.slash("U0CAROL", "away until friday, ask @dave")
			if c.then != nil {
				c.then(o)
			}
			o.press("U0DAVE", o.thread("U0DAVE", root)[0], "approve", 0)
			require.Equal(t, c.want, o.status(b, 0))
		})
	}
}

func TestWhoIsAwayAndCannotBeLookedUpIsNotSignedFor(t *testing.T) {
	o := atNoon(t, escaping())
	root := o.say("U0ALICE", "clean up")
	d := call("c1", "delete_file", `{}`, by("security", fromGroup("S0SEC")), by("dave", fromUser("U0DAVE")))
	d.Ask.Requirement.Delegation = true
	b := o.opens(root, d)
	o.draw(b)
	o.slash("U0CAROL", "away until friday, ask @dave")
	o.pass(2 * time.Minute)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{
		{Method: "users.info"}, {Method: "users.info", Error: "internal_error"}, // of him, and of her
	}})
	o.press("U0DAVE", o.thread("U0DAVE", root)[0], "approve", 0)
	now, err := o.Batch(t.Context(), b.ID)
	require.NoError(t, err)
	require.Empty(t, now.Approvals[0].Decisions, "nor does it count for himself: it is not known what he signs for")
	require.Contains(t, o.whispers("U0DAVE", root)[0], "Try again in a moment.")
}

func TestAGuestWhoIsNamedMayBeAway(t *testing.T) {
	sim := escaping()
	sim.Channels = slacksim.DefaultChannels()
	sim.Channels[0].Members = append(slices.Clone(sim.Channels[0].Members), "U0GUEST")
	o := atNoon(t, sim)
	root := o.say("U0ALICE", "clean up")
	d := call("c1", "delete_file", `{}`, by("gita", fromUser("U0GUEST")))
	d.Ask.Requirement.Delegation = true
	b := o.opens(root, d)
	o.draw(b)
	require.Contains(t, o.slash("U0GUEST", "away for 2 days, ask @dave"), "<@U0DAVE> is your delegate")
	o.press("U0DAVE", o.thread("U0DAVE", root)[0], "approve", 0)
	require.Equal(t, approvals.Approved, o.status(b, 0))
}

// Carol names Alice, who then asks for something, and names Dave for herself.
func TestARequesterDoesNotChooseWhoApproves(t *testing.T) {
	for _, separation := range []bool{true, false} {
		o := atNoon(t, escaping())
		root := o.say("U0ALICE", "clean up")
		d := call("c1", "delete_file", `{}`, by("carol", fromUser("U0CAROL")))
		d.Ask.Requirement.Delegation, d.Ask.Requirement.Separation = true, separation
		b := o.opens(root, d)
		o.draw(b)
		o.slash("U0CAROL", "away until friday, ask @alice")
		o.slash("U0ALICE", "away until friday, ask @dave")
		o.press("U0DAVE", o.thread("U0DAVE", root)[0], "approve", 0)
		now, err := o.Batch(t.Context(), b.ID)
		require.NoError(t, err)
		if separation {
			require.Equal(t, approvals.Pending, now.Approvals[0].Status)
			require.Empty(t, now.Approvals[0].Decisions)
			continue
		}
		require.Equal(t, approvals.Approved, now.Approvals[0].Status)
		require.Equal(t, []approvals.UserID{"U0ALICE"}, now.Approvals[0].Decisions[0].By.For[0].Via)
	}
}
