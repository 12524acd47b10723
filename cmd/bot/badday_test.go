package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/tools"
)

// Slack limits, fails, performs calls and loses the replies, delivers events late,
// in another order and twice: the request comes to its end all the same, each call
// runs once, and each card tells the truth. A message is posted twice only if the reply
// to its post was lost: it is posted again, unless someone has clicked on it by then. In
// the end each copy of a card that the bot knows or people clicked on says what became of
// the request, and has no buttons. People click on the first copy here, so only a third one
// could have some, until someone clicks on it.
func TestABadDayOfSlackLosesAndDoublesNothing(t *testing.T) {
	days := 5
	if *everyStep {
		days = 100
	}
	for seed := range days {
		chaos := slacksim.Chaos{Seed: uint64(seed), Limited: 0.15, Failed: 0.15, LostReply: 0.05, Duplicated: 0.3, EventDelay: 5000}
		t.Run(fmt.Sprint("day ", seed), func(t *testing.T) { badDay(t, slacksim.Faults{Chaos: &chaos}) })
		chaos.LostReply = 0
		t.Run(fmt.Sprint("day ", seed, ", no reply is lost"), func(t *testing.T) {
			require.Zero(t, badDay(t, slacksim.Faults{Chaos: &chaos}), "messages posted twice")
		})
	}
	t.Run("the reply to one post is lost", func(t *testing.T) {
		next := []slacksim.Fault{{Method: "chat.postMessage", LostReply: true}}
		require.LessOrEqual(t, badDay(t, slacksim.Faults{Next: next}), 1, "messages posted twice")
	})
}

// badDay is a request on such a day, and returns how many messages were posted twice.
func badDay(t *testing.T, faults slacksim.Faults) (copies int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newScenario(t)
		w.refuses = true
		w.begins(fault{}, 0)
		w.slack.SetFaults(faults)
		w.lives(10 * time.Minute)
		w.slack.SetFaults(slacksim.Faults{})
		w.drains()
		_, copies = w.holds(fault{})
		for _, shown := range w.cards() {
			for _, m := range shown {
				require.Contains(t, m.words(), "3 calls: 2 approved, 1 denied", "each copy of the card")
			}
		}
	})
	return copies
}

// For an hour of its own clock Slack takes no call. What people clicked before and in
// that hour counts, and when it is over everything is shown, once.
func TestAnHourWithoutSlackLosesAndDoublesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScenario(t)
		w.begins(fault{}, 0)
		for len(w.cards()) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		w.slack.SetFaults(slacksim.Faults{OutageMS: int(time.Hour / time.Millisecond)})
		w.decides()
		time.Sleep(time.Minute)
		require.Zero(t, w.answers(), "Slack shows nothing meanwhile")
		w.slack.Advance(time.Hour)
		w.lives(10 * time.Minute)
		w.drains()
		_, copies := w.holds(fault{})
		require.Zero(t, copies, "nothing was posted twice")
	})
}

// errands are a letter, after which the agent answers; two letters, of which the second
// needs an approval of its own; and a long one, which takes hours to post.
var errands = openaisim.Story{
	Name: "errand", Prompt: "run errand 1: a letter", Match: openaisim.Says("run errand"),
	Turn: func(c openaisim.Conversation) openaisim.Reply {
		if len(c.Results) == 0 || len(c.Results) == 1 && strings.Contains(c.User, "two letters") {
			return openaisim.Reply{Calls: []openaisim.Call{{Name: "post", Args: fmt.Sprintf(`{"what":%q}`, c.User)}}}
		}
		return openaisim.Reply{Text: finalWords}
	},
}

// postOffice is the tool of the errands.
func postOffice(*replica) ([]agentrun.Tool, error) {
	type letter struct {
		What string `json:"what"`
	}
	post, err := tools.New(tools.Spec[letter]{Name: "post", Description: "Posts it.", Approval: tools.Always, Timeout: 4 * time.Hour},
		func(ctx context.Context, _ agentrun.Call, l letter) (string, error) {
			if strings.Contains(l.What, "a long letter") {
				select {
				case <-ctx.Done():
				case <-time.After(3 * time.Hour):
				}
			}
			return "done", nil
		})
	return []agentrun.Tool{post}, err
}

// After an hour without Slack, what people wait for is shown first: the answers of agents,
// and the cards of requests that came up meanwhile. What agents are doing, and Homes, are
// drawn after that.
func TestWhatPeopleWaitForIsShownFirstAfterAnHourWithoutSlack(t *testing.T) {
	const many = 4 // of each kind
	synctest.Test(t, func(t *testing.T) {
		w := newBubble(t, oneOfSRE, postOffice, errands)
		w.c.Slack.CardsPerMinute = 1000
		w.start().starts()
		for _, user := range []string{alice, bob, carol} {
			require.NoError(t, w.slack.OpenHome(user))
		}
		var cards []message
		progress := map[string]bool{} // messages that show what agents do
		asks := func(what string) {
			root := w.sim.ask("run errand "+what, "")
			cards = append(cards, w.sim.await(bob, root, "a card", func(m message) bool { return len(m.buttons("")) > 0 }))
			if strings.Contains(what, "a long letter") {
				progress[w.sim.await(bob, root, "its reply", says("The card is in this thread")).TS] = true
			}
		}
		asks("0: a letter")
		for n := range many {
			for _, what := range []string{"a letter", "two letters", "a long letter"} {
				asks(fmt.Sprintf("%d: %s", n+1, what))
			}
		}
		time.Sleep(2 * time.Minute) // all is drawn
		require.Empty(t, w.sim.click(bob, cards[0], "", "Approve").VisibleError, "Slack is asked who Bob is, which is kept for a minute")
		time.Sleep(10 * time.Second)

		w.slack.SetFaults(slacksim.Faults{OutageMS: int(time.Hour / time.Millisecond)})
		for _, card := range cards[1:] {
			require.Empty(t, w.sim.click(bob, card, "", "Approve").VisibleError)
		}
		time.Sleep(2 * time.Minute)
		log := w.slack.Log()
		last := log[len(log)-1].Seq
		w.slack.Advance(time.Hour)
		time.Sleep(time.Minute)

		var order []string
		for _, e := range w.slack.Log() {
			if e.Seq <= last || e.Direction != slacksim.FromApp {
				continue
			}
			args, err := url.ParseQuery(e.Request)
			require.NoError(t, err)
			switch {
			case e.Kind == "chat.postMessage" && strings.Contains(args.Get("text"), finalWords):
				order = append(order, "answer")
			case e.Kind == "chat.postMessage":
				order = append(order, "card") // or the reply that leads to it
			case e.Kind == "chat.update" && progress[args.Get("ts")]:
				order = append(order, "progress")
			case e.Kind == "views.publish":
				order = append(order, "Home")
			}
		}
		for what, least := range map[string]int{"answer": many, "card": many, "progress": many, "Home": 3} {
			require.GreaterOrEqual(t, len(slices.DeleteFunc(slices.Clone(order), func(drawn string) bool { return drawn != what })), least, "%v", order)
		}
		late := slices.IndexFunc(order, func(drawn string) bool { return drawn == "progress" || drawn == "Home" })
		require.NotContains(t, order[late:], "answer", "%v", order)
		require.NotContains(t, order[late:], "card", "%v", order)
	})
}
