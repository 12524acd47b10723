package slackui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/state"
)

// delegable asks only Bob, who may have a delegate. Dave, who may be one, is not in the
// channel.
func delegable(t *testing.T) (*workspace, approvals.Batch) {
	t.Helper()
	channels := slacksim.DefaultChannels()
	for i := range channels {
		if channels[i].ID == "C0OPS" {
			channels[i].Members = []string{slacksim.BotUser, "U0ALICE", "U0BOB"}
		}
	}
	o := atNoon(t, slacksim.Config{Channels: channels, EscapeCommands: true}, inLists)
	d := directCall(by("boss", fromUser("U0BOB")))
	d.Ask.Requirement.Delegation = true
	return o, o.opens(o.say("U0ALICE", "clean up"), d)
}

// drawnUntil draws what is to be drawn again by itself after this time.
func (o *workspace) drawnUntil(b approvals.Batch, after time.Duration) {
	o.t.Helper()
	var later *slackapi.LaterError
	require.ErrorAs(o.t, o.ui.Cards.Reconcile(o.t.Context(), string(b.ID)), &later)
	require.Equal(o.t, after, later.After)
	require.False(o.t, later.Outage)
}

// isDue reports whether the cards of the batch are due.
func (o *workspace) isDue(b approvals.Batch) bool {
	o.t.Helper()
	return o.due(state.Cards, string(b.ID))
}

// Nobody is told when an absence ends by itself: the one who is back is asked then, and
// the delegate, who may not approve any more, is shown nothing any more.
func TestWhoIsBackIsAskedAboutWhatWaits(t *testing.T) {
	o, b := delegable(t)
	o.slash("U0BOB", "away for 2h, ask @dave")
	o.drawnUntil(b, 2*time.Hour)
	require.Len(t, o.directs("U0DAVE"), 2, "that he is the delegate, and the card")
	require.Empty(t, o.directs("U0BOB"))

	o.pass(2 * time.Hour)
	o.draw(b)
	require.Len(t, o.directs("U0BOB"), 1)
	require.NotEmpty(t, o.directs("U0BOB")[0].Actions())
	require.Empty(t, o.directs("U0DAVE")[1].Actions())
	require.Contains(t, plainWords(o.directs("U0DAVE")[1]), "You no longer need to look at this request")
	o.draw(b)
	require.Len(t, o.directs("U0BOB"), 1)
}

// Who goes away and who comes back early changes whom a request asks that waits already.
func TestADelegateIsAskedAboutWhatWaitsAlready(t *testing.T) {
	o, b := delegable(t)
	o.draw(b)
	require.Len(t, o.directs("U0BOB"), 1)
	require.False(t, o.isDue(b))

	o.slash("U0BOB", "away for 2h, ask @dave")
	require.True(t, o.isDue(b))
	o.drawnUntil(b, 2*time.Hour)
	require.Len(t, o.directs("U0DAVE"), 2)
	require.NotEmpty(t, o.directs("U0DAVE")[1].Actions())
	require.NotEmpty(t, o.directs("U0BOB")[0].Actions(), "he may still approve")

	o.pass(time.Hour)
	o.slash("U0BOB", "back")
	o.draw(b)
	require.Empty(t, o.directs("U0DAVE")[1].Actions())
	require.False(t, o.isDue(b))
}

// A delegation that the requester passed on does not count, so whoever it leads to is not
// asked in the place of somebody else.
func TestNobodyIsAskedInsteadByTheRequester(t *testing.T) {
	o := atNoon(t, slacksim.Config{EscapeCommands: true}, inLists)
	root := o.say("U0ALICE", "clean up")
	both := by("both", fromUser("U0BOB", "U0CAROL"))
	both.Need = 2
	d := directCall(both)
	d.Ask.Requirement.Delegation, d.Ask.Requirement.Separation = true, true
	b := o.opens(root, d)
	o.slash("U0ALICE", "away until friday, ask @carol")
	o.slash("U0BOB", "away until friday, ask @alice")
	o.draw(b)
	cards := func(user string) (n int) {
		for _, m := range o.directs(user) {
			n += min(len(m.Actions()), 1)
		}
		return n
	}
	require.Equal(t, 1, cards("U0CAROL"))
	require.Equal(t, 1, cards("U0BOB"), "nobody can approve for him")
}

// A delegate whose account is deactivated has no delegate of their own any more: they could
// not approve, so nobody can through them.
func TestTheDeactivatedPassNothingOn(t *testing.T) {
	for name, c := range map[string]struct {
		then   func(*workspace)
		status approvals.Status
		asked  string
	}{
		"all are there": {func(*workspace) {}, approvals.Approved, "U0DAVE"},
		"the middle is deactivated": {func(o *workspace) {
			require.NoError(o.t, o.SetActive("U0CAROL", false))
			o.pass(2 * time.Minute)
		}, approvals.Pending, "U0BOB"},
	} {
		t.Run(name, func(t *testing.T) {
			o := atNoon(t, escaping(), inLists)
			root := o.say("U0ALICE", "clean up")
			d := directCall(by("boss", fromUser("U0BOB")))
			d.Ask.Requirement.Delegation = true
			b := o.opens(root, d)
			o.slash("U0CAROL", "away until friday, ask @dave")
			o.slash("U0BOB", "away until friday, ask @carol")
			c.then(o)
			_ = o.ui.Cards.Reconcile(t.Context(), string(b.ID))
			last := o.directs(c.asked)
			require.NotEmpty(t, last)
			require.NotEmpty(t, last[len(last)-1].Actions(), "the request asks")
			o.press("U0DAVE", o.thread("U0DAVE", root)[0], "approve", 0)
			require.Equal(t, c.status, o.status(b, 0))
		})
	}
}

// Nobody can approve for somebody who could not approve themselves any more. So their
// delegate is not asked, has nothing waiting, and may not read it.
func TestNobodyIsAskedForTheDeactivated(t *testing.T) {
	o, b := delegable(t)
	o.slash("U0BOB", "away for 2h, ask @dave")
	require.NoError(t, o.SetActive("U0BOB", false))
	o.pass(2 * time.Minute) // what was looked up is too old
	_ = o.ui.Cards.Reconcile(t.Context(), string(b.ID))
	require.Len(t, o.directs("U0DAVE"), 1, "only that he is the delegate")
	require.ErrorIs(t, o.ui.MayRead(t.Context(), "U0DAVE", b), directory.ErrMayNotRead)
	o.pass(10 * time.Minute) // lists may be older
	require.Contains(t, o.slashIn("C0GENERAL", "U0DAVE", "status"), "Waiting for you: 0 requests.")

	require.NoError(t, o.SetActive("U0BOB", true))
	o.pass(11 * time.Minute)
	require.Contains(t, o.slashIn("C0GENERAL", "U0DAVE", "status"), "Waiting for you: 1 request")
	require.NoError(t, o.ui.MayRead(t.Context(), "U0DAVE", b))
}

// Others can still approve the call, and are asked as before.
func TestTheDelegateOfTheDeactivatedIsNotAskedBesideOthers(t *testing.T) {
	o := atNoon(t, escaping(), inLists)
	d := directCall(by("boss", fromUser("U0BOB", "U0CAROL")))
	d.Ask.Requirement.Delegation = true
	b := o.opens(o.say("U0ALICE", "clean up"), d)
	o.slash("U0BOB", "away for 2h, ask @dave")
	before := len(o.directs("U0DAVE"))
	require.NoError(t, o.SetActive("U0BOB", false))
	o.pass(2 * time.Minute)
	_ = o.ui.Cards.Reconcile(t.Context(), string(b.ID))
	require.NotEmpty(t, o.directs("U0CAROL"))
	require.Len(t, o.directs("U0DAVE"), before)
}

// Who stands in for many is asked once one of them could approve: not all are looked up.
func TestADelegateOfManyIsAskedSoon(t *testing.T) {
	sim := escaping()
	sim.People, sim.TierLimits = slacksim.DefaultPeople(), true
	var group []string
	for i := range 150 {
		id := fmt.Sprintf("U0M%d", i)
		sim.People = append(sim.People, slacksim.Person{ID: id, Name: strings.ToLower(id)})
		group = append(group, id)
	}
	sim.Groups = []slacksim.Group{{ID: "S0SRE", Handle: "sre", Users: group}}
	o := atNoon(t, sim, inLists)
	d := directCall(sre)
	d.Ask.Requirement.Delegation = true
	b := o.opens(o.say("U0ALICE", "clean up"), d)
	_, _, err := o.ui.Cards.People.Absences().Change(t.Context(), func(as approvals.Absences) (_ approvals.Absences, err error) {
		for _, user := range group {
			a := approvals.Absence{User: approvals.UserID(user), Delegate: "U0DAVE", From: o.now.Now(), Until: o.now.Now().Add(time.Hour)}
			if as, err = as.Set(a, o.now.Now()); err != nil {
				return as, err
			}
		}
		return as, nil
	})
	require.NoError(t, err)
	before := len(o.directs("U0DAVE"))
	_ = o.ui.Cards.Reconcile(t.Context(), string(b.ID))
	require.Greater(t, len(o.directs("U0DAVE")), before)
}

// A slow lookup of someone whom the call does not ask keeps nobody from reading it.
func TestOnlyTheAbsentWhomACallAsksAreLookedUp(t *testing.T) {
	o, b := delegable(t)
	require.NoError(t, o.Join("U0DAVE", "C0OPS"))
	o.slashIn("C0GENERAL", "U0CAROL", "away for 2h, ask @dave")
	o.pass(2 * time.Minute)
	looked := len(o.Calls("users.info"))
	require.NoError(t, o.ui.MayRead(t.Context(), "U0DAVE", b))
	require.Len(t, o.Calls("users.info"), looked+1, "only the reader")
}

// A guest is in no group for the policy, so nobody is asked for them as a member of one.
func TestNobodyIsAskedForAGuestInAGroup(t *testing.T) {
	sim := escaping()
	sim.Groups = []slacksim.Group{{ID: "S0SRE", Handle: "sre", Users: []string{"U0GUEST"}}}
	o := atNoon(t, sim, inLists)
	d := call("c1", "delete_file", `{}`, sre)
	d.Ask.Requirement.Delegation = true
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, d)
	o.draw(b)
	o.slashIn("C0GENERAL", "U0GUEST", "away for 2h, ask @dave")
	o.press("U0DAVE", o.thread("U0ALICE", root)[0], "approve", 0)
	require.Equal(t, approvals.Pending, o.status(b, 0))
	require.NoError(t, o.Leave("U0DAVE", "C0OPS"))
	o.pass(2 * time.Minute)
	require.Contains(t, o.slashIn("C0GENERAL", "U0DAVE", "status"), "Waiting for you: 0 requests.")
	require.ErrorIs(t, o.ui.MayRead(t.Context(), "U0DAVE", b), directory.ErrMayNotRead)
}
