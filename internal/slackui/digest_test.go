package slackui_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/stretchr/testify/require"
)

// crowded is a workspace with so little room that all but the first go into the
// digest.
func crowded(t *testing.T) *workspace {
	t.Helper()
	return atNoon(t, slacksim.Config{}, func(c *slackui.Config) { c.CardsPerMinute, c.MessagesPerMinute = 1, 2 })
}

// digestIsKept compares with a golden file what we sent last by the method, and
// Slack took.
func (o *workspace) digestIsKept(method, name string) {
	o.t.Helper()
	calls := o.Calls(method)
	form, err := url.ParseQuery(calls[len(calls)-1].Request)
	require.NoError(o.t, err)
	text := form.Get("text")
	require.Equal(o.t, o.digests()[0].Text, text)
	require.True(o.t, strings.HasSuffix(text, "."), "a sentence: %s", text)
	var blocks any
	require.NoError(o.t, json.Unmarshal([]byte(form.Get("blocks")), &blocks))
	kept(o.t, name, map[string]any{"text": text, "blocks": blocks})
}

func TestWhatADigestShows(t *testing.T) {
	o := crowded(t)
	o.drawsAll(o.another("n0", 0, call("c1", "x", `{}`, sre)))
	one := o.another("n1", 0, rated(call("c1", "delete_file", `{"path":"reports/a.txt"}`, sre), approvals.SeverityIrreversible, "Delete {args.path}"))
	o.drawsAll(one)
	o.digestIsKept("chat.postMessage", "digest_one.json")
	var calls []approvals.Deferral
	for i := range 8 {
		calls = append(calls, call(fmt.Sprint("c", i), fmt.Sprint("tool_", i), `{}`, sre))
	}
	calls[0].Ask.Requirement.Deadline = noon.Add(8 * time.Hour)
	calls[5] = rated(calls[5], approvals.SeverityHigh, "Restart <!channel> *now*")
	many, more := o.another("n2", 0, calls...), o.another("n3", 0, call("c1", "tool_8", `{}`, sre), call("c2", "tool_9", `{}`, sre))
	o.drawsAll(many, more)
	o.approves(more, 0)
	o.drawsAll(more)
	o.digestIsKept("chat.update", "digest_full.json")
	for i := range 8 {
		o.approves(many, i)
	}
	o.approves(more, 1)
	o.approves(one, 0)
	o.drawsAll(many, more, one)
	o.digestIsKept("chat.update", "digest_decided.json")
}

func TestAReminderOverTheBudgetIsSaidInTheDigest(t *testing.T) {
	o := crowded(t)
	var all []approvals.Batch
	for n := range 3 {
		all = append(all, o.another(fmt.Sprint("n", n), 0, laddered(call("c1", "delete_file", `{}`, by("named", fromUser("U0CAROL"))), reminds(time.Hour))))
	}
	o.drawsAll(all...)
	o.pass(time.Hour)
	for _, b := range all {
		o.climbs(b)
		require.Eventually(t, func() bool {
			err := o.ui.Notices.Reconcile(t.Context(), string(b.ID))
			o.pass(time.Second)
			return err == nil
		}, time.Minute, time.Millisecond)
	}
	o.pass(time.Minute)
	o.drawsAll(all...)
	got := strings.Join(o.letters("U0CAROL"), "\n")
	require.Len(t, o.letters("U0CAROL"), 2, "a letter and a digest")
	require.Contains(t, got, "2 of these requests are still undecided")
}

// The digest may have to wait for so long that the budget has room for a message again.
func TestAReminderInADigestIsNotSentByItselfToo(t *testing.T) {
	o := crowded(t)
	var all []approvals.Batch
	for n := range 3 {
		all = append(all, o.another(fmt.Sprint("n", n), 0, laddered(call("c1", "delete_file", `{}`, by("named", fromUser("U0CAROL"))), reminds(time.Hour))))
	}
	o.drawsAll(all...)
	o.pass(time.Hour)
	for _, b := range all {
		o.climbs(b)
	}
	var later *slackapi.LaterError
	o.notify(all[0])
	o.notify(all[1])
	require.ErrorAs(t, o.ui.Notices.Reconcile(t.Context(), string(all[2].ID)), &later, "the digest was drawn a moment ago")
	before := len(o.letters("U0CAROL"))
	require.Contains(t, strings.Join(o.letters("U0CAROL"), "\n"), "1 of these requests is still undecided")
	o.pass(2 * time.Minute)
	o.notify(all[2])
	require.Len(t, o.letters("U0CAROL"), before, "the digest says it")
	require.Contains(t, strings.Join(o.letters("U0CAROL"), "\n"), "2 of these requests are still undecided")
}

func TestThatASignatureNoLongerCountsIsToldWhateverElseIs(t *testing.T) {
	o := crowded(t)
	for n := range 2 {
		b := o.another(fmt.Sprint("n", n), 0, call("c1", "delete_file", `{}`, sre))
		o.moves(b, func(now *approvals.Batch) {
			now.Approvals[0].Amendments = []approvals.Amendment{{By: approvals.Principal{User: "U0DAVE"}, Cleared: []approvals.UserID{"U0CAROL"}, At: noon}}
		})
		o.notify(b)
	}
	require.Len(t, o.letters("U0CAROL"), 2, "more than there is room for otherwise")
	third := o.another("n2", 0, call("c1", "delete_file", `{}`, sre))
	o.moves(third, func(now *approvals.Batch) {
		now.Approvals[0].Amendments = []approvals.Amendment{{By: approvals.Principal{User: "U0DAVE"}, Cleared: []approvals.UserID{"U0CAROL"}, At: noon}}
	})
	var later *slackapi.LaterError
	require.ErrorAs(t, o.ui.Notices.Reconcile(t.Context(), string(third.ID)), &later)
	o.pass(later.After)
	o.notify(third)
	require.Len(t, o.letters("U0CAROL"), 3, "it waits, and is not lost")
}

// replica is another process over the same store.
func (o *workspace) replica(tune func(*slackui.Config)) *slackui.UI {
	o.t.Helper()
	c := slackui.Config{
		BotToken: o.BotToken, SigningSecret: o.SigningSecret, APIURL: o.api, Team: slacksim.TeamID, Agent: "ops",
		Desk: o.desk, Runs: o.testStore, Runner: o.testStore, Memos: o.testStore, Now: o.now.Now, Log: slog.New(slog.DiscardHandler),
	}
	tune(&c)
	ui, err := slackui.New(c)
	require.NoError(o.t, err)
	return ui
}

func TestReplicasThatRaceForTheBudgetDoNotExceedIt(t *testing.T) {
	three := func(c *slackui.Config) { c.CardsPerMinute = 3 }
	o := atNoon(t, slacksim.Config{}, three)
	uis := []*slackui.UI{o.ui, o.replica(three), o.replica(three)}
	var all []approvals.Batch
	var wg sync.WaitGroup
	for n := range 24 {
		all = append(all, o.another(fmt.Sprint("n", n), 0, call("c1", "delete_file", `{}`, sre)))
	}
	for i, b := range all {
		wg.Go(func() { _ = uis[i%3].Cards.Reconcile(t.Context(), string(b.ID)) })
	}
	wg.Wait()
	o.pass(10 * time.Second)
	o.drawsAll(all...)
	cards, listed := o.openCalls(all)
	require.LessOrEqual(t, len(cards), 3)
	require.Len(t, o.digests(), 1)
	require.Equal(t, 24, len(cards)+len(listed))
}

// openCalls are how many calls of each batch can be decided on its card, and
// how many of each a digest lists.
func (o *workspace) openCalls(all []approvals.Batch) (cards, listed map[approvals.BatchID]int) {
	o.t.Helper()
	cards, listed = map[approvals.BatchID]int{}, map[approvals.BatchID]int{}
	for _, b := range all {
		for _, m := range o.thread("U0BOB", o.run(b.Run).Origin.Root) {
			for _, a := range m.Actions() {
				if strings.HasPrefix(a.ActionID, "countersign.approve.") {
					cards[b.ID]++
				}
			}
		}
	}
	for _, m := range o.digests() {
		for _, a := range m.Actions() {
			if !strings.HasPrefix(a.Value, "digest-") {
				continue
			}
			raw, _, err := o.Memo(o.t.Context(), a.Value, "digest")
			require.NoError(o.t, err)
			var memo struct {
				Body struct {
					Requests map[approvals.BatchID]struct {
						Tools map[string]int `json:"t"`
					} `json:"requests"`
				} `json:"body"`
			}
			require.NoError(o.t, json.Unmarshal(raw, &memo))
			for id, r := range memo.Body.Requests {
				for _, n := range r.Tools {
					listed[id] += n
				}
			}
		}
	}
	return cards, listed
}

// After any storm of decisions, expiries and deaths of processes, what is open
// is on a card or in a digest, and nothing else is.
func TestAfterAStormTheCardsAndDigestsShowWhatIsOpen(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			two := func(c *slackui.Config) { c.CardsPerMinute = 2 }
			o := atNoon(t, slacksim.Config{}, two)
			var all []approvals.Batch
			for n := range 40 {
				switch k := r.IntN(10); {
				case k < 4 || len(all) == 0:
					first := call("c1", "delete_file", `{}`, sre)
					first.Ask.Requirement.Deadline = o.now.Now().Add(time.Hour)
					all = append(all, o.another(fmt.Sprint("n", n), 0, first, call("c2", "run_sql", `{"n":2}`, sre)))
				case k < 6:
					b, i := all[r.IntN(len(all))], r.IntN(2)
					if o.batch(b.ID).Approvals[i].Status == approvals.Pending && o.now.Now().Before(b.OpenedAt.Add(time.Hour)) {
						o.approves(o.batch(b.ID), i)
					}
				case k == 6:
					o.pass(time.Duration(r.IntN(30)) * time.Minute)
					for _, b := range all {
						o.moves(b, func(now *approvals.Batch) {
							if next, _, err := now.Apply(approvals.Expire{At: o.now.Now()}); err == nil {
								*now = next
							}
						})
					}
				case k == 7: // what it was about to send is lost, and then the process is
					o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.postMessage", Status: 503}, {Method: "chat.update", Status: 503}}})
					_ = o.ui.Cards.Reconcile(t.Context(), string(all[len(all)-1].ID))
					o.SetFaults(slacksim.Faults{})
					o.ui.Cards = o.replica(two).Cards
				default:
					_ = o.ui.Cards.Reconcile(t.Context(), string(all[r.IntN(len(all))].ID))
					o.pass(time.Duration(r.IntN(5)) * time.Second)
				}
			}
			o.pass(10 * time.Second)
			o.drawsAll(all...)
			want := map[approvals.BatchID]int{}
			for _, b := range all {
				for _, a := range o.batch(b.ID).Approvals {
					if a.Status == approvals.Pending {
						want[b.ID]++
					}
				}
			}
			cards, listed := o.openCalls(all)
			for id, n := range listed {
				require.NotContains(t, cards, id, "it is shown once")
				cards[id] = n
			}
			require.Equal(t, want, cards)
		})
	}
}
