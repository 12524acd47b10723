package agentrun_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// beside is a response with calls, and with text and thoughts around them.
func beside(before, after string, specs ...[3]string) agentrun.Response {
	r := calls(specs...)
	r.Parts = slices.Concat(
		[]agentrun.ResponsePart{agentrun.Thinking{Content: "I had better hide this."}, agentrun.Text{Content: before}},
		r.Parts, []agentrun.ResponsePart{agentrun.Text{Content: after}})
	return r
}

func TestTheBatchQuotesWhatTheModelAndTheRequesterWrote(t *testing.T) {
	w := newWorld(t)
	run := w.say(beside("The report is old. ", strings.Repeat("ö", 600), [3]string{"g", "gated", `{"x":1}`}))
	b := w.batch(run.Deferred)
	require.Equal(t, approvals.QuoteOf("The report is old. "+strings.Repeat("ö", 600)), b.Said)
	require.Equal(t, 119, b.Said.Left)
	require.Equal(t, approvals.Quote{Text: "go"}, b.Prompt)
}

// What the requester wrote last counts, once the model has read it.
func TestTheBatchQuotesTheNewestMessageThatTheModelHadRead(t *testing.T) {
	w := newWorld(t)
	asked := 0
	w.agent.Tools = append(w.agent.Tools, &fake{
		spec: agentrun.Spec{Name: "staged", Kind: agentrun.KindUnapproved},
		execute: func(context.Context, agentrun.Call) (agentrun.Result, error) {
			if asked++; asked == 1 {
				return agentrun.Result{}, &agentrun.ApprovalRequired{}
			}
			return agentrun.Result{}, nil
		},
	})
	first := w.say(
		beside("first", "", [3]string{"s", "staged", `{"x":1}`}, [3]string{"g", "gated", `{"x":1}`}),
		beside("second", "", [3]string{"h", "gated", `{"x":2}`}),
	)
	w.decide(first.Deferred, "s", approvals.Approve, "")
	w.mention("do the other one")
	again := w.resume(first.Deferred) // its tool asks once more before the model reads the message
	b := w.batch(again.Deferred)
	require.Equal(t, []approvals.Quote{{Text: "first"}, {Text: "go"}}, []approvals.Quote{b.Said, b.Prompt})

	w.decide(again.Deferred, "s", approvals.Approve, "")
	b = w.batch(w.resume(again.Deferred).Deferred)
	require.Equal(t, []approvals.Quote{{Text: "second"}, {Text: "do the other one"}}, []approvals.Quote{b.Said, b.Prompt})
}

func TestAToolSaysWhyItAsks(t *testing.T) {
	asks := func(c agentrun.Call) error {
		if c.Approved {
			return nil
		}
		return &agentrun.ApprovalRequired{Reason: " It is over the limit. ", Metadata: json.RawMessage(`{"m":1}`)}
	}
	for name, kind := range map[string]agentrun.Kind{
		"declared": agentrun.KindUnapproved, "validates": agentrun.KindFunction, "executes": agentrun.KindFunction,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tool := w.does("t", kind)
			run := tool.execute
			if name == "executes" {
				tool.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
					if err := asks(c); err != nil {
						return agentrun.Result{}, err
					}
					return run(ctx, c)
				}
			} else {
				tool.validate = func(_ context.Context, c agentrun.Call) error { return asks(c) }
			}
			w.agent.Tools = []agentrun.Tool{tool}
			deferred := w.say(calls([3]string{"a", "t", `{"x":1}`}))
			require.Equal(t, approvals.Quote{Text: "It is over the limit."}, w.batch(deferred.Deferred).Approvals[0].GateReason)

			w.amend(deferred.Deferred, "a", `{"x":2}`)
			require.Zero(t, w.batch(deferred.Deferred).Approvals[0].GateReason, "the tool said it of other arguments")
			w.decide(deferred.Deferred, "a", approvals.Approve, "")
			require.Equal(t, agentrun.RunCompleted, w.resume(deferred.Deferred).Status)
			require.Equal(t, []string{"t:2"}, w.executed())
		})
	}
}

// The reason is in the journal, so that a worker who takes over has it.
func TestAReasonSurvivesTheWorker(t *testing.T) {
	w := newWorld(t)
	store := &mortal{hooked: w.store}
	w.agent.Tools = []agentrun.Tool{&fake{
		spec: agentrun.Spec{Name: "t"},
		execute: func(context.Context, agentrun.Call) (agentrun.Result, error) {
			store.mu.Lock()
			defer store.mu.Unlock()
			store.death = death{store.n + 2, false} // its outcome is stored, and the batch is not
			return agentrun.Result{}, &agentrun.ApprovalRequired{Reason: "because"}
		},
	}}
	clock := epoch
	w.now = func() time.Time { return clock }
	w.model.answers = []any{calls([3]string{"a", "t", `{"x":1}`})}
	id := w.mention("go").ID
	require.ErrorIs(t, w.runnerOn(store).Work(t.Context(), id), errKilled)
	clock = clock.Add(time.Hour)
	require.Equal(t, approvals.Quote{Text: "because"}, w.batch(w.work(id).Deferred).Approvals[0].GateReason)
}
