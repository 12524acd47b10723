package agentrun_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A property test draws 40 cases, each of which is a world of its own, and another number
// with -rapid.checks, as make soak does.
func init() {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
}

// A random conversation: any mixture of tools, any answers, processes that die
// at any commit. These always hold:
//
//   - every call has exactly one result, in emission order, before anything else
//     is said;
//   - a call was executed only if the policy permits it and its tool asks for
//     nobody, or after a person approved it;
//   - no execution happens twice, unless the tool is pure or idempotent: then it is
//     given the same key;
//   - however many processes die, a call of another tool is executed at most once
//     for each time that people approved it with the whole quorum, or that the
//     policy permitted it;
//   - what a person writes while calls are pending ends them, and is read once;
//   - the policy is told the same counts about a call, whichever process asks;
//   - no call acts on what is not as people saw it.
func TestAnyConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// rapid asks a *testing.T for its deadline, which there is none of in a bubble.
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) { anyConversation(t, rt) })
	})
}

func anyConversation(t *testing.T, rt *rapid.T) {
	t.Helper()
	w := newWorld(t)
	clock := epoch
	w.now = func() time.Time { return clock }
	executed := map[string]int{}
	calls, quorums := map[approvals.ToolCallID]int{}, map[approvals.ToolCallID]int{}
	keys := map[string][]string{}
	effects := map[string]agentrun.Effect{}
	for _, tool := range []string{"plain", "gated", "alone"} {
		effects[tool] = rapid.SampledFrom(agentrun.Effects).Draw(rt, "effect of "+tool)
	}
	w.agent.Effects = effects
	repeats := func(tool string) bool {
		return effects[tool] == agentrun.EffectPure || effects[tool] == agentrun.EffectIdempotent
	}
	approved := map[approvals.ToolCallID]bool{}
	refused := map[string]bool{}
	world := &thing{}
	w.agent.Tools = w.randomTools(rt, world, func(c agentrun.Call) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if calls[c.ID]++; repeats(c.Name) {
			at := fmt.Sprintf("%s %s", c.Run, c.ID)
			keys[at] = append(keys[at], c.Key)
		} else {
			executed[fmt.Sprintf("%s %s", c.Run, c.ID)]++
		}
		require.False(rt, refused[c.Name], "the policy refuses %s", c.Name)
		if gates[c.Name] {
			require.True(rt, c.Approved && approved[c.ID], "%s without approval", c.ID)
		}
	})
	w.policy.by = map[string]approvals.Ruling{"asked": approvals.Ask{Requirement: signedBy("bob")}}
	if rapid.Bool().Draw(rt, "refuses") {
		refused["plain"], w.policy.by["plain"] = true, approvals.Refuse{}
	}
	counts := map[string][]approvals.SoFar{}
	w.policy.heard = func(p approvals.Proposal) {
		at := fmt.Sprintf("%s %s %d", p.Call.ID, p.Gate, len(w.store.opened()))
		// A call that people are asked about once more is ruled on twice in a step
		// with this gate: before it would run, and with the results of the step.
		most := 1
		if p.Gate == approvals.GateRaised {
			most = 2
		}
		if len(counts[at]) == most {
			require.Contains(rt, counts[at], p.SoFar, at)
		} else if len(counts[at]) == 0 || !reflect.DeepEqual(counts[at][0], p.SoFar) {
			counts[at] = append(counts[at], p.SoFar)
		}
	}
	next, written := 0, []string(nil)
	w.model.reply = func(agentrun.ModelRequest) agentrun.Response {
		return randomResponse(rt, &next)
	}
	store := &mortal{hooked: w.store}
	runner := w.runnerOn(store)
	if rapid.IntRange(0, 2).Draw(rt, "dies") == 0 {
		store.death = death{rapid.IntRange(1, 60).Draw(rt, "commit"), rapid.Bool().Draw(rt, "after")}
	}
	deaths := rapid.IntRange(0, 4).Draw(rt, "more deaths")
	var do func(f func(r *agentrun.Runner) error)
	do = func(f func(r *agentrun.Runner) error) {
		if err := f(runner); err != nil || store.dead {
			require.True(rt, store.dead, "%v", err)
			clock = clock.Add(time.Hour)
			if runner = w.runner(); deaths > 0 {
				deaths--
				store = &mortal{hooked: w.store, death: death{rapid.IntRange(1, 30).Draw(rt, "commit"), rapid.Bool().Draw(rt, "after")}}
				runner = w.runnerOn(store)
			} else {
				store = &mortal{hooked: w.store}
			}
			do(f)
		}
	}
	ctx := context.Background()
	var run agentrun.Run
	do(func(r *agentrun.Runner) (err error) {
		run, err = r.Mention(ctx, agentrun.Mention{Event: "e", Origin: origin, Agent: "ops", Requester: "alice", Text: "go"})
		return err
	})
	for stage := 0; ; stage++ {
		require.Less(rt, stage, 200)
		do(func(r *agentrun.Runner) error { return r.Work(ctx, run.ID) })
		run = w.run(run.ID)
		if run.Status != agentrun.RunDeferred {
			break
		}
		writes := rapid.IntRange(0, 4).Draw(rt, "writes") == 0
		w.doubt = rapid.SampledFrom([]approvals.Verdict{approvals.GiveUp, approvals.Happened, approvals.RunAgain}).Draw(rt, "doubt")
		w.answerDoubts(run.Deferred)
		for _, a := range w.batch(run.Deferred).Approvals {
			if a.InDoubt() {
				if w.doubt == approvals.RunAgain {
					quorums[a.Call.ID]++
					approved[a.Call.ID] = true
				}
				continue
			}
			if writes && rapid.Bool().Draw(rt, "is not decided") {
				continue
			}
			verdict := rapid.SampledFrom([]approvals.Verdict{approvals.Approve, approvals.Deny}).Draw(rt, "verdict")
			approved[a.Call.ID] = verdict == approvals.Approve
			if rapid.IntRange(0, 4).Draw(rt, "amended") == 0 {
				w.amend(run.Deferred, a.Call.ID, `{"x": 77}`)
			}
			w.decide(run.Deferred, a.Call.ID, verdict, "")
			if verdict == approvals.Approve {
				quorums[a.Call.ID]++
			}
		}
		if rapid.IntRange(0, 2).Draw(rt, "moves on") == 0 {
			world.value.Add(1)
		}
		for _, c := range w.batch(run.Deferred).Calls {
			if writes {
				continue
			}
			w.fulfill(run.Deferred, c.Call.ID, rapid.SampledFrom([]approvals.CallResult{
				approvals.ToolReturn{ReturnValue: json.RawMessage(`1`), Content: json.RawMessage(`"note"`)},
				approvals.ToolFailed{Message: "down"},
				approvals.ModelRetry{Message: "again"},
				approvals.ToolDenied{},
			}).Draw(rt, "result"))
		}
		if writes && !w.batch(run.Deferred).Settled() {
			written = append(written, fmt.Sprintf("word %d", stage))
			do(func(r *agentrun.Runner) error {
				_, err := r.Mention(ctx, agentrun.Mention{
					Event: written[len(written)-1], Origin: origin, Agent: "ops", Requester: "alice", Text: written[len(written)-1],
				})
				return err
			})
		}
		require.True(rt, w.batch(run.Deferred).Settled())
		do(func(r *agentrun.Runner) error { return r.Resume(ctx, run.Deferred) })
		id, err := agentrun.ResumeRunID(run.Deferred)
		require.NoError(rt, err)
		run = w.run(id)
	}
	require.Empty(rt, w.thread().Active)
	require.Empty(rt, w.thread().Queue)
	if all := "\n" + strings.Join(brief(w.history()), "\n") + "\n"; run.Status == agentrun.RunCompleted {
		for _, text := range written {
			said := strings.Count(all, "user: "+text+"\n") + strings.Count(all, "\n\n"+text+"\n")
			require.Equal(rt, 1, said, text)
		}
	}
	requireAnswered(rt, w.history())
	for _, r := range w.model.requests {
		requireInOrder(rt, r.Messages)
	}
	for call, n := range executed {
		require.Equal(rt, 1, n, call)
	}
	for _, of := range w.store.opened() {
		for _, a := range w.batch(of).Approvals {
			if n := calls[a.Call.ID]; !repeats(a.Call.Name) {
				// What was not gated had been permitted once.
				require.LessOrEqual(rt, n, quorums[a.Call.ID]+1, "%s", a.Call.ID)
				if gates[a.Call.Name] {
					require.LessOrEqual(rt, n, quorums[a.Call.ID], "%s", a.Call.ID)
				}
			}
		}
	}
	for call, all := range keys {
		require.Len(rt, slices.Compact(slices.Clone(all)), 1, "%s: %v", call, all)
	}
}

// gates are the tools whose calls run only when people have approved them.
var gates = map[string]bool{"gated": true, "gatedalone": true, "predicate": true, "asked": true}

// randomTools has a tool of every kind; some fail in some way, some of the time.
func (w *world) randomTools(rt *rapid.T, world *thing, ran func(agentrun.Call)) []agentrun.Tool {
	modes := rapid.SliceOfN(rapid.IntRange(0, 9), 64, 64).Draw(rt, "modes")
	make1 := func(s agentrun.Spec) *fake {
		s.MaxRetries = 3
		return &fake{spec: s, validate: needsX, execute: func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
			if c.Precondition != nil && string(c.Precondition) != fmt.Sprint(world.value.Load()) {
				require.True(rt, s.Preview.Checks, "%s began on what people had not seen", c.ID)
				return agentrun.Result{}, &agentrun.PreconditionFailed{}
			}
			ran(c)
			switch n, _ := x(c.Args); modes[n%len(modes)] {
			case 0:
				return agentrun.Result{}, &agentrun.RetryError{Message: "again"}
			case 1:
				return agentrun.Result{}, &agentrun.FailedError{Message: "no"}
			case 2:
				panic("no")
			case 3:
				return agentrun.Result{Value: json.RawMessage(`1`), Content: "and look"}, nil
			case 4:
				if !c.Approved {
					return agentrun.Result{}, &agentrun.ApprovalRequired{}
				}
			case 5:
				return agentrun.Result{}, &agentrun.CallDeferred{}
			}
			return agentrun.Result{Value: json.RawMessage(`"ok"`)}, nil
		}}
	}
	previewer := func(checks bool) *agentrun.Previewer {
		return &agentrun.Previewer{Compute: world.preview, Checks: checks, Reads: func(c agentrun.Call) (approvals.ToolCall, error) {
			return approvals.ToolCall{Name: "plain", Args: c.Args}, nil
		}}
	}
	return []agentrun.Tool{
		make1(agentrun.Spec{Name: "plain"}),
		make1(agentrun.Spec{Name: "asked"}),
		make1(agentrun.Spec{Name: "alone", Sequential: true}),
		make1(agentrun.Spec{Name: "gated", Kind: agentrun.KindUnapproved, Preview: previewer(false)}),
		make1(agentrun.Spec{Name: "gatedalone", Kind: agentrun.KindUnapproved, Sequential: true, Preview: previewer(true)}),
		make1(agentrun.Spec{Name: "external", Kind: agentrun.KindExternal}),
		make1(agentrun.Spec{Name: "predicate", NeedsApproval: func(context.Context, agentrun.Call) (bool, error) { return true, nil }}),
	}
}

func randomResponse(rt *rapid.T, next *int) agentrun.Response {
	names := []string{"plain", "asked", "alone", "gated", "gatedalone", "external", "predicate", "gone"}
	var specs [][3]string
	for range rapid.IntRange(0, 6).Draw(rt, "calls") {
		*next++
		id := fmt.Sprintf("c%d", *next)
		if rapid.IntRange(0, 40).Draw(rt, "id") == 0 {
			id = "c1" // used before
		}
		args := fmt.Sprintf(`{"x": %d}`, *next)
		if rapid.IntRange(0, 9).Draw(rt, "args") == 0 {
			args = rapid.SampledFrom([]string{"", "{", `{"x":"?"}`, `{"x":1,"x":2}`, "\xff"}).Draw(rt, "bad")
		}
		specs = append(specs, [3]string{id, rapid.SampledFrom(names).Draw(rt, "tool"), args})
	}
	if len(specs) == 0 {
		return says("done")
	}
	return calls(specs...)
}

// requireInOrder checks what a model was given: requests and responses in turn,
// and after every response with calls all of their results, in emission order,
// before anything else.
func requireInOrder(t require.TestingT, messages []agentrun.Message) {
	var want []approvals.ToolCallID
	for i, m := range messages {
		switch m := m.(type) {
		case agentrun.Response:
			require.Equal(t, 1, i%2)
			want = nil
			for _, p := range m.Parts {
				if c, ok := p.(agentrun.CallPart); ok {
					want = append(want, c.ID)
				}
			}
		case agentrun.Request:
			require.Equal(t, 0, i%2)
			var got []approvals.ToolCallID
			for j, p := range m.Parts {
				switch p := p.(type) {
				case agentrun.ToolReturn:
					got = append(got, p.CallID)
				case agentrun.RetryPrompt:
					if p.ToolName != "" {
						got = append(got, p.CallID)
					}
				case agentrun.UserPrompt:
					require.GreaterOrEqual(t, j, len(want))
				}
			}
			require.Equal(t, want, got)
		}
	}
}
