package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
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
	// The pool of go-redis dials about once a second after an outage has begun, so that the
	// bot can be without Redis for a second longer.
	{"the command is not sent, and Redis is away", unsent, bubbleLease / 4, false},
	{"the reply is lost", unread, 0, false},
	{"half of the reply is lost", cut, 0, false},
	{"Redis answers with an error", denied, 0, true},
	{"Redis answers the second half with an error", broken, 0, true},
	{"the reply is lost, and Redis is away", unread, bubbleLease + time.Second, true},
	{"the process dies after the command", crash, 0, true},
	{"the process freezes for longer than its lease", freeze, 0, true},
}

// stalled strikes at calls to Slack.
var stalled = fault{"the process freezes at a call to Slack for longer than its lease", stall, 0, true}

// A scenario is a request in a bubble.
type scenario struct {
	*bubble
	*request
}

func newScenario(t *testing.T) *scenario {
	t.Helper()
	w := &scenario{}
	w.bubble = newBubble(t, payments, w.tools, payTheBill)
	w.request = newRequest(w.sim, w.store)
	w.underWay = w.frozen
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
				w.happens(name, c.Key, w.approved(ctx, c))
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

// begins starts a bot, and has someone ask.
func (w *scenario) begins(f fault, k int) {
	w.t.Helper()
	w.start().starts()
	w.mu.Lock()
	w.wrote, w.calls, w.mishap, w.outage = 0, 0, f.mishap, f.outage
	if f.mishap == stall {
		w.stall = k
	} else {
		w.at = k
	}
	w.mu.Unlock()
	w.asks("pay the bill 1")
}

// lives has people do their part until they read the answer. A bot that does not
// come back is replaced.
func (w *scenario) lives(patience time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(patience / 600) {
		w.keepOneAlive()
		w.decides()
		if w.answers() > 0 {
			return
		}
	}
	w.fails("there is no answer")
}

// drains waits until no work is due any more, now or later, and no process that was frozen
// makes some when it goes on.
func (w *scenario) drains() {
	quiet := 0
	for range 600 {
		w.keepOneAlive()
		quiet++
		if w.frozen() || len(dueWork(w.t, w.kept)) > 0 {
			quiet = 0
		}
		if quiet == 2 {
			return
		}
		time.Sleep(time.Second)
	}
	w.fails("work is left: " + fmt.Sprint(dueWork(w.t, w.kept)))
}

// Whatever happens at whichever command to Redis or call to Slack, of whichever part of the bot:
// what was acknowledged counts, no call runs twice or without approval, each batch
// has one card, and the request comes to its end.
func TestAFaultAtAnyCommandLosesAndDoublesNothing(t *testing.T) {
	logging.Disable() // what go-redis says of each connection that is cut
	t.Cleanup(logging.Enable)
	whole, calls := 0, 0
	synctest.Test(t, func(t *testing.T) {
		w := newScenario(t)
		w.begins(fault{}, 0)
		w.lives(time.Minute)
		w.drains()
		_, copies := w.holds(fault{})
		require.Zero(t, copies)
		whole, calls = w.wrote, w.calls
	})
	require.Greater(t, whole, 100, "it differs from run to run: some commands are sent together")
	require.Greater(t, calls, 10)
	step, seed := 7, rand.IntN(7*len(faults))
	if *everyStep {
		step, seed = 1, 0
	}
	cost := map[string]toll{}
	strikes := func(f fault, k int) {
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
	for k := 1 + seed%step; k <= whole; k += step {
		for i, f := range faults {
			if *everyStep || i == (k/step+seed)%len(faults) {
				strikes(f, k)
			}
		}
	}
	for k := 1 + seed%step; k <= calls; k += step {
		strikes(stalled, k)
	}
	table := tollHead
	for _, name := range slices.Sorted(maps.Keys(cost)) {
		table += cost[name].row(name, "in memory, `none`")
	}
	t.Logf("%d commands, %d calls to Slack, every %d, seed %d%s", whole, calls, step, seed, table)
}
