package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/tools"
)

// everyStep strikes at every command instead of at every seventh with one of the
// faults, as make soak does.
var everyStep = flag.Bool("every-step", false, "strike with each fault at each command to Redis")

// A fault is what happens to the whole scenario: a mishap at one command, and what
// follows from it.
type fault struct {
	name   string
	mishap mishap
	outage time.Duration // for which Redis cannot be reached afterwards
	doubts bool          // a call that cannot be repeated may be in doubt
}

var faults = []fault{
	{"not sent, Redis away", unsent, bubbleLease / 2, false},
	{"reply lost", unread, 0, false},
	{"reply lost, Redis away", unread, bubbleLease + time.Second, true},
	{"crash after it", crash, 0, true},
	{"frozen past the lease", freeze, 0, true},
}

// A scenario is one request from the mention to the answer: a batch of which two
// calls are approved and one is denied.
type scenario struct {
	*bubble

	root string
	said map[string]bool // what people have said and was acknowledged
	// refuses says that the bot may acknowledge a click and refuse it, because Slack
	// does not say who a person is. They try again.
	refuses bool

	effects  sync.Mutex
	happened map[string]int // calls by tool and key, as what they act on saw them
	early    []string       // calls that ran before they were approved
}

// Whom the policy asks, and what each of them says about which call. The words
// stand in the arguments.
var verdicts = []struct {
	user, call, tool string
	verdict          approvals.Verdict
}{
	{bob, "invoice-1", "pay", approvals.Approve},
	{carol, "invoice-1", "pay", approvals.Approve},
	{bob, "letter-1", "post", approvals.Approve},
	{carol, "ledger-1", "wipe", approvals.Deny},
}

const payments = `
groups: {sre: S0SRE}
default:
  why: It changes something.
  quorums: [{name: sre, need: 1, from: {groups: [sre]}}]
rules:
  - name: payments
    tools: [pay]
    ask:
      why: Money leaves.
      quorums: [{name: sre, need: 2, from: {groups: [sre]}}]
      fragile: true # there are two
`

var payTheBill = openaisim.Story{
	Name: "pay", Prompt: "pay the bill", Match: openaisim.Says("pay the bill"),
	Turn: func(c openaisim.Conversation) openaisim.Reply {
		if len(c.Results) == 0 {
			return openaisim.Reply{Calls: []openaisim.Call{
				{Name: "pay", Args: `{"what":"invoice-1"}`}, {Name: "post", Args: `{"what":"letter-1"}`}, {Name: "wipe", Args: `{"what":"ledger-1"}`},
			}}
		}
		return openaisim.Reply{Text: finalWords}
	},
}

const finalWords = "That is all."

func newScenario(t *testing.T) *scenario {
	t.Helper()
	w := &scenario{said: map[string]bool{}, happened: map[string]int{}}
	w.bubble = newBubble(t, payments, w.tools, payTheBill)
	return w
}

// tools are those of one bot. A bot that is dead does nothing any more.
func (w *scenario) tools(r *replica) ([]agentrun.Tool, error) {
	var all []agentrun.Tool
	for name, effect := range map[string]agentrun.Effect{
		"pay": agentrun.EffectNone, "post": agentrun.EffectIdempotent, "wipe": agentrun.EffectNone,
	} {
		type about struct {
			What string `json:"what"`
		}
		tool, err := tools.New(tools.Spec[about]{Name: name, Description: "Does it.", Approval: tools.Always, Effect: effect},
			func(ctx context.Context, c agentrun.Call, _ about) (string, error) {
				if !r.alive() {
					return "", errDead
				}
				w.effects.Lock()
				defer w.effects.Unlock()
				if !w.approved(ctx, c) {
					w.early = append(w.early, name)
				}
				w.happened[name+" "+c.Key]++
				return "done", nil
			})
		if err != nil {
			return nil, err
		}
		all = append(all, tool)
	}
	return all, nil
}

// approved asks the store whether people have approved a call that runs now: in the
// batch that its run resumes, or in one before it.
func (w *scenario) approved(ctx context.Context, c agentrun.Call) bool {
	ctx = context.WithoutCancel(ctx) // a process that was frozen learns when it goes on that it has lost the call
	for id := c.Run; id != ""; {
		run, err := w.store.Run(ctx, id)
		if err != nil || run.Batch == "" {
			return false
		}
		b, err := w.store.Batch(ctx, run.Batch)
		if err != nil {
			return false
		}
		if a, ok := b.Approval(c.ID); ok && a.Call.Name == c.Name && a.Status == approvals.Approved {
			return true
		}
		id = run.Parent
	}
	return false
}

// times is how often a tool took effect. What it acts on drops a key that it knows.
func (w *scenario) times(tool string, idempotent bool) (n int) {
	w.effects.Lock()
	defer w.effects.Unlock()
	for what, times := range w.happened {
		if name, _, _ := strings.Cut(what, " "); name == tool {
			if idempotent {
				times = 1
			}
			n += times
		}
	}
	return n
}

// cards are the messages of the thread that show each batch.
func (w *scenario) cards() map[approvals.BatchID][]message {
	all := map[approvals.BatchID][]message{}
	for _, m := range w.sim.thread(bob, w.root) {
		if id, _ := m.Metadata.Payload["batch"].(string); id != "" {
			all[approvals.BatchID(id)] = append(all[approvals.BatchID(id)], m)
		}
	}
	return all
}

// begins starts a bot, and has someone ask.
func (w *scenario) begins(f fault, k int) {
	w.t.Helper()
	w.start().starts()
	w.mu.Lock()
	w.wrote, w.at, w.mishap, w.outage = 0, k, f.mishap, f.outage
	w.mu.Unlock()
	w.root = w.sim.ask("pay the bill", "")
}

// lives has people do their part until they read the answer. A bot that does not
// come back is replaced.
func (w *scenario) lives(patience time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(patience / 600) {
		w.keepOneAlive()
		for id, shown := range w.cards() {
			w.decide(id, shown[0])
		}
		if w.answers() > 0 {
			return
		}
	}
	w.fails("there is no answer")
}

func (w *scenario) answers() (n int) {
	for _, m := range w.sim.thread(bob, w.root) {
		if says(finalWords)(m) {
			n++
		}
	}
	return n
}

// decide has everyone whom the policy asks, and who is not known to be heard yet, say
// what they think. What Slack was told is heard must be stored. About a call in doubt
// people find out what happened.
func (w *scenario) decide(id approvals.BatchID, card message) {
	w.t.Helper()
	for _, v := range verdicts {
		for _, a := range w.batch(id).Approvals {
			if v.tool != a.Call.Name || a.Status != approvals.Pending {
				continue
			}
			verdict, button, beside := v.verdict, "Approve", v.call
			switch {
			case a.InDoubt() && w.times(v.tool, false) > 0:
				verdict, button, beside = approvals.Happened, "It happened", ""
			case a.InDoubt() && w.frozen():
				continue // it may still happen: who finds out knows that no process is at it
			case a.InDoubt():
				verdict, button, beside = approvals.RunAgain, "Run it again", ""
			case verdict == approvals.Deny:
				button = "Deny"
			}
			key := fmt.Sprint(id, v.user, v.tool)
			opens := verdict == approvals.Deny || verdict == approvals.Happened
			if w.said[key] || !w.tells(v.user, card, beside, button, opens) {
				continue
			}
			if w.refuses && !w.stored(id, v.user, v.tool, verdict) {
				continue
			}
			w.said[key] = true
			require.True(w.t, w.stored(id, v.user, v.tool, verdict), "%s of %s about %s was acknowledged and is not stored", verdict, v.user, v.tool)
		}
	}
}

// tells presses the button beside a call and sends the form that it may open, or that
// it opens, and reports whether both were taken.
func (w *scenario) tells(user string, card message, call, text string, opens bool) bool {
	for _, b := range card.buttons(call) {
		if !strings.HasPrefix(b.text, text) {
			continue
		}
		if out := w.sim.press(user, card.TS, b); out.VisibleError != "" || out.Error != "" {
			return false
		}
		views := w.sim.views(user)
		if len(views) == 0 {
			return !opens
		}
		values := map[string]map[string]string{}
		for _, b := range views[0].Blocks {
			if b["type"] == "input" {
				values[b["block_id"].(string)] = map[string]string{b["element"].(map[string]any)["action_id"].(string): "because"}
			}
		}
		var out struct{ Closed bool }
		w.sim.do(http.MethodPost, "/sim/submit", map[string]any{"user": user, "view_id": views[0].ID, "values": values}, &out)
		return out.Closed
	}
	return false
}

func (w *scenario) batch(id approvals.BatchID) approvals.Batch {
	w.t.Helper()
	b, err := w.store.Batch(w.t.Context(), id)
	require.NoError(w.t, err)
	return b
}

func (w *scenario) stored(id approvals.BatchID, user, tool string, verdict approvals.Verdict) bool {
	for _, a := range w.batch(id).Approvals {
		for _, d := range a.Decisions {
			if a.Call.Name == tool && string(d.By.User) == user && d.Verdict == verdict {
				return true
			}
		}
	}
	return false
}

// drains waits until no work is due any more, now or later.
func (w *scenario) drains() {
	for range 600 {
		w.keepOneAlive()
		if len(w.due()) == 0 {
			return
		}
		time.Sleep(time.Second)
	}
	w.fails("work is left: " + fmt.Sprint(w.due()))
}

// toll is what a fault has cost.
type toll struct{ points, doubts, again, copies int }

// holds checks what must be true in the end, whatever has happened.
func (w *scenario) holds(f fault) (doubts, copies int) {
	t := w.t
	require.Empty(t, w.early, "ran without approval")
	require.Equal(t, 1, w.times("pay", false), "payments")
	require.Equal(t, 1, w.times("post", true), "letters: %v", w.happened)
	require.Zero(t, w.times("wipe", false), "it was denied")
	copies = w.answers() - 1

	thread, err := w.store.Thread(t.Context(), agentrun.ThreadIDOf(agentrun.Origin{
		Surface: "slack", Team: slacksim.TeamID, Channel: ops, Root: w.root,
	}))
	require.NoError(t, err)
	require.Empty(t, thread.Active)
	require.Empty(t, thread.Queue)
	require.Empty(t, w.parked())

	cards := w.cards()
	for id, shown := range cards {
		copies += len(shown) - 1
		b := w.batch(id)
		require.True(t, b.Settled())
		for _, m := range shown {
			require.Empty(t, m.buttons(""), "nothing is left to decide")
		}
		for _, a := range b.Approvals {
			said := map[approvals.UserID]bool{}
			for _, d := range a.Decisions {
				require.False(t, said[d.By.User], "%s decided twice", d.By.User)
				said[d.By.User] = true
			}
			if a.InDoubt() {
				doubts++
				require.True(t, f.doubts, "%s is in doubt", a.Call.Name)
				require.Equal(t, "pay", a.Call.Name, "what can be repeated is")
				continue
			}
			want := map[string]approvals.Status{"pay": approvals.Approved, "post": approvals.Approved, "wipe": approvals.Denied}[a.Call.Name]
			require.Equal(t, want, a.Status)
		}
		if doubts == 0 {
			require.Contains(t, shown[0].words(), "3 calls: 2 approved, 1 denied")
		}
	}
	require.Len(t, cards, 1+doubts)
	return doubts, copies
}

// Whatever happens at whichever command to Redis, of whichever part of the bot:
// what was acknowledged counts, no call runs twice or without approval, each batch
// has one card, and the request comes to its end.
func TestAFaultAtAnyCommandLosesAndDoublesNothing(t *testing.T) {
	logging.Disable() // what go-redis says of each connection that is cut
	t.Cleanup(logging.Enable)
	whole := 0
	synctest.Test(t, func(t *testing.T) {
		w := newScenario(t)
		w.begins(fault{}, 0)
		w.lives(time.Minute)
		w.drains()
		_, copies := w.holds(fault{})
		require.Zero(t, copies)
		whole = w.wrote
	})
	require.Greater(t, whole, 200)
	step, seed := 7, rand.IntN(7*len(faults))
	if *everyStep {
		step, seed = 1, 0
	}
	cost := map[string]toll{}
	for k := 1 + seed%step; k <= whole; k += step {
		for i, f := range faults {
			if !*everyStep && i != (k/step+seed)%len(faults) {
				continue
			}
			t.Run(fmt.Sprintf("%s, command %d", f.name, k), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newScenario(t)
					w.begins(f, k)
					w.lives(5 * time.Minute)
					w.drains()
					sum := cost[f.name]
					doubts, copies := w.holds(f)
					if w.struck {
						sum.points++
						sum.doubts += doubts
						sum.copies += copies
						sum.again += w.times("post", false) - 1
					}
					cost[f.name] = sum
				})
			})
		}
	}
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tab, "fault\tpoints\tlost\tdoubled\tin doubt\tidempotent calls repeated\tmessages posted twice")
	for _, name := range slices.Sorted(maps.Keys(cost)) {
		c := cost[name]
		_, _ = fmt.Fprintf(tab, "%s\t%d\t0\t0\t%d\t%d\t%d\n", name, c.points, c.doubts, c.again, c.copies)
	}
	require.NoError(t, tab.Flush())
	t.Logf("%d commands, every %d, seed %d; lost and doubled fail the test\n%s", whole, step, seed, table.String())
}
