package slackui_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/stretchr/testify/require"
)

// drawsAll draws the batches until none has to wait, and moves the clock as far
// as they ask for.
func (o *workspace) drawsAll(batches ...approvals.Batch) {
	o.t.Helper()
	for len(batches) > 0 {
		var again []approvals.Batch
		wait := time.Duration(0)
		for _, b := range batches {
			err := o.ui.Cards.Reconcile(o.t.Context(), string(b.ID))
			var later *slackapi.LaterError
			if err != nil {
				require.ErrorAs(o.t, err, &later)
				wait, again = max(wait, later.After), append(again, b)
			}
		}
		o.now.Advance(wait)
		batches = again
	}
}

// digests are those of #ops.
func (o *workspace) digests() []slacksim.Message {
	o.t.Helper()
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(o.t, err)
	return slices.DeleteFunc(all, func(m slacksim.Message) bool { return m.Metadata["event_type"] != "countersign_digest" })
}

func TestWhatIsOverTheBudgetGoesIntoOneDigest(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) { c.CardsPerMinute = 3 })
	var all []approvals.Batch
	for n := range 9 {
		all = append(all, o.another(fmt.Sprint("n", n), 0, call("c1", "delete_file", fmt.Sprintf(`{"n":%d}`, n), sre), call("c2", "run_sql", fmt.Sprintf(`{"n":%d}`, n), sre)))
	}
	o.drawsAll(all...)
	require.Len(t, o.Calls("chat.postMessage"), 4, "three cards and a digest")
	digests := o.digests()
	require.Len(t, digests, 1)
	shown := plainWords(digests[0])
	require.Contains(t, shown, "6 requests wait for approval")
	require.Contains(t, shown, "12 calls in 6 requests")
	require.Contains(t, shown, "delete_file ×6, run_sql ×6")
	require.Contains(t, shown, "ops ×12")
	require.NotContains(t, shown, `"n"`)
	require.LessOrEqual(t, len(o.Calls("chat.update")), 1, "five more are one update")

	o.now.Advance(2 * time.Minute)
	o.drawsAll(all...)
	require.Len(t, o.Calls("chat.postMessage"), 4, "a batch in a digest is not posted later by itself")
	late := o.another("n9", 0, call("c1", "delete_file", `{}`, sre))
	o.drawsAll(late)
	require.Len(t, o.Calls("chat.postMessage"), 5, "in another minute there is room for a card")
}

func TestADigestFollowsWhatBecomesOfItsRequests(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) { c.CardsPerMinute = 1 })
	first, a, b := o.another("n0", 0, call("c1", "x", `{}`, sre)), o.another("n1", 0, call("c1", "x", `{"a":1}`, sre)), o.another("n2", 0, call("c1", "y", `{"b":1}`, sre))
	o.drawsAll(first, a, b)
	digest := func() slacksim.Message { return o.digests()[0] }
	require.Contains(t, plainWords(digest()), "2 requests wait")
	o.approves(a, 0)
	o.drawsAll(a)
	require.Contains(t, plainWords(digest()), "1 request waits")
	require.Contains(t, plainWords(digest()), "1 call that was listed here no longer waits")
	o.approves(b, 0)
	o.drawsAll(b)
	require.Contains(t, plainWords(digest()), "Nothing listed here still waits")
	require.Empty(t, digest().Actions())

	o.now.Advance(time.Minute)
	o.drawsAll(o.another("n7", 0, call("c1", "x", `{}`, sre)))
	c := o.another("n3", 0, call("c1", "x", `{"c":1}`, sre))
	d := o.another("n4", 0, call("c1", "x", `{"d":1}`, sre))
	o.drawsAll(c, d)
	require.Len(t, o.digests(), 2, "one that is settled takes nothing more")
	o.now.Advance(2 * time.Hour)
	o.drawsAll(o.another("n5", 0, call("c1", "x", `{"e":1}`, sre)), o.another("n6", 0, call("c1", "x", `{"f":1}`, sre)))
	require.Len(t, o.digests(), 3, "nor does one that is old")
	o.approves(c, 0)
	o.drawsAll(c)
	require.Contains(t, plainWords(o.digests()[1]), "1 call that was listed here no longer waits", "it is kept right all the same")
}

func TestARequestInADigestIsReviewedFromItsThreadAndFromTheDigest(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) { c.CardsPerMinute = 1 })
	first, b := o.another("n0", 0, call("c1", "x", `{}`, sre)), o.another("n1", 0, call("c1", "delete_file", `{"path":"a.txt"}`, sre))
	run := o.run(b.Run)
	require.NoError(t, o.reply(run))
	require.Contains(t, o.thread("U0BOB", run.Origin.Root)[0].Shown(), "The card is in this thread")
	o.drawsAll(first, b)
	reply := o.thread("U0BOB", run.Origin.Root)
	require.Len(t, reply, 1)
	require.Contains(t, reply[0].Shown(), "A list of waiting requests shows it instead of a card.")
	require.Contains(t, reply[0].Shown(), "Open the list")
	for _, m := range []slacksim.Message{reply[0], o.digests()[0]} {
		action := m.Actions()[0].ActionID
		out, err := o.Click(slacksim.Click{User: "U0BOB", Channel: m.Channel, TS: m.TS, ActionID: action})
		require.NoError(t, err)
		require.Equal(t, 200, out.Status)
		views := o.Views("U0BOB")
		require.Contains(t, fmt.Sprint(views[len(views)-1]), "a.txt")
	}
}

// What was posted by a clock that was hours ahead is not of the last minute.
func TestAClockThatIsSetBackLeavesRoomForCards(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) { c.CardsPerMinute = 1 })
	o.now.Advance(2 * time.Hour)
	first := o.another("n0", 0, call("c1", "x", `{}`, sre))
	o.drawsAll(first)
	o.now.Advance(-2 * time.Hour)
	second := o.another("n1", 0, call("c1", "x", `{}`, sre))
	o.drawsAll(second)
	require.Empty(t, o.digests())
	require.NotEmpty(t, o.card("U0BOB", o.run(second.Run).Origin.Root).Actions())
}

func TestABudgetThatMakesNoSenseIsBegunAnew(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) { c.CardsPerMinute = 1 })
	id := "budget-" + strings.TrimPrefix(approvals.NewID("x", approvals.PartitionOf(slacksim.TeamID, "C0OPS"), strings.ToLower(slacksim.TeamID+"-C0OPS")), "x-")
	require.NoError(t, o.CommitMemo(t.Context(), id, "budget", []byte("{"), 0, 0))
	first, second := o.another("n0", 0, call("c1", "x", `{}`, sre)), o.another("n1", 0, call("c1", "x", `{}`, sre))
	o.drawsAll(first)
	require.Empty(t, o.digests(), "it is not known that there is no room")
	require.NotEmpty(t, o.card("U0BOB", o.run(first.Run).Origin.Root).Actions())
	o.drawsAll(second)
	require.Len(t, o.digests(), 1, "it counts again")
}

// hiccups makes the store not answer the next commands about the budget.
func (o *workspace) hiccups(reads, writes int) {
	o.onMemo = func(surface string, write bool) error {
		left := &reads
		if write {
			left = &writes
		}
		if surface != "budget" || *left == 0 {
			return nil
		}
		*left--
		return errOutage
	}
}

// A request goes into a digest when there is no room for a card, and not when
// the store was asked for it at a bad moment.
func TestAStoreThatDoesNotAnswerSendsNothingToTheDigest(t *testing.T) {
	for name, c := range map[string]struct{ reads, writes int }{
		"when it is asked":   {reads: 2},
		"when it is written": {writes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWorkspace(t, slacksim.Config{})
			o.hiccups(c.reads, c.writes)
			b := o.another("n0", 0, call("c1", "x", `{}`, sre))
			for range 2 {
				require.ErrorIs(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), errOutage)
				require.Empty(t, o.Calls("chat.postMessage"))
			}
			o.draw(b)
			require.Empty(t, o.digests())
			require.NotEmpty(t, o.card("U0BOB", o.run(b.Run).Origin.Root).Actions())
		})
	}
}

// The same holds for what one person is told.
func TestAStoreThatDoesNotAnswerKeepsNobodyFromBeingTold(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	o.hiccups(1, 1)
	root := o.say("U0ALICE", "clean up")
	d := call("c1", "delete_file", `{}`, sre)
	d.Ask.Requirement.Ladder = []approvals.Rung{{At: o.now.Now().Add(time.Minute), Kind: approvals.Remind}}
	b := o.opens(root, d)
	o.now.Advance(2 * time.Minute)
	o.climbs(b)
	for range 2 {
		require.ErrorIs(t, o.ui.Notices.Reconcile(t.Context(), string(b.ID)), errOutage)
	}
	require.NoError(t, o.ui.Notices.Reconcile(t.Context(), string(b.ID)))
	for _, user := range []string{"U0BOB", "U0CAROL"} {
		require.Len(t, o.directs(user), 1, user)
		require.Contains(t, plainWords(o.directs(user)[0]), "Delete file")
	}
}

func TestALargeBatchHasTwoCardsAndTheRestInReview(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	var calls []approvals.Deferral
	for i := range 64 {
		calls = append(calls, call(fmt.Sprintf("c%d", i), "delete_file", fmt.Sprintf(`{"n":"file-%d"}`, i), sre))
	}
	b := o.opens(root, calls...)
	o.drawsAll(b)
	cards := o.thread("U0BOB", root)
	require.Len(t, cards, 2)
	require.NotContains(t, plainWords(cards[0]), "no card here")
	require.Contains(t, plainWords(cards[1]), "*48 more calls of this request* have no card here and wait for a decision.")
	out, err := o.Click(slacksim.Click{User: "U0BOB", Channel: cards[1].Channel, TS: cards[1].TS, ActionID: "countersign.review.2"})
	require.NoError(t, err)
	require.Equal(t, 200, out.Status)
	require.Contains(t, fmt.Sprint(o.Views("U0BOB")), "file-16")
	o.approves(b, 63)
	o.drawsAll(b)
	require.Contains(t, plainWords(o.thread("U0BOB", root)[1]), "47 of them wait.")
	require.Len(t, o.Calls("chat.update"), 1, "the first card says the same as before")
}
