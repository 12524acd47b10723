package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A tool may ask any number of times. Arguments that a person changed at one
// stage are what people see at every later one, and what is executed.
func TestAnAmendmentHoldsForEveryLaterStage(t *testing.T) {
	for stages := 1; stages <= 5; stages++ {
		for amended := 1; amended <= stages; amended++ {
			t.Run(fmt.Sprintf("stage %d of %d", amended, stages), func(t *testing.T) {
				w := newWorld(t)
				asked := 1
				w.agent.Tools = []agentrun.Tool{&fake{
					spec: agentrun.Spec{Name: "staged", Kind: agentrun.KindUnapproved},
					execute: func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
						if asked++; asked <= stages {
							return agentrun.Result{}, &agentrun.ApprovalRequired{}
						}
						w.note(string(c.Args))
						return agentrun.Result{Value: json.RawMessage(`"ok"`)}, nil
					},
				}}
				want := `{"x":1}`
				run := w.say(calls([3]string{"s", "staged", want}))
				for stage := 1; stage <= stages; stage++ {
					people, _ := w.pending(run)
					require.Equal(t, []string{"s"}, people)
					require.Equal(t, w.digest(run.Deferred, "s", "staged", want), w.batch(run.Deferred).Approvals[0].Proposed)
					if stage == amended {
						want = `{"x": 2}`
						w.amend(run.Deferred, "s", want)
					}
					w.decide(run.Deferred, "s", approvals.Approve, "")
					run = w.resume(run.Deferred)
				}
				require.Equal(t, agentrun.RunCompleted, run.Status, run.Failure)
				require.Equal(t, []string{want}, w.executed())
				requireAnswered(t, w.history())
			})
		}
	}
}

func (w *world) digest(b approvals.BatchID, id, tool, args string) approvals.Digest {
	return approvals.DigestOf(b, approvals.ToolCall{ID: approvals.ToolCallID(id), Name: tool, Args: json.RawMessage(args)})
}

var errAway = errors.New("the store is away")

// A faulty store does not answer some of the time: a commit may have been
// applied all the same.
type faulty struct {
	*hooked
	mu     sync.Mutex
	n      int
	faults []int // for each access in turn: 1 fails, 2 is applied and fails
}

func (f *faulty) fault() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.n > len(f.faults) {
		return 0
	}
	return f.faults[f.n-1]
}

func (f *faulty) Commit(ctx context.Context, c agentrun.Commit) error {
	fault := f.fault()
	if fault == 1 {
		return errAway
	}
	if err := f.hooked.Commit(ctx, c); err != nil || fault == 0 {
		return err
	}
	return errAway
}

func (f *faulty) Run(ctx context.Context, id approvals.RunID) (agentrun.Run, error) {
	if f.fault() > 0 {
		return agentrun.Run{}, errAway
	}
	return f.hooked.Run(ctx, id)
}

func (f *faulty) Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error) {
	if f.fault() > 0 {
		return approvals.Batch{}, errAway
	}
	return f.hooked.Batch(ctx, id)
}

func (f *faulty) Args(ctx context.Context, id approvals.BatchID, d approvals.Digest) (json.RawMessage, error) {
	if f.fault() > 0 {
		return nil, errAway
	}
	return f.hooked.Args(ctx, id, d)
}

// Tools ask several times, in every way there is; people change arguments, sign,
// deny and write; calls run elsewhere after they were signed; the policy changes
// its mind; what a call changes changes; and the store fails. However such a life
// goes, the answers fit the calls that were waiting for them, and a call runs at
// most once, with the bytes that were signed last, on what people saw.
func TestAnswersAlwaysFitTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// rapid asks a *testing.T for its deadline, which there is none of in a bubble.
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			life{newWorld(t), rt, map[approvals.ToolCallID]string{}, &thing{}}.live()
		})
	})
}

// A life is one random request, from the mention to its end.
type life struct {
	*world
	rt     *rapid.T
	signed map[approvals.ToolCallID]string // the arguments
	thing  *thing
}

func (l life) live() {
	rt, ctx, clock := l.rt, context.Background(), epoch
	l.now = func() time.Time { return clock }
	l.stagedTools()
	l.policy.by = map[string]approvals.Ruling{"external": approvals.Ask{Requirement: signedBy("bob")}}
	l.model.answers = l.randomAnswers()
	store := &faulty{hooked: l.store}
	store.faults = rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 1, 2}), 0, 200).Draw(rt, "faults")
	runner := l.runnerOn(store)
	do := func(f func() error) {
		for range 300 { // by then no fault is left
			if f() == nil {
				return
			}
			clock = clock.Add(time.Hour)
		}
		require.NoError(rt, f())
	}
	var run agentrun.Run
	do(func() (err error) {
		run, err = runner.Mention(ctx, agentrun.Mention{Event: "e", Origin: origin, Agent: "ops", Requester: "alice", Text: "go"})
		return err
	})
	for stage := 0; ; stage++ {
		require.Less(rt, stage, 100)
		do(func() error {
			err := runner.Work(ctx, run.ID)
			if err == nil {
				run, err = l.store.Run(ctx, run.ID)
			}
			if err != nil {
				return err
			}
			if run.Status == agentrun.RunQueued || run.Status == agentrun.RunRunning {
				return errAway
			}
			return nil
		})
		require.NotContains(rt, run.Failure, "don't match")
		if run.Status != agentrun.RunDeferred {
			break
		}
		l.decideAll(run.Deferred)
		if !l.batch(run.Deferred).Settled() {
			do(func() error {
				_, err := runner.Mention(ctx, agentrun.Mention{
					Event: fmt.Sprint("e", stage), Origin: origin, Agent: "ops", Requester: "alice", Text: "more",
				})
				return err
			})
		}
		if rapid.IntRange(0, 9).Draw(rt, "refuses") == 0 {
			l.policy.by["both"] = approvals.Refuse{}
		}
		do(func() error { return runner.Resume(ctx, run.Deferred) })
		id, err := agentrun.ResumeRunID(run.Deferred)
		require.NoError(rt, err)
		run = l.run(id)
	}
	requireAnswered(rt, l.history())
}

// randomAnswers are drawn beforehand: a draw within the runner's work would
// leave its goroutines behind when it ends the case.
func (l life) randomAnswers() []any {
	var answers []any
	next := 0
	for range rapid.IntRange(1, 3).Draw(l.rt, "answers") {
		var specs [][3]string
		for range rapid.IntRange(1, 4).Draw(l.rt, "calls") {
			next++
			tool := rapid.SampledFrom([]string{"executes", "validates", "both", "later", "external", "plain", "watched", "checked"}).Draw(l.rt, "tool")
			specs = append(specs, [3]string{fmt.Sprintf("c%d", next), tool, fmt.Sprintf(`{"x": %d}`, next)})
		}
		answers = append(answers, calls(specs...))
	}
	return answers
}

// decideAll lets people decide about everything in the batch, or, now and then,
// about a part of it only.
func (l life) decideAll(id approvals.BatchID) {
	rt := l.rt
	writes := rapid.IntRange(0, 5).Draw(rt, "writes") == 0
	l.doubt = rapid.SampledFrom([]approvals.Verdict{approvals.GiveUp, approvals.Happened, approvals.RunAgain}).Draw(rt, "doubt")
	l.answerDoubts(id)
	for _, a := range l.batch(id).Approvals {
		if a.InDoubt() || writes && rapid.Bool().Draw(rt, "is left open") {
			continue
		}
		if rapid.IntRange(0, 2).Draw(rt, "amends") == 0 {
			l.amend(id, a.Call.ID, fmt.Sprintf(`{"x":%d}`, rapid.IntRange(100, 999).Draw(rt, "x")))
		}
		verdict := approvals.Approve
		if rapid.IntRange(0, 5).Draw(rt, "denies") == 0 {
			verdict = approvals.Deny
		}
		l.decide(id, a.Call.ID, verdict, "")
	}
	for _, a := range l.batch(id).Approvals {
		raw, err := l.store.Args(context.Background(), id, a.Call.Digest)
		require.NoError(rt, err)
		l.signed[a.Call.ID] = string(raw)
	}
	if rapid.IntRange(0, 2).Draw(rt, "moves on") == 0 {
		l.thing.value.Add(1)
	}
	for _, c := range l.batch(id).Calls {
		if !writes {
			l.fulfill(id, c.Call.ID, rapid.SampledFrom([]approvals.CallResult{
				approvals.ToolReturn{ReturnValue: json.RawMessage(`1`)}, approvals.ToolFailed{}, approvals.ModelRetry{Message: "again"},
			}).Draw(rt, "result"))
		}
	}
}

// stagedTools are tools that ask up to four times: while they validate, while
// they run, or both; one of them then runs elsewhere.
func (l life) stagedTools() {
	left := rapid.SliceOfN(rapid.IntRange(0, 4), 32, 32).Draw(l.rt, "asks")
	var mu sync.Mutex
	asked := map[string]int{}
	asks := func(c agentrun.Call, where string) bool {
		mu.Lock()
		defer mu.Unlock()
		asked[where+string(c.ID)]++
		return asked[where+string(c.ID)] <= left[(len(where)+len(c.ID)+int(c.ID[1]))%len(left)]
	}
	ran := map[approvals.ToolCallID]bool{}
	tool := func(name string, kind agentrun.Kind, validates, executes bool, last error) *fake {
		return &fake{
			spec: agentrun.Spec{Name: name, Kind: kind, MaxRetries: 9},
			validate: func(_ context.Context, c agentrun.Call) error {
				if validates && c.Approved && asks(c, "validate") {
					return &agentrun.ApprovalRequired{}
				}
				return nil
			},
			execute: func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
				if executes && asks(c, "execute") {
					return agentrun.Result{}, &agentrun.ApprovalRequired{}
				}
				mu.Lock()
				defer mu.Unlock()
				require.False(l.rt, ran[c.ID], "%s ran twice", c.ID)
				ran[c.ID] = true
				if c.Approved {
					require.Equal(l.rt, l.signed[c.ID], string(c.Args), "%s ran with what nobody approved", c.ID)
				}
				return agentrun.Result{Value: json.RawMessage(`"ok"`)}, last
			},
		}
	}
	previewed := func(name string, checks bool) *fake {
		f := tool(name, agentrun.KindUnapproved, false, true, nil)
		f.spec.Preview = &agentrun.Previewer{Reads: looking, Compute: l.thing.preview, Checks: checks}
		execute := f.execute
		f.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
			if c.Precondition != nil && string(c.Precondition) != fmt.Sprint(l.thing.value.Load()) {
				require.True(l.rt, checks, "%s began on what people had not seen", c.ID)
				return agentrun.Result{}, &agentrun.PreconditionFailed{}
			}
			return execute(ctx, c)
		}
		return f
	}
	l.agent.Tools = []agentrun.Tool{
		previewed("watched", false), previewed("checked", true), tool("look", agentrun.KindFunction, false, false, nil),
		tool("executes", agentrun.KindUnapproved, false, true, nil),
		tool("validates", agentrun.KindUnapproved, true, false, nil),
		tool("both", agentrun.KindFunction, true, true, nil),
		tool("later", agentrun.KindUnapproved, false, true, &agentrun.CallDeferred{}),
		tool("external", agentrun.KindExternal, false, false, nil),
		tool("plain", agentrun.KindFunction, false, false, nil),
	}
}
