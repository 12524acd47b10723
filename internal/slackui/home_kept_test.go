package slackui_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// published is how many Homes were drawn.
func (o *workspace) published() int { return len(o.Calls("views.publish")) }

// settles works until nothing is due any more, as the due index would, moving
// the clock by what each answer asks for. It returns how long that took.
func (o *workspace) settles(batches ...approvals.Batch) time.Duration {
	o.t.Helper()
	var took time.Duration
	for range 20 {
		var wait time.Duration
		for _, b := range batches {
			err := o.stirs(b)
			if later, is := errors.AsType[*slackapi.LaterError](err); is {
				wait = max(wait, later.After)
				continue
			}
			require.NoError(o.t, err)
			require.Equal(o.t, o.batch(b.ID).Version, o.drawnVersion(string(b.ID), "homes"))
		}
		if wait == 0 {
			return took
		}
		took += wait
		o.now.Advance(wait)
	}
	o.t.Fatal("it never ends")
	return 0
}

// Two seconds after the last drawing: nobody's Home is drawn more often.
func (o *workspace) rests() { o.now.Advance(2 * time.Second) }

// After one round every copy says how it ended: in the thread, in the channel of
// the escalation, in the direct messages and at home.
func TestAllCopiesShowTheOutcomeAfterOneRound(t *testing.T) {
	o := newListWorkspace(t)
	root := o.say("U0ALICE", "clean up")
	d := escalating(o)
	d.Ask.Requirement.Direct = approvals.DirectEveryone
	b := o.opens(root, d)
	o.draw(b)
	require.NoError(t, o.stirs(b))
	o.now.Advance(2 * time.Minute)
	require.NoError(t, o.desk.Tick(t.Context(), b.ID))
	o.draw(b)
	for _, user := range []string{"U0ALICE", "U0BOB", "U0CAROL", "U0DAVE"} {
		require.Contains(t, words(o.atHome(user).Blocks), "Delete file", user)
	}
	o.rests()
	require.Equal(t, 200, o.press("U0BOB", o.directs("U0BOB")[0], "approve", 0).Status)
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))

	o.draw(b)
	require.NoError(t, o.stirs(b))
	further, err := o.Messages("U0DAVE", "C0GENERAL", "")
	require.NoError(t, err)
	for _, card := range []slacksim.Message{o.card("U0ALICE", root), further[0], o.directs("U0BOB")[0], o.directs("U0CAROL")[0], o.directs("U0DAVE")[0]} {
		require.Contains(t, plainWords(card), "Approved by U0BOB")
		require.Empty(t, card.Actions())
	}
	for user, says := range map[string]string{
		"U0ALICE": `(?s)Nothing that you requested`, "U0CAROL": `(?s)Nothing waits for your approval.*Nothing recent`,
		"U0DAVE": `(?s)Nothing waits for your approval.*Nothing recent`, "U0BOB": `(?s)Nothing waits for your approval.*Delete file.*Approved. You approved`,
	} {
		home, _ := o.Home(user)
		require.Regexp(t, says, words(home.Blocks), user)
	}
}

func TestOnlyTheHomesOfThoseConcernedAreDrawn(t *testing.T) {
	o := newListWorkspace(t)
	for _, user := range []string{"U0ALICE", "U0BOB", "U0DAVE"} {
		o.atHome(user)
	}
	o.rests()
	before := o.published()
	b := o.another("one", 0, call("c1", "delete_file", `{}`, sre))
	require.NoError(t, o.stirs(b))
	require.Equal(t, before+2, o.published(), "whoever asked, and bob; dave has nothing to do with it, and carol never looks")
	home, _ := o.Home("U0BOB")
	require.Contains(t, words(home.Blocks), "Delete file")
	require.NoError(t, o.stirs(b))
	require.Equal(t, before+2, o.published(), "nothing has changed since")
}

func TestAHomeThatNobodyOpensAnyMoreIsNotDrawn(t *testing.T) {
	o := newListWorkspace(t)
	o.atHome("U0BOB")
	before := o.published()
	o.now.Advance(7*24*time.Hour + time.Minute)
	require.NoError(t, o.stirs(o.another("one", 0, call("c1", "delete_file", `{}`, sre))))
	require.Equal(t, before, o.published())
}

// A hundred changes within a moment are two drawings.
func TestManyChangesAreDrawnTogether(t *testing.T) {
	o := newListWorkspace(t)
	o.atHome("U0BOB")
	o.rests()
	before := o.published()
	var all []approvals.Batch
	for i := range 100 {
		all = append(all, o.another(fmt.Sprintf("n%03d", i), 0, call("c1", "delete_file", `{}`, sre)))
	}
	require.LessOrEqual(t, o.settles(all...), 4*time.Second)
	require.LessOrEqual(t, o.published()-before, 2)
	home, _ := o.Home("U0BOB")
	require.Contains(t, words(home.Blocks), "100 requests wait")
}

// The process that drew is gone before it said so: the next one draws again.
func TestAHomeIsDrawnAfterACrash(t *testing.T) {
	o := newListWorkspace(t)
	o.atHome("U0BOB")
	o.rests()
	b := o.another("one", 0, call("c1", "delete_file", `{}`, sre))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "views.publish", Error: "internal_error"}}})
	require.Error(t, o.stirs(b))
	require.Zero(t, o.drawnVersion(string(b.ID), "homes"))
	o.settles(b)
	home, _ := o.Home("U0BOB")
	require.Contains(t, words(home.Blocks), "Delete file")
}

// Two processes that draw the Homes of one batch do not make the work fail.
func TestHomesThatAnotherProcessDrawsAreNoFailure(t *testing.T) {
	o := newListWorkspace(t)
	o.atHome("U0BOB")
	o.rests()
	before := o.published()
	b := o.another("one", 0, call("c1", "delete_file", `{}`, sre))
	o.onMemo = func(surface string, writes bool) error {
		if !writes || surface != "homes" {
			return nil
		}
		o.onMemo = nil
		return o.stirs(b) // as the other process, before the first write
	}
	_, later := errors.AsType[*slackapi.LaterError](o.stirs(b))
	require.True(t, later)
	require.Equal(t, b.Version, o.drawnVersion(string(b.ID), "homes"))
	require.NoError(t, o.stirs(b))
	require.Equal(t, before+1, o.published())
}

// Somebody else drew it, or we forgot that we did: it is read again, and drawn.
func TestALostHashOfAHomeIsReloaded(t *testing.T) {
	o := newListWorkspace(t)
	o.atHome("U0BOB")
	_, err := slack.New(o.BotToken(), slack.OptionAPIURL(o.api)).PublishView("U0BOB", slack.HomeTabViewRequest{
		Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewDividerBlock()}},
	}, "")
	require.NoError(t, err)
	o.rests()
	require.NoError(t, o.stirs(o.another("one", 0, call("c1", "delete_file", `{}`, sre))))
	home, _ := o.Home("U0BOB")
	require.Contains(t, words(home.Blocks), "Delete file")
}

func TestALostHashOfAReviewIsReloaded(t *testing.T) {
	o := newListWorkspace(t)
	b := o.another("one", 0, call("c1", "delete_file", `{"path":"a.txt"}`, sre))
	require.NoError(t, o.stirs(b))
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "views.update", Error: "hash_conflict"}}})
	o.uses("U0BOB", o.top("U0BOB"), "Approve")
	require.Contains(t, plainWords(o.top("U0BOB")), "Approved by U0BOB")
}

func TestAHomeIsReadPageByPage(t *testing.T) {
	o := newListWorkspace(t)
	for i := range 40 {
		b := o.another(fmt.Sprintf("n%03d", i), time.Duration(i)*time.Second, call("c1", fmt.Sprintf("tool_%03d", i), `{}`, sre))
		if i == 0 {
			require.NoError(t, o.stirs(b))
		}
	}
	home := o.atHome("U0BOB")
	require.LessOrEqual(t, len(home.Blocks), 100)
	require.Contains(t, words(home.Blocks), "Tool 014")
	require.NotContains(t, words(home.Blocks), "Tool 015")
	for _, page := range []struct{ press, has, hasNot string }{
		{"Less urgent", "Tool 015", "Tool 014"}, {"Less urgent", "Tool 039", "Tool 029"}, {"More urgent", "Tool 015", "Tool 039"},
	} {
		o.uses("U0BOB", home, page.press)
		home, _ = o.Home("U0BOB")
		require.Contains(t, words(home.Blocks), page.has)
		require.NotContains(t, words(home.Blocks), page.hasNot)
	}
	// A change keeps the page; opening it anew begins with the first.
	o.rests()
	o.approvesAs("U0CAROL", o.batch("batch-07-n039"))
	require.NoError(t, o.stirs(o.batch("batch-07-n039")))
	home, _ = o.Home("U0BOB")
	require.Contains(t, words(home.Blocks), "Tool 015")
	o.rests()
	require.Contains(t, words(o.atHome("U0BOB").Blocks), "Tool 000")
}

// However much is open, a page reads as much as a page.
func TestAHomeDoesNotGrowWithWhatIsOpen(t *testing.T) {
	size := func(n int) (blocks, read int) {
		o := newListWorkspace(t)
		for i := range n {
			b := o.another(fmt.Sprintf("n%04d", i), time.Duration(i)*time.Second, call("c1", "delete_file", `{}`, sre))
			if i == 0 {
				require.NoError(t, o.stirs(b))
			}
		}
		home := o.atHome("U0BOB")
		raw, err := json.Marshal(home.Blocks)
		require.NoError(t, err)
		return len(home.Blocks), len(raw)
	}
	few, fewBytes := size(300)
	many, manyBytes := size(900)
	require.Equal(t, few, many)
	require.InDelta(t, fewBytes, manyBytes, 200)
}

func TestAnAbsenceIsEndedAtHome(t *testing.T) {
	o := newListWorkspace(t)
	o.command("U0BOB", "away for 3 days, ask <@U0CAROL>")
	home := o.atHome("U0BOB")
	require.Contains(t, words(home.Blocks), "<@U0CAROL> stands in for you")
	require.Contains(t, words(o.atHome("U0CAROL").Blocks), "You stand in for <@U0BOB>")
	o.uses("U0BOB", home, "I'm back")
	home, _ = o.Home("U0BOB")
	require.Contains(t, words(home.Blocks), "You aren't away")
	o.rests()
	require.NotContains(t, words(o.atHome("U0CAROL").Blocks), "You stand in")
}

// Whoever stands in for somebody finds at home what waits for them.
func TestADelegateFindsAtHomeWhatWaitsForTheOther(t *testing.T) {
	o := newListWorkspace(t)
	o.command("U0BOB", "away for 3 days, ask <@U0DAVE>")
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	d := call("c1", "delete_file", `{"path":"a.txt"}`, sre)
	d.Ask.Requirement.Delegation = true
	b := o.another("one", 0, d)
	require.NoError(t, o.stirs(b))
	home := o.atHome("U0DAVE")
	require.Contains(t, words(home.Blocks), "1 request waits")
	o.uses("U0DAVE", home, "Review")
	o.uses("U0DAVE", o.top("U0DAVE"), "Approve")
	require.Contains(t, plainWords(o.top("U0DAVE")), "Approved by U0DAVE")
	o.rests()
	require.NoError(t, o.stirs(b))
	home, _ = o.Home("U0DAVE")
	require.Contains(t, words(home.Blocks), "You approved")
}

// Whoever has left does not keep the Homes of the others waiting, and is not
// asked about again; back at work, they open theirs as everybody does.
func TestTheHomeOfADeactivatedAccountIsForgotten(t *testing.T) {
	o := newListWorkspace(t)
	b := o.another("one", 0, call("c1", "delete_file", `{"path":"a"}`, sre))
	require.NoError(t, o.stirs(b))
	o.atHome("U0ALICE")
	o.atHome("U0BOB")
	require.NoError(t, o.SetActive("U0ALICE", false))
	o.now.Advance(2 * time.Minute)
	before := o.published()
	o.approvesAs("U0CAROL", b)
	require.NoError(t, o.stirs(b))
	require.Equal(t, o.batch(b.ID).Version, o.drawnVersion(string(b.ID), "homes"))
	require.Equal(t, before+1, o.published(), "bob's")

	require.NoError(t, o.SetActive("U0ALICE", true))
	o.now.Advance(2 * time.Minute)
	o.settles(o.another("two", 0, call("c1", "Tool two", `{}`, sre)))
	require.Equal(t, before+2, o.published(), "bob's: alice has not looked since")
	require.Contains(t, words(o.atHome("U0ALICE").Blocks), "Tool two")
}

// An edit takes a call away from those whom the version before asked: their
// Homes show that too.
func TestTheHomesOfThoseWhomAnEarlierVersionAskedAreDrawn(t *testing.T) {
	o := newListWorkspace(t)
	o.atHome("U0DAVE")
	o.rests()
	b := o.another("one", 0, call("c1", "delete_file", `{}`, only("boss", "U0DAVE")))
	require.NoError(t, o.stirs(b))
	home, _ := o.Home("U0DAVE")
	require.Contains(t, words(home.Blocks), "Delete file")
	o.rests()
	o.moves(b, func(now *approvals.Batch) { now.Approvals[0].Requirement.Quorums = []approvals.Quorum{sre} })
	require.NoError(t, o.stirs(b))
	home, _ = o.Home("U0DAVE")
	require.NotContains(t, words(home.Blocks), "delete_file")
}
