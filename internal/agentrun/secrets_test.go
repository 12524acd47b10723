package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// People see the values of write-only arguments as a length only. No quotation in
// a batch holds one either: of the tool, of the model or of whoever asked.
func TestNoQuotationHasTheValueOfAWriteOnlyArgument(t *testing.T) {
	const secret, args = `hun"ter2`, `{"x":1,"token":"hun\"ter2","more":{"pins":[314159,"ab"]}}`
	leak := "token " + secret + ", pin 314159 and " + strings.Repeat("x", approvals.MaxExecutionWords-40) + secret
	requireSealed := func(t *testing.T, w *world, id approvals.BatchID) {
		t.Helper()
		b := w.batch(id)
		raw, err := json.Marshal(b)
		require.NoError(t, err)
		for _, a := range b.Approvals {
			if d := a.Preview.Content.Digest; !d.IsZero() {
				content, err := w.store.Args(t.Context(), id, d)
				require.NoError(t, err)
				raw = append(raw, content...)
			}
		}
		for _, s := range []string{`hun"t`, `hun\"t`, `hun\\\"t`, "ter2", "314159"} {
			require.NotContains(t, string(raw), s)
		}
	}
	for name, ends := range map[string]func(context.Context, agentrun.Call) (agentrun.Result, error){
		"its result": func(context.Context, agentrun.Call) (agentrun.Result, error) {
			v, err := json.Marshal(leak)
			return agentrun.Result{Value: v}, err
		},
		"its result, as JSON": func(context.Context, agentrun.Call) (agentrun.Result, error) {
			v, err := json.Marshal(map[string]string{"said": leak})
			return agentrun.Result{Value: v}, err
		},
		"its failure": func(context.Context, agentrun.Call) (agentrun.Result, error) {
			return agentrun.Result{}, &agentrun.FailedError{Message: leak}
		},
		"why it asks again": func(context.Context, agentrun.Call) (agentrun.Result, error) {
			return agentrun.Result{}, &agentrun.ApprovalRequired{Reason: leak}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			set := w.does("gated", agentrun.KindUnapproved)
			set.spec.WriteOnly = []string{"/token", "/more"}
			set.spec.Preview = &agentrun.Previewer{Reads: looking, Compute: func(context.Context, agentrun.Call) (agentrun.Preview, error) {
				return agentrun.Preview{Facts: []approvals.Fact{{Label: "Now", Value: leak}}, Content: leak}, nil
			}}
			set.execute = ends
			w.agent.Tools = []agentrun.Tool{set, w.does("look", agentrun.KindFunction)}
			answer := calls([3]string{"g", "gated", args})
			answer.Parts = append([]agentrun.ResponsePart{agentrun.Text{Content: "I set " + leak}}, answer.Parts...)
			run := w.say(answer)
			requireSealed(t, w, run.Deferred)
			require.Contains(t, w.previewOf(run.Deferred).Facts[0].Value, "token (8 characters), pin (6 characters)")
			require.Contains(t, w.batch(run.Deferred).Said.Text, "I set token (8 characters)")
			next := w.approveAll(run, w.store)
			requireSealed(t, w, run.Deferred)
			if next.Deferred != "" {
				requireSealed(t, w, next.Deferred)
				require.Contains(t, w.batch(next.Deferred).Approvals[0].GateReason.Text, "token (8 characters)")
				return
			}
			e := w.executionOf(run.Deferred, "g")
			require.Contains(t, e.Words+e.Excerpt, "token (8 characters), pin (6 characters)")
		})
	}
	t.Run("why it does not run", func(t *testing.T) {
		w := newWorld(t)
		set := w.does("gated", agentrun.KindUnapproved)
		set.spec.WriteOnly, set.spec.MaxRetries = []string{"/token", "/more"}, -1
		w.agent.Tools = []agentrun.Tool{set}
		run := w.say(calls([3]string{"g", "gated", args}))
		set.validate = func(context.Context, agentrun.Call) error { return errors.New(leak) }
		w.approveAll(run, w.store)
		requireSealed(t, w, run.Deferred)
		require.Equal(t, approvals.NotRun, w.executionOf(run.Deferred, "g").State)
	})
	t.Run("what was asked", func(t *testing.T) {
		w := newWorld(t)
		set := w.does("gated", agentrun.KindUnapproved)
		set.spec.WriteOnly = []string{"/token"}
		w.agent.Tools = []agentrun.Tool{set}
		w.model.answers = []any{calls([3]string{"g", "gated", args})}
		run := w.work(w.mention(fmt.Sprintf("set it to %s please", secret)).ID)
		require.Equal(t, "set it to (8 characters) please", w.batch(run.Deferred).Prompt.Text)
	})
}
