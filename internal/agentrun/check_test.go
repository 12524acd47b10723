package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// check asks whether alice may give her call of the tool these arguments.
func (w *world) check(tool, args string) error {
	w.t.Helper()
	return w.catalog().CheckCall(w.t.Context(), approvals.Batch{ID: "batch-17-b", Run: "run-17-r", Agent: "ops", Requester: "alice"},
		approvals.ToolCall{ID: "g", Name: tool, Args: json.RawMessage(args)})
}

// A person who changes the arguments of a call reads the errors of its tool.
func TestCheckCall(t *testing.T) {
	schema := errors.Join(&agentrun.ArgumentError{Pointer: "/n", Message: "got string, want integer"},
		&agentrun.ArgumentError{Pointer: "/auth/key", Message: "'hunter2' does not match pattern"},
		&agentrun.ArgumentError{Pointer: "/auth", Message: agentrun.ArgumentMissing})
	for name, c := range map[string]struct {
		says error
		want []agentrun.ArgumentError
	}{
		"nothing":           {nil, nil},
		"asks for approval": {&agentrun.ApprovalRequired{}, nil},
		"defers":            {fmt.Errorf("x: %w", &agentrun.CallDeferred{}), nil},
		"plain words":       {errors.New("that host is gone"), []agentrun.ArgumentError{{Message: "that host is gone"}}},
		"asks for a retry":  {&agentrun.RetryError{Message: "again"}, []agentrun.ArgumentError{{Message: "again"}}},
		"fails in words":    {&agentrun.FailedError{Message: "locked"}, []agentrun.ArgumentError{{Message: "locked"}}},
		"schema": {fmt.Errorf("the arguments do not fit: %w", schema), []agentrun.ArgumentError{
			{Pointer: "/n", Message: "got string, want integer"},
			{Pointer: "/auth/key", Message: "it is not what the tool accepts"},
			{Pointer: "/auth", Message: "it is missing"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tool := w.does("t", agentrun.KindUnapproved)
			tool.spec.WriteOnly = []string{"/auth"}
			tool.validate = func(_ context.Context, got agentrun.Call) error {
				require.Equal(t, agentrun.Call{
					ToolCall: approvals.ToolCall{ID: "g", Name: "t", Args: json.RawMessage(`{"n": 1}`)},
					Run:      "run-17-r", Agent: "ops", Requester: "alice",
				}, got)
				return c.says
			}
			w.agent.Tools = []agentrun.Tool{tool}
			requireWrong(t, w.check("t", `{"n": 1}`), c.want...)
			require.Empty(t, w.executed())
		})
	}
}

func requireWrong(t *testing.T, err error, want ...agentrun.ArgumentError) {
	t.Helper()
	if len(want) == 0 {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, approvals.ErrInvalid)
	var got []agentrun.ArgumentError
	if one, ok := errors.AsType[*agentrun.ArgumentError](err); ok && len(want) == 1 {
		got = append(got, *one)
	} else {
		many, ok := err.(interface{ Unwrap() []error })
		require.True(t, ok, "%T", err)
		for _, e := range many.Unwrap() {
			one, ok := errors.AsType[*agentrun.ArgumentError](e)
			require.True(t, ok, "%T", e)
			got = append(got, *one)
		}
	}
	require.Equal(t, want, got)
}

// What cannot be checked is refused, and the tool's own words do not come out.
func TestCheckCallFailsClosed(t *testing.T) {
	w := newWorld(t)
	tool := w.does("t", agentrun.KindExternal)
	w.agent.Tools = []agentrun.Tool{tool, w.does("twice", ""), w.does("twice", "")}
	for name, validate := range map[string]func(context.Context, agentrun.Call) error{
		"panics": func(context.Context, agentrun.Call) error { panic("hunter2") },
		"panics with an objection": func(context.Context, agentrun.Call) error {
			panic(&agentrun.ApprovalRequired{})
		},
	} {
		for _, kind := range []agentrun.Kind{agentrun.KindExternal, agentrun.KindUnapproved, agentrun.KindFunction} {
			tool.spec.Kind, tool.validate = kind, validate
			err := w.check("t", `{}`)
			requireWrong(t, err, agentrun.ArgumentError{Message: "the arguments could not be checked, so nothing was changed"})
			require.NotContains(t, err.Error(), "hunter2", name)
		}
	}
	tool.validate = func(ctx context.Context, _ agentrun.Call) error { <-ctx.Done(); return ctx.Err() }
	tool.spec.Timeout = 1
	require.ErrorContains(t, w.check("t", `{}`), "could not be checked")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.catalog().CheckCall(ctx, approvals.Batch{Agent: "ops"}, approvals.ToolCall{Name: "t"}), context.Canceled)

	require.ErrorIs(t, w.check("gone", `{}`), approvals.ErrNotFound)
	require.ErrorIs(t, w.check("twice", `{}`), approvals.ErrInvalid)
	for _, args := range []string{`[]`, `{"a":1,"a":2}`, `{`, "{\"a\":\"\xff\"}"} {
		require.ErrorAs(t, w.check("t", args), new(*agentrun.ArgumentError), args)
	}
	w.agent.Name = "other"
	require.ErrorIs(t, w.check("t", `{}`), approvals.ErrNotFound)
	require.Empty(t, w.executed())
}

// The runner never validates what runs elsewhere; a person is held to its schema.
func TestCheckCallThatRunsElsewhere(t *testing.T) {
	w := newWorld(t)
	tool := w.does("t", agentrun.KindExternal)
	w.agent.Tools = []agentrun.Tool{tool}
	tool.validate = func(context.Context, agentrun.Call) error { return errors.New("no such host here") }
	require.NoError(t, w.check("t", `{}`))
	tool.validate = func(context.Context, agentrun.Call) error {
		return &agentrun.ArgumentError{Pointer: "/n", Message: "it is missing"}
	}
	requireWrong(t, w.check("t", `{}`), agentrun.ArgumentError{Pointer: "/n", Message: "it is missing"})
}

func TestToolSpec(t *testing.T) {
	w := newWorld(t)
	w.agent.Tools = append(w.agent.Tools, w.does("twice", ""), w.does("twice", ""))
	spec, ok := w.catalog().ToolSpec("ops", "gated")
	require.True(t, ok)
	require.Equal(t, agentrun.KindUnapproved, spec.Kind)
	for agent, tool := range map[string]string{"ops": "twice", "other": "gated", "": ""} {
		_, ok := w.catalog().ToolSpec(agent, tool)
		require.False(t, ok, "%s of %s", tool, agent)
	}
	_, ok = agentrun.NewCatalog(func(string) (agentrun.Agent, bool) { return agentrun.Agent{}, true }, nil).ToolSpec("ops", "gone")
	require.False(t, ok)
}

// What a definition says of signatures; a tool that says nothing has not said no.
func TestWhatADefinitionAsks(t *testing.T) {
	when := func(context.Context, agentrun.Call) (bool, error) { return false, nil }
	for _, c := range []struct {
		spec agentrun.Spec
		want agentrun.Asks
	}{
		{agentrun.Spec{}, ""},
		{agentrun.Spec{Kind: agentrun.KindFunction}, agentrun.AsksNever},
		{agentrun.Spec{Kind: agentrun.KindFunction, NeedsApproval: when}, agentrun.AsksWhen},
		{agentrun.Spec{NeedsApproval: when}, agentrun.AsksWhen},
		{agentrun.Spec{Kind: agentrun.KindUnapproved}, agentrun.AsksAlways},
		{agentrun.Spec{Kind: agentrun.KindUnapproved, NeedsApproval: when}, agentrun.AsksAlways},
		{agentrun.Spec{Kind: "other"}, agentrun.AsksAlways},
		{agentrun.Spec{Kind: agentrun.KindExternal}, agentrun.AsksExternal},
	} {
		require.Equal(t, c.want, c.spec.Asks(), "%+v", c.spec.Kind)
	}
}
