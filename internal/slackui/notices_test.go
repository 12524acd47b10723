package slackui_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/state/statetest"
	"github.com/stretchr/testify/require"
)

// atNoon is a workspace whose clock, like Slack's, stands at noon.
func atNoon(t *testing.T, sim slacksim.Config, tune ...func(*slackui.Config)) *workspace {
	t.Helper()
	slack := statetest.NewClock(noon)
	sim.Now = slack.Now
	o := newWorkspace(t, sim, tune...)
	o.now.Advance(noon.Sub(o.now.Now()))
	o.later = slack
	return o
}

// pass lets time pass, for us and for Slack.
func (o *workspace) pass(d time.Duration) {
	o.now.Advance(d)
	o.later.Advance(d)
}

// moves applies a change to the stored batch as if it were committed, with the
// arguments that it brings.
func (o *workspace) moves(b approvals.Batch, change func(*approvals.Batch), args ...approvals.ToolCall) {
	o.t.Helper()
	now := o.batch(b.ID)
	now.Version++
	change(&now)
	o.setBatch(now, args...)
}

// memo is the record of a surface and its version.
func (o *workspace) memo(b approvals.Batch, surface string) ([]byte, int64) {
	o.t.Helper()
	data, version, err := o.Memo(o.t.Context(), string(b.ID), surface)
	require.NoError(o.t, err)
	return data, version
}

// climbs takes the rungs that are due now.
func (o *workspace) climbs(b approvals.Batch) {
	o.t.Helper()
	o.moves(b, func(now *approvals.Batch) {
		next, _, err := now.Apply(approvals.Climb{At: o.now.Now()})
		require.NoError(o.t, err)
		*now = next
	})
}

func (o *workspace) notify(b approvals.Batch) {
	o.t.Helper()
	require.NoError(o.t, o.ui.Notices.Reconcile(o.t.Context(), string(b.ID)))
	require.Equal(o.t, o.batch(b.ID).Version, o.drawnVersion(string(b.ID), "notices"))
}

// letters are the direct messages that a person got.
func (o *workspace) letters(user string) []string {
	o.t.Helper()
	all, err := o.Messages(user, "D"+user[1:], "")
	if errors.Is(err, slacksim.ErrNoSuch) {
		return nil
	}
	require.NoError(o.t, err)
	var shown []string
	for _, m := range all {
		shown = append(shown, m.Shown())
	}
	return shown
}

// laddered is a call whose ladder has these rungs, so long after noon.
func laddered(d approvals.Deferral, rungs ...approvals.Rung) approvals.Deferral {
	d.Ask.Requirement.Ladder = rungs
	return d
}

func reminds(after time.Duration) approvals.Rung {
	return approvals.Rung{At: noon.Add(after), Kind: approvals.Remind}
}

func adds(after time.Duration, quorum string, from approvals.From) approvals.Rung {
	return approvals.Rung{At: noon.Add(after), Kind: approvals.Escalate, Quorum: quorum, Add: from}
}

// kept compares with a golden file.
func kept(t *testing.T, name string, got any) {
	t.Helper()
	raw, err := json.MarshalIndent(got, "", "  ")
	require.NoError(t, err)
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, append(raw, '\n'), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(raw)+"\n")
}

// sent is what we posted last, as it was sent.
func (o *workspace) sent() map[string]any {
	o.t.Helper()
	calls := o.Calls("chat.postMessage")
	form, err := url.ParseQuery(calls[len(calls)-1].Request)
	require.NoError(o.t, err)
	var blocks any
	require.NoError(o.t, json.Unmarshal([]byte(form.Get("blocks")), &blocks))
	return map[string]any{"channel": form.Get("channel"), "thread_ts": form.Get("thread_ts"), "text": form.Get("text"), "blocks": blocks}
}

func TestAReminderGoesToThoseWhoCanStillMakeADifferenceOnce(t *testing.T) {
	o := atNoon(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	two := sre
	two.Need = 2
	first := laddered(call("c1", "delete_file", `{"path":"secret.txt"}`, two), reminds(time.Hour), reminds(2*time.Hour))
	first.Ask.Requirement.Deadline = noon.Add(8 * time.Hour)
	b := o.opens(root, first, laddered(call("c2", "drop_table", `{}`, sre), reminds(time.Hour)))
	o.draw(b)
	o.notify(b)
	require.Empty(t, o.letters("U0CAROL"), "nothing has happened")
	o.press("U0BOB", o.thread("U0BOB", root)[0], "approve", 0)
	o.press("U0BOB", o.thread("U0BOB", root)[0], "approve", 1)

	o.pass(time.Hour)
	o.climbs(b)
	o.notify(b)
	o.notify(b)
	require.Empty(t, o.letters("U0BOB"), "he has decided")
	require.Empty(t, o.letters("U0DAVE"), "nobody asks him")
	got := o.letters("U0CAROL")
	require.Len(t, got, 1)
	require.Contains(t, got[0], "1 call waits for your approval")
	require.Contains(t, got[0], `Delete file (path: "secret.txt")`, "she may read it")
	require.Contains(t, got[0], "Risk not stated")
	require.NotContains(t, got[0], "Drop table", "it is settled")
	kept(t, "notice_reminder.json", o.sent())

	o.pass(time.Hour)
	o.climbs(b)
	o.notify(b)
	require.Len(t, o.letters("U0CAROL"), 2, "the next rung is told too")
}

func TestOneMessageTellsOfAllCallsAndOfAllRungsOfAPause(t *testing.T) {
	o := atNoon(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root,
		laddered(call("c1", "delete_file", `{}`, sre), reminds(time.Hour), adds(2*time.Hour, "sre", fromUser("U0DAVE")), reminds(3*time.Hour)),
		laddered(call("c2", "drop_table", `{}`, sre), reminds(2*time.Hour)),
		laddered(call("c3", "run_sql", `{}`, sre), adds(2*time.Hour, "sre", fromUser("U0DAVE"))))
	o.draw(b)
	o.pass(5 * time.Hour)
	o.climbs(b)
	o.notify(b)
	require.Len(t, o.letters("U0BOB"), 1)
	require.Contains(t, o.letters("U0BOB")[0], "2 calls wait for your approval")
	require.Len(t, o.letters("U0DAVE"), 1)
	require.Contains(t, o.letters("U0DAVE")[0], "2 calls wait for your approval")
	require.Contains(t, o.letters("U0DAVE")[0], "now you can approve it too")
	require.NotContains(t, o.letters("U0BOB")[0], "now you can approve it too")
	kept(t, "notice_added.json", o.sent())
}

func TestOneMessageTellsOfAllRungsOfAnOutageOfSlack(t *testing.T) {
	o := atNoon(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, laddered(call("c1", "delete_file", `{}`, sre), reminds(time.Hour), adds(2*time.Hour, "sre", fromUser("U0DAVE")), reminds(3*time.Hour)))
	o.draw(b)
	down := slacksim.Fault{Method: "conversations.open", Status: http.StatusServiceUnavailable}
	for range 3 {
		o.pass(time.Hour)
		o.climbs(b)
		o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{down}})
		var later *slackapi.LaterError
		require.ErrorAs(t, o.ui.Notices.Reconcile(t.Context(), string(b.ID)), &later)
	}
	o.pass(time.Minute)
	o.notify(b)
	require.Len(t, o.letters("U0BOB"), 1)
	require.Len(t, o.letters("U0DAVE"), 1)
	require.Contains(t, o.letters("U0DAVE")[0], "now you can approve it too")
}

func TestTheRequesterIsNotAskedToSignTheirOwn(t *testing.T) {
	o := atNoon(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	c := laddered(call("c1", "delete_file", `{}`, by("named", fromUser("U0ALICE", "U0DAVE", "U0GUEST", "U0GONE"))), reminds(time.Hour))
	c.Ask.Requirement.Separation = true
	b := o.opens(root, c)
	o.draw(b)
	o.pass(time.Hour)
	o.climbs(b)
	o.notify(b)
	require.Empty(t, o.letters("U0ALICE"))
	for _, c := range o.Calls("conversations.open") {
		require.NotContains(t, c.Request, "U0GONE")
	}
	require.Len(t, o.letters("U0DAVE"), 1)
	require.Len(t, o.letters("U0GUEST"), 2, "a guest who is named may approve: the card, as they are not in the channel, and the reminder")
}

func TestNobodyIsRemindedOfACallWhoseTimeIsOver(t *testing.T) {
	o := atNoon(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	c := laddered(call("c1", "delete_file", `{}`, sre), reminds(time.Hour))
	c.Ask.Requirement.Deadline = noon.Add(2 * time.Hour)
	b := o.opens(root, c)
	o.draw(b)
	o.pass(time.Hour)
	o.climbs(b)
	o.pass(time.Hour)
	o.notify(b)
	require.Empty(t, o.Calls("conversations.open"))
}

func TestManyAreCalledTogetherInTheThread(t *testing.T) {
	sim := slacksim.Config{People: slacksim.DefaultPeople(), Groups: slacksim.DefaultGroups()}
	for i := range 21 {
		p := slacksim.Person{ID: fmt.Sprintf("U1%04d", i), Name: fmt.Sprintf("p%d", i)}
		sim.People = append(sim.People, p)
		sim.Groups[0].Users = append(sim.Groups[0].Users, p.ID)
	}
	o := atNoon(t, sim)
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, laddered(call("c1", "delete_file", `{}`, sre), reminds(time.Hour)))
	o.draw(b)
	o.pass(time.Hour)
	o.climbs(b)
	o.notify(b)
	require.Empty(t, o.Calls("conversations.open"))
	all := o.thread("U0BOB", root)
	require.Len(t, all, 2)
	require.Contains(t, all[1].Shown(), "1 call still waits for approval")
	kept(t, "notice_many.json", o.sent())
	o.notify(b)
	require.Len(t, o.thread("U0BOB", root), 2)
}

// TestTheThreadCallsNobodyWhoMayNotSign: whoever asked is named by the rule, and
// barred by it.
func TestTheThreadCallsNobodyWhoMayNotSign(t *testing.T) {
	sim := slacksim.Config{People: slacksim.DefaultPeople()}
	from := approvals.From{Users: []approvals.UserID{"U0ALICE"}}
	for i := range 21 {
		p := slacksim.Person{ID: fmt.Sprintf("U1%04d", i), Name: fmt.Sprintf("p%d", i)}
		sim.People = append(sim.People, p)
		from.Users = append(from.Users, approvals.UserID(p.ID))
	}
	o := atNoon(t, sim)
	root := o.say("U0ALICE", "clean up")
	d := laddered(call("c1", "delete_file", `{}`, by("many", from)), reminds(time.Hour))
	d.Ask.Requirement.Separation = true
	b := o.opens(root, d)
	o.draw(b)
	o.pass(time.Hour)
	o.climbs(b)
	o.notify(b)
	all := o.thread("U0BOB", root)
	require.Len(t, all, 2)
	require.Contains(t, plainWords(all[1]), "1 call still waits for approval, from U10000")
	require.NotContains(t, plainWords(all[1]), "U0ALICE")
}

// That the thread is told is remembered before anything else is done: a worker
// that goes on with the round does not call everybody together again.
func TestTheThreadIsToldOnce(t *testing.T) {
	sim := slacksim.Config{People: slacksim.DefaultPeople(), Groups: slacksim.DefaultGroups()}
	for i := range 21 {
		p := slacksim.Person{ID: fmt.Sprintf("U1%04d", i), Name: fmt.Sprintf("p%d", i)}
		sim.People = append(sim.People, p)
		sim.Groups[0].Users = append(sim.Groups[0].Users, p.ID)
	}
	o := atNoon(t, sim)
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, laddered(call("c1", "delete_file", `{}`, sre), reminds(time.Hour)))
	o.draw(b)
	o.pass(time.Hour)
	o.climbs(b)
	stopped := `{"body":{"told":{"rungs":[0],"amended":[0]},"round":{"to":{"rungs":[1],"amended":[0]},"thread":true}}}`
	_, version := o.memo(b, "notices")
	require.NoError(t, o.CommitMemo(t.Context(), string(b.ID), "notices", []byte(stopped), version, 0))
	o.notify(b)
	require.Len(t, o.thread("U0BOB", root), 1, "the card, and no second call")
	told, _ := o.memo(b, "notices")
	require.Contains(t, string(told), `"told":{"rungs":[1]`)
}

// Twelve and twelve are too many as well, however few each call asks.
func TestTheCallsOfABatchShareTheMostPeople(t *testing.T) {
	sim := slacksim.Config{People: slacksim.DefaultPeople(), Channels: slacksim.DefaultChannels()}
	var from [2]approvals.From
	for i := range 24 {
		p := slacksim.Person{ID: fmt.Sprintf("U1%04d", i), Name: fmt.Sprintf("p%d", i)}
		sim.People = append(sim.People, p)
		sim.Channels[0].Members = append(sim.Channels[0].Members, p.ID)
		from[i%2].Users = append(from[i%2].Users, approvals.UserID(p.ID))
	}
	o := atNoon(t, sim)
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, laddered(call("c1", "delete_file", `{}`, by("even", from[0])), reminds(time.Hour)),
		laddered(call("c2", "drop_table", `{}`, by("odd", from[1])), reminds(2*time.Hour)))
	o.draw(b)
	o.pass(time.Hour)
	o.climbs(b)
	o.notify(b)
	require.Len(t, o.Calls("conversations.open"), 12)
	o.pass(time.Hour)
	o.climbs(b)
	o.notify(b)
	require.Len(t, o.Calls("conversations.open"), 24, "only the second call has news")
	require.Len(t, o.thread("U0BOB", root), 1)

	again := o.opens(root, laddered(call("c1", "delete_file", `{}`, by("even", from[0])), reminds(time.Hour)),
		laddered(call("c2", "drop_table", `{}`, by("odd", from[1])), reminds(time.Hour)))
	o.moves(again, func(now *approvals.Batch) { now.Version = b.Version + 9 })
	_, version := o.memo(b, "notices")
	require.NoError(t, o.CommitMemo(t.Context(), string(again.ID), "notices", nil, version, 0))
	o.climbs(again)
	o.notify(again)
	require.Len(t, o.Calls("conversations.open"), 24)
	require.Contains(t, o.thread("U0BOB", root)[1].Shown(), "2 calls still wait for approval")
}

func TestWhoseSignatureAnEditClearedIsTold(t *testing.T) {
	o := atNoon(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{"path":"secret.txt"}`, sre), call("c2", "drop_table", `{}`, sre))
	o.draw(b)
	amend := func(cleared ...approvals.UserID) {
		o.moves(b, func(now *approvals.Batch) {
			now.Approvals[0].Amendments = append(slices.Clone(now.Approvals[0].Amendments), approvals.Amendment{
				By: approvals.Principal{User: "U0DAVE"}, Cleared: cleared, At: o.now.Now(),
			})
		})
	}
	amend("U0CAROL", "U0DAVE")
	o.notify(b)
	require.Len(t, o.letters("U0CAROL"), 1)
	require.Contains(t, o.letters("U0CAROL")[0], "1 of your decisions no longer counts")
	require.Contains(t, o.letters("U0CAROL")[0], `Delete file (path: "secret.txt")`)
	require.Empty(t, o.letters("U0DAVE"), "who changed the arguments knows")
	kept(t, "notice_cleared.json", o.sent())

	amend("U0BOB")
	o.moves(b, func(now *approvals.Batch) { now.Approvals[0].Status = approvals.Denied })
	o.notify(b)
	require.Len(t, o.letters("U0CAROL"), 1, "once")
	require.Contains(t, o.letters("U0BOB")[0], "It was decided without you since")
}

// Changed arguments begin the ladder anew.
func TestTheLadderOfChangedArgumentsIsToldFromItsStart(t *testing.T) {
	o := atNoon(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, laddered(call("c1", "delete_file", `{}`, sre), reminds(time.Hour)))
	o.draw(b)
	o.pass(time.Hour)
	o.climbs(b)
	o.notify(b)
	o.moves(b, func(now *approvals.Batch) {
		a := &now.Approvals[0]
		a.Amendments, a.Climbed = []approvals.Amendment{{By: approvals.Principal{User: "U0DAVE"}, At: o.now.Now()}}, 1
		a.Requirement.Ladder = []approvals.Rung{reminds(2 * time.Hour)}
	})
	o.notify(b)
	require.Len(t, o.letters("U0BOB"), 2)
}

func TestWhoStandsInIsAskedInstead(t *testing.T) {
	o := atNoon(t, escaping())
	root := o.say("U0ALICE", "clean up")
	c := laddered(call("c1", "delete_file", `{}`, sre), reminds(time.Hour))
	c.Ask.Requirement.Delegation = true
	alone := laddered(call("c2", "drop_table", `{}`, sre), reminds(time.Hour))
	b := o.opens(root, c, alone)
	o.draw(b)
	o.slash("U0BOB", "away until friday, ask @dave")
	o.pass(time.Hour)
	o.climbs(b)
	o.notify(b)
	letters := o.letters("U0DAVE")
	require.Len(t, letters, 2, "that he stands in, and the reminder")
	require.Contains(t, letters[1], ", for")
	require.NotContains(t, letters[1], "Drop table", "its rule lets nobody stand in")
	kept(t, "notice_instead.json", o.sent())
	require.Len(t, o.letters("U0BOB"), 1)
	require.NotContains(t, o.letters("U0BOB")[0], "Delete file")
	require.Contains(t, o.letters("U0BOB")[0], "Drop table", "nobody else is asked for him")

	o.press("U0DAVE", o.thread("U0DAVE", root)[0], "approve", 0)
	now, err := o.Batch(t.Context(), b.ID)
	require.NoError(t, err)
	require.Equal(t, approvals.Approved, now.Approvals[0].Status)
	require.Equal(t, approvals.UserID("U0BOB"), now.Approvals[0].Decisions[0].By.For[0].User)
	o.press("U0DAVE", o.thread("U0DAVE", root)[0], "approve", 1)
	require.Equal(t, approvals.Pending, o.status(b, 1))
}

// A crash between two messages does not tell anybody twice, and nobody is left
// out because somebody else cannot be written to.
func TestNoticesGoOnWhereTheyStopped(t *testing.T) {
	o := atNoon(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, laddered(call("c1", "delete_file", `{}`, by("three", fromUser("U0BOB", "U0CAROL", "U0DAVE"))), reminds(time.Hour)))
	o.draw(b)
	o.pass(time.Hour)
	o.climbs(b)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{
		{Method: "conversations.open"}, {Method: "conversations.open", Status: http.StatusServiceUnavailable},
	}})
	var later *slackapi.LaterError
	require.ErrorAs(t, o.ui.Notices.Reconcile(t.Context(), string(b.ID)), &later)
	require.Len(t, o.letters("U0BOB"), 1)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "conversations.open", Error: "user_disabled"}}})
	o.notify(b)
	require.Len(t, o.letters("U0BOB"), 1)
	require.Empty(t, o.letters("U0CAROL"), "she cannot be written to")
	require.Len(t, o.letters("U0DAVE"), 1)
}

func TestANoticeWaitsForARosterThatMayComeInAMoment(t *testing.T) {
	o := atNoon(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, laddered(call("c1", "delete_file", `{}`, by("gone", fromGroup("S0NONE")), sre), reminds(time.Hour)))
	o.draw(b)
	o.pass(time.Hour)
	o.climbs(b)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Status: http.StatusServiceUnavailable}}})
	var later *slackapi.LaterError
	require.ErrorAs(t, o.ui.Notices.Reconcile(t.Context(), string(b.ID)), &later)
	o.notify(b)
	require.Len(t, o.letters("U0BOB"), 1, "a group that is not there keeps nobody else from being told")
}
