package agentrun_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// fickle is a tool that does not say what it did, the first few times. It returns
// the keys that its executions were given, too.
func (w *world) fickle(times int) (tool *fake, keys *[]string) {
	keys = new([]string)
	tool = w.does("pay", agentrun.KindUnapproved)
	tool.spec.Sequential = true
	tool.execute = func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
		if *keys = append(*keys, c.Key); len(*keys) <= times {
			return agentrun.Result{}, &agentrun.UnsureError{Message: "The server did not answer."}
		}
		return agentrun.Result{Value: []byte(`"paid"`)}, nil
	}
	return tool, keys
}

// looksUp lets the tool say these things, one after the other, when it is asked
// whether a call happened.
func looksUp(tool *fake, says ...any) *fake {
	tool.spec.Lookup = func(context.Context, agentrun.Call) (agentrun.Looked, error) {
		next := says[0]
		says = says[1:]
		if err, ok := next.(error); ok {
			return agentrun.Looked{Happened: agentrun.HappenedYes}, err
		}
		return agentrun.Looked{Happened: next.(agentrun.Happened), Result: agentrun.Result{Value: []byte(`"found"`)}}, nil
	}
	return tool
}

// What becomes of a call whose tool did not say what it did follows from the
// effect: it is repeated once where that is harmless, looked up where that can be
// done, and otherwise people are asked.
func TestAToolThatDoesNotSayWhatItDid(t *testing.T) {
	const yes, no, unknown = agentrun.HappenedYes, agentrun.HappenedNo, agentrun.HappenedUnknown
	for name, c := range map[string]struct {
		effect agentrun.Effect
		times  int // that it does not say
		looks  []any
		ran    int
		want   string // what the model reads; empty: people are asked
	}{
		"nothing is known of it":         {agentrun.EffectNone, 1, nil, 1, ""},
		"it changes nothing":             {agentrun.EffectPure, 1, nil, 1, `a failed: "The server did not answer."`},
		"it has a key":                   {agentrun.EffectIdempotent, 1, nil, 2, `a success: "paid"`},
		"it has a key and fails again":   {agentrun.EffectIdempotent, 2, nil, 2, ""},
		"it happened":                    {agentrun.EffectLookup, 1, []any{yes}, 1, `a success: "found"`},
		"it did not happen":              {agentrun.EffectLookup, 1, []any{no}, 2, `a success: "paid"`},
		"it happened the second time":    {agentrun.EffectLookup, 2, []any{no, yes}, 2, `a success: "found"`},
		"it did not happen, twice":       {agentrun.EffectLookup, 2, []any{no, no}, 2, ""},
		"the lookup does not know":       {agentrun.EffectLookup, 1, []any{unknown}, 1, ""},
		"the lookup fails":               {agentrun.EffectLookup, 1, []any{errors.New("down")}, 1, ""},
		"a lookup that it does not have": {agentrun.EffectLookup, 1, nil, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tool, keys := w.fickle(c.times)
			if w.agent.Tools = []agentrun.Tool{tool}; c.looks != nil {
				looksUp(tool, c.looks...)
			}
			w.agent.Effects = map[string]agentrun.Effect{"pay": c.effect}
			run := w.say(calls([3]string{"a", "pay", `{"x":1}`}))
			first := run.Deferred
			w.decide(first, "a", approvals.Approve, "")
			run = w.resume(first)
			require.Len(t, *keys, c.ran)
			for _, key := range *keys {
				require.Equal(t, (*keys)[0], key, "an execution that is repeated has the same key")
			}
			if c.want != "" {
				require.Equal(t, agentrun.RunCompleted, run.Status)
				require.Contains(t, strings.Join(brief(w.history()), "\n"), c.want)
				return
			}
			require.Equal(t, agentrun.RunDeferred, run.Status)
			require.Equal(t, approvals.InDoubt, w.executionOf(first, "a").State)
			asked, _ := w.batch(run.Deferred).Approval("a")
			require.Equal(t, approvals.Doubt{
				Began: epoch, Key: (*keys)[0], Approved: first, Unsure: true, Said: approvals.Quote{Text: "The server did not answer."},
			}, asked.Doubt)
			require.Equal(t, signedBy("bob"), asked.Requirement, "what the first approval needed")

			w.decide(run.Deferred, "a", approvals.RunAgain, "")
			run = w.resume(run.Deferred)
			require.Equal(t, agentrun.RunCompleted, run.Status)
			require.Len(t, *keys, c.ran+1)
			require.Equal(t, (*keys)[0], (*keys)[c.ran])
			require.Contains(t, strings.Join(brief(w.history()), "\n"), `a success: "paid"`)
		})
	}
}

// A card about a call that people let run again, and that is in doubt again, says when that
// execution began: there people look in the tool's own system.
func TestADoubtIsAboutTheExecutionThatBeganLast(t *testing.T) {
	w := newWorld(t)
	clock := epoch
	w.now = func() time.Time { return clock }
	tool, keys := w.fickle(2)
	w.agent.Tools = []agentrun.Tool{tool}
	asked := w.say(calls([3]string{"a", "pay", `{"x":1}`})).Deferred
	first := asked
	w.decide(asked, "a", approvals.Approve, "")
	asked = w.resume(asked).Deferred
	clock = epoch.Add(time.Hour)
	w.decide(asked, "a", approvals.RunAgain, "")
	asked = w.resume(asked).Deferred
	again, _ := w.batch(asked).Approval("a")
	require.Equal(t, clock, again.Doubt.Began)
	require.Equal(t, (*keys)[0], again.Doubt.Key)
	require.Equal(t, first, again.Doubt.Approved)
}

// Where nobody could answer, nobody is asked: the model is told the truth.
func TestADoubtThatNobodyCouldAnswerIsToldToTheModel(t *testing.T) {
	w := newWorld(t)
	tool, keys := w.fickle(9)
	tool.spec.Kind = agentrun.KindFunction
	w.agent.Tools = []agentrun.Tool{tool}
	w.policy.nobody = true
	run := w.say(calls([3]string{"a", "pay", `{"x":1}`}))
	require.Equal(t, agentrun.RunCompleted, run.Status)
	require.Contains(t, w.added()[1], "The server did not answer. It is not known whether the call took effect, so it is not repeated.")
	require.Len(t, *keys, 1)

	w = newWorld(t)
	tool, _ = w.fickle(9)
	tool.spec.Kind = agentrun.KindFunction
	w.agent.Tools = []agentrun.Tool{tool}
	w.policy.nobody, w.agent.Owners = true, approvals.From{Groups: []approvals.GroupID{"S0OWN"}}
	run = w.say(calls([3]string{"a", "pay", `{"x":1}`}))
	asked, _ := w.batch(run.Deferred).Approval("a")
	require.Equal(t, []approvals.Quorum{{Name: "owners", Need: 1, From: w.agent.Owners}}, asked.Requirement.Quorums)
}

// What a lookup finds is a result like that of an execution: with its parts, and with
// what is said after the results.
func TestALookupFindsTheWholeResult(t *testing.T) {
	w := newWorld(t)
	tool, _ := w.fickle(1)
	tool.spec.Kind, tool.spec.Effect = agentrun.KindFunction, agentrun.EffectLookup
	found := agentrun.Result{
		Value: []byte(`"found"`), Content: "It is in the ledger.", Metadata: []byte(`{"entry":7}`),
		Parts: []agentrun.Part{{Type: agentrun.PartText, Text: "entry 7"}},
	}
	tool.spec.Lookup = func(context.Context, agentrun.Call) (agentrun.Looked, error) {
		return agentrun.Looked{Happened: agentrun.HappenedYes, Result: found}, nil
	}
	w.agent.Tools = []agentrun.Tool{tool}
	run := w.say(calls([3]string{"a", "pay", `{"x":1}`}), says("done"))
	require.Equal(t, agentrun.RunCompleted, run.Status)
	request := w.history()[2].(agentrun.Request)
	part := request.Parts[0].(agentrun.ToolReturn)
	got := agentrun.Result{Value: part.Content, Metadata: part.Metadata, Parts: part.Parts}
	got.Content = request.Parts[1].(agentrun.UserPrompt).Content
	require.Equal(t, found, got)
}

// A call that a dead worker had begun is looked up, and the run continues by what
// is found.
func TestACallOfADeadWorkerIsLookedUp(t *testing.T) {
	for found, want := range map[agentrun.Happened]string{
		agentrun.HappenedYes: `a success: "found"`, agentrun.HappenedNo: `a success: "paid"`, agentrun.HappenedUnknown: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			clock := epoch
			w.now = func() time.Time { return clock }
			tool, keys := w.fickle(0)
			tool.spec.Kind = agentrun.KindFunction
			w.agent.Tools = []agentrun.Tool{looksUp(tool, found)}
			tool.spec.Effect = agentrun.EffectLookup
			w.model.answers = []any{calls([3]string{"a", "pay", `{"x":1}`})}
			store := &mortal{hooked: w.store}
			pay := tool.execute
			tool.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
				store.mu.Lock()
				store.dead = true
				store.mu.Unlock()
				return pay(ctx, c)
			}
			id := w.mention("go").ID
			require.ErrorIs(t, w.runnerOn(store).Work(t.Context(), id), errKilled)
			clock = clock.Add(time.Minute)
			run := w.work(id)
			if want == "" {
				people, _ := w.pending(run)
				require.Equal(t, []string{"a"}, people)
				require.Len(t, *keys, 1)
				return
			}
			require.Len(t, *keys, map[agentrun.Happened]int{agentrun.HappenedYes: 1, agentrun.HappenedNo: 2}[found])
			require.Equal(t, agentrun.RunCompleted, run.Status)
			require.Contains(t, strings.Join(brief(w.history()), "\n"), want)
		})
	}
}

// Kill the process at every commit around a tool that does not say what it did: it
// is executed once for every approval, the card says what the tool said, and the
// run comes to its end.
func TestKilledAroundAToolThatDoesNotSayWhatItDid(t *testing.T) {
	asked := map[bool]int{}
	for k := 1; k <= 40; k++ {
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				clock := epoch
				w.now = func() time.Time { return clock }
				tool, keys := w.fickle(1)
				w.agent.Tools = []agentrun.Tool{tool}
				w.model.answers = []any{calls([3]string{"a", "pay", `{"x":1}`}), says("done")}
				runner := w.runnerOn(&mortal{hooked: w.store, death: death{k, after}})
				do := func(f func(*agentrun.Runner) error) {
					if err := f(runner); err != nil {
						clock = clock.Add(time.Hour)
						runner = w.runner()
						require.NoError(t, f(runner))
					}
				}
				id, approved := w.mention("go").ID, 0
				for run := w.run(id); ; run = w.run(id) {
					do(func(r *agentrun.Runner) error { return r.Work(t.Context(), id) })
					if run = w.run(id); run.Status == agentrun.RunCompleted {
						break
					}
					require.Equal(t, agentrun.RunDeferred, run.Status)
					a, _ := w.batch(run.Deferred).Approval("a")
					if a.InDoubt() {
						asked[a.Doubt.Unsure]++
						require.Equal(t, a.Doubt.Unsure, a.Doubt.Said.Text != "")
					}
					approved++
					w.decide(run.Deferred, "a", a.Yes(), "")
					do(func(r *agentrun.Runner) error { return r.Resume(t.Context(), run.Deferred) })
					id, _ = agentrun.ResumeRunID(run.Deferred)
				}
				require.LessOrEqual(t, len(*keys), approved, "%d %v", k, after)
				requireAnswered(t, w.history())
			})
		}
	}
	t.Logf("80 deaths: people were asked %d times because the tool had not said, %d times because the worker was dead", asked[true], asked[false])
	require.Positive(t, asked[true])
	require.Positive(t, asked[false])
}
