package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state/statetest"
)

// told are the lines about calls in a log, as "message tool call outcome took".
func told(t *testing.T, log *statetest.Log) []string {
	t.Helper()
	var lines []string
	for raw := range strings.Lines(log.String()) {
		var l struct {
			Level, Msg, Run, Call, Tool, Outcome, By, What string
			Took                                           *time.Duration
		}
		require.NoError(t, json.Unmarshal([]byte(raw), &l))
		if !strings.HasPrefix(l.Msg, "call ") {
			continue
		}
		require.NotEmpty(t, l.Run)
		require.Equal(t, l.What != "", l.Level == "WARN", "operators look at doubts, at nothing else")
		line := strings.TrimRight(fmt.Sprintf("%s: %s %s %s%s%s", l.Msg, l.Tool, l.Call, l.Outcome, l.By, l.What), " ")
		if l.Took != nil {
			line += " " + l.Took.String()
		}
		lines = append(lines, line)
	}
	return lines
}

// Every execution has a beginning and an end in the log, whatever becomes of it,
// and a call that people or the policy let through and that was not run says so.
func TestTheLogHasTheEndOfEveryExecution(t *testing.T) {
	const second = time.Second
	ends := func(err error) func(context.Context, agentrun.Call) (agentrun.Result, error) {
		return func(context.Context, agentrun.Call) (agentrun.Result, error) {
			time.Sleep(second) // of the bubble's clock
			return agentrun.Result{}, err
		}
	}
	const began, asked = "call started: t a", "call in doubt: t a people are asked"
	for name, c := range map[string]struct {
		harm func(w *world, tool *fake)
		want []string
	}{
		"it works":          {nil, []string{began, "call finished: t a success 1s"}},
		"it fails":          {func(_ *world, f *fake) { f.execute = ends(errors.New("hunter2")) }, []string{began, "call finished: t a failed 1s"}},
		"it says why":       {func(_ *world, f *fake) { f.execute = ends(&agentrun.FailedError{}) }, []string{began, "call finished: t a failed 1s"}},
		"it is not sure":    {func(_ *world, f *fake) { f.execute = ends(&agentrun.UnsureError{}) }, []string{began, "call finished: t a unsure 1s", asked}},
		"it wants another":  {func(_ *world, f *fake) { f.execute = ends(&agentrun.RetryError{}) }, []string{began, "call finished: t a retry 1s"}},
		"it asks":           {func(_ *world, f *fake) { f.execute = ends(&agentrun.ApprovalRequired{}) }, []string{began, "call finished: t a approval_required 1s"}},
		"it goes elsewhere": {func(_ *world, f *fake) { f.execute = ends(&agentrun.CallDeferred{}) }, []string{began, "call finished: t a deferred 1s"}},
		"it panics": {func(_ *world, f *fake) {
			f.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) { panic("hunter2") }
		}, []string{began, "call finished: t a panicked 0s", asked}},
		"it is too slow": {func(_ *world, f *fake) {
			f.spec.Timeout = second
			f.execute = func(ctx context.Context, _ agentrun.Call) (agentrun.Result, error) {
				<-ctx.Done()
				return agentrun.Result{}, ctx.Err()
			}
		}, []string{began, "call finished: t a timeout 1s", asked}},
		"it does not come back": {func(_ *world, f *fake) {
			f.spec.Timeout = second
			f.execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
				time.Sleep(time.Hour)
				return agentrun.Result{}, nil
			}
		}, []string{began, "call finished: t a timeout 4s", asked}},
		"the store does not keep what it did": {func(w *world, _ *fake) {
			w.store.before = func(_ int, c agentrun.Commit) error {
				if len(c.Entries) > 0 && c.Entries[0].State == agentrun.EntryFinished {
					return errAway
				}
				return nil
			}
		}, []string{began, "call finished: t a success 1s"}},
		"the worker is stopped": {func(w *world, f *fake) {
			f.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
				time.Sleep(second + second/2) // not while the run is drawn
				run, err := w.store.Run(ctx, c.Run)
				run.Owner = "another" // it has the run now
				if err := errors.Join(err, w.store.Commit(ctx, agentrun.Commit{Request: "taken", Runs: []agentrun.Run{run}})); err != nil {
					return agentrun.Result{}, err
				}
				<-ctx.Done()
				return agentrun.Result{}, ctx.Err()
			}
		}, []string{began, "call finished: t a unknown 8.5s"}},
		"the policy refuses it": {func(w *world, _ *fake) {
			w.policy.by = map[string]approvals.Ruling{"t": approvals.Refuse{}}
		}, []string{"call not run: t a policy"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.now = time.Now
				tool := w.does("t", agentrun.KindFunction)
				tool.spec.MaxRetries = 3
				tool.execute = ends(nil)
				w.agent.Tools = []agentrun.Tool{tool}
				w.model.answers = []any{calls([3]string{"a", "t", `{"x":1,"path":"hunter2"}`})}
				if c.harm != nil {
					c.harm(w, tool)
				}
				log := &statetest.Log{}
				_ = w.logged(log).Work(t.Context(), w.mention("go").ID)
				require.Equal(t, c.want, told(t, log))
				require.NotContains(t, log.String(), "hunter2")
				time.Sleep(2 * time.Hour) // until every tool has come back
			})
		})
	}
}

// An approved call says in the log that it ran, or why it did not.
func TestTheLogSaysWhatBecameOfASignedCall(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		want   []string
	}{
		"it runs": {func(*world) {}, []string{"call started: gated g", "call finished: gated g success 0s"}},
		"the policy refuses it": {func(w *world) {
			w.policy.by = map[string]approvals.Ruling{"gated": approvals.Refuse{}}
		}, []string{"call not run: gated g policy"}},
		"the tool refuses it": {func(w *world) {
			w.agent.Tools[0].(*fake).validate = func(context.Context, agentrun.Call) error { return errors.New("hunter2") }
		}, []string{"call not run: gated g tool"}},
		"the tool is gone": {func(w *world) { w.agent.Tools = nil }, []string{"call not run:  g tool"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent.Tools = w.agent.Tools[:1]
			run := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
			w.decide(run.Deferred, "g", approvals.Approve, "")
			require.NoError(t, w.runner().Resume(t.Context(), run.Deferred))
			c.change(w)
			log := &statetest.Log{}
			require.NoError(t, w.logged(log).Work(t.Context(), w.thread().Active))
			require.Equal(t, c.want, told(t, log))
			require.NotContains(t, log.String(), "hunter2")
		})
	}
}

// logged is a runner that writes this log.
func (w *world) logged(log *statetest.Log) *agentrun.Runner {
	return agentrun.NewRunner(agentrun.Config{
		Store: w.store, Policy: w.policy, Now: w.now, Log: slog.New(slog.NewJSONHandler(log, nil)),
		Agents: func(string) (agentrun.Agent, bool) { return w.agent, true },
	})
}
