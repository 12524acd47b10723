package agentrun_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state/statetest"
)

// An error whose text has what the call was about: the log says of what kind it
// is and where it was, and nothing of its text.
func TestTheLogHoldsNoArguments(t *testing.T) {
	const secret = "hunter2"
	leak := fmt.Errorf("delete /srv/%s: %w", secret, &fs.PathError{Op: "unlink", Path: "/srv/" + secret, Err: fs.ErrPermission})
	fails := func(err error) func(w *world, tool *fake) {
		return func(_ *world, tool *fake) {
			tool.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) { return agentrun.Result{}, err }
		}
	}
	for name, c := range map[string]struct {
		harm func(w *world, tool *fake)
		want []string
	}{
		"a tool that fails": {fails(leak), []string{"tool failed", "*fmt.wrapError > *fs.PathError > *errors.errorString"}},
		"in several ways":   {fails(errors.Join(leak, errors.New(secret))), []string{"tool failed", "*errors.joinError > *fmt.wrapError > *fs.PathError"}},
		"in time":           {fails(fmt.Errorf("%s: %w", secret, context.DeadlineExceeded)), []string{"tool failed", "timeout: *fmt.wrapError"}},
		"a tool that panics": {func(_ *world, tool *fake) {
			tool.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) { panic(leak) }
		}, []string{"tool failed", "panicked: *fmt.wrapError", "log_test.go"}},
		"a validator that panics": {func(_ *world, tool *fake) {
			tool.validate = func(context.Context, agentrun.Call) error { panic(secret) }
		}, []string{"validation broke", "panicked: string", "log_test.go"}},
		"a predicate that fails": {func(_ *world, tool *fake) {
			tool.spec.NeedsApproval = func(context.Context, agentrun.Call) (bool, error) { return false, leak }
		}, []string{"predicate broke", "*fs.PathError"}},
		"a policy that fails": {func(w *world, _ *fake) { w.policy.err = leak }, []string{"policy failed", "*fs.PathError"}},
		"a model that fails":  {func(w *world, _ *fake) { w.model.answers = []any{leak} }, []string{"model failed", "*fs.PathError"}},
		"a call that is odd": {func(w *world, _ *fake) {
			w.model.answers = []any{calls([3]string{"a", "t", `{"x":"` + secret + `",}`})}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			log := &statetest.Log{}
			tool := w.does("t", agentrun.KindFunction)
			w.agent.Tools = []agentrun.Tool{tool}
			w.model.answers = []any{calls([3]string{"a", "t", `{"x":1,"path":"/srv/` + secret + `"}`})}
			c.harm(w, tool)
			runner := agentrun.NewRunner(agentrun.Config{
				Store: w.store, Policy: w.policy, Now: w.now, Log: slog.New(slog.NewTextHandler(log, nil)),
				Agents: func(string) (agentrun.Agent, bool) { return w.agent, true },
			})
			id := w.mention("go").ID
			require.NoError(t, runner.Work(t.Context(), id))
			require.NotContains(t, log.String(), secret)
			for _, want := range c.want {
				require.Contains(t, log.String(), want)
			}
			if batch := w.run(id).Deferred; batch != "" { // and on the way back
				require.NoError(t, w.store.move(batch, nil, signatures(w.batch(batch))...))
				w.policy.err = leak
				require.NoError(t, runner.Resume(t.Context(), batch))
				err := runner.Work(t.Context(), w.thread().Active)
				require.ErrorContains(t, err, "*fs.PathError")
				require.NotContains(t, err.Error()+log.String(), secret)
			}
		})
	}
}

// signatures are all that the first call of a batch needs.
func signatures(b approvals.Batch) []approvals.Command {
	var all []approvals.Command
	call := b.Approvals[0].Call
	for _, q := range b.Approvals[0].Requirement.Quorums {
		all = append(all, approvals.Decide{Decision: approvals.Decision{
			Call: call.ID, By: approvals.Principal{User: q.From.Users[0]}, Verdict: b.Approvals[0].Yes(), Digest: call.Digest, At: epoch,
		}})
	}
	return all
}
