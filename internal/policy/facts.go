package policy

import (
	"context"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/countersign/countersign/internal/approvals"
)

// facts are one call as the rules see it. What is costly is found out when a
// condition looks at it, and once.
type facts struct {
	p         *Policy
	q         approvals.Proposal
	ctx       context.Context //nolint:containedctx // lives as long as one ruling; conditions cannot hand one on
	shape     *shape
	hints     hints
	directory Directory

	args   any
	groups []approvals.GroupID
	asked  bool
	failed error // why the groups are not known
}

type hints struct{ readOnly, destructive, idempotent, openWorld bool }

func (a Annotations) hints() hints {
	yes := func(b *bool) bool { return b == nil || *b }
	return hints{a.ReadOnlyHint, yes(a.DestructiveHint), a.IdempotentHint, yes(a.OpenWorldHint)}
}

// The names that a condition may use, besides args.
var variables = []struct {
	name string
	t    *cel.Type
	of   func(f *facts) any
}{
	{"tool", cel.StringType, func(f *facts) any { return f.q.Call.Name }},
	{"agent", cel.StringType, func(f *facts) any { return f.q.Agent }},
	{"gate", cel.StringType, func(f *facts) any { return string(f.q.Gate) }},
	{"now", cel.TimestampType, func(f *facts) any { return f.q.At }},
	{"annotations.readOnlyHint", cel.BoolType, func(f *facts) any { return f.hints.readOnly }},
	{"annotations.destructiveHint", cel.BoolType, func(f *facts) any { return f.hints.destructive }},
	{"annotations.idempotentHint", cel.BoolType, func(f *facts) any { return f.hints.idempotent }},
	{"annotations.openWorldHint", cel.BoolType, func(f *facts) any { return f.hints.openWorld }},
	{"requester.id", cel.StringType, func(f *facts) any { return string(f.q.Requester) }},
	{"requester.name", cel.StringType, func(f *facts) any { return f.p.names.called[string(f.q.Requester)] }},
	{"requester.groups", cel.ListType(cel.StringType), (*facts).groupNames},
	{"channel.id", cel.StringType, func(f *facts) any { return f.q.Channel }},
	{"channel.name", cel.StringType, func(f *facts) any { return f.p.names.called[f.q.Channel] }},
	{"run.steps", cel.IntType, func(f *facts) any { return f.q.SoFar.Steps }},
	{"run.executed", cel.MapType(cel.StringType, cel.IntType), func(f *facts) any { return countsOf(f.q.SoFar.Executed) }},
	{"run.failed", cel.MapType(cel.StringType, cel.IntType), func(f *facts) any { return countsOf(f.q.SoFar.Failed) }},
	{"run.denied", cel.MapType(cel.StringType, cel.IntType), func(f *facts) any { return countsOf(f.q.SoFar.Denied) }},
}

// ResolveName implements [cel.Activation].
func (f *facts) ResolveName(name string) (any, bool) {
	if name == "args" {
		if f.args == nil {
			f.args = f.readArgs()
		}
		return f.args, true
	}
	for i := range variables {
		if variables[i].name == name {
			return variables[i].of(f), true
		}
	}
	return nil, false
}

// Parent implements [cel.Activation].
func (f *facts) Parent() cel.Activation { return nil }

func (f *facts) readArgs() any {
	m, err := readArgs(f.q.Call.Args, f.shape)
	if err != nil {
		return types.WrapErr(err)
	}
	return m
}

// member returns the groups of the file in which the requester is.
func (f *facts) member() ([]approvals.GroupID, error) {
	if f.asked {
		return f.groups, f.failed
	}
	f.asked = true
	if f.directory == nil || f.q.Requester == "" {
		f.failed = errDirectory
		return nil, f.failed
	}
	groups, err := f.directory.GroupsOf(f.ctx, f.q.Requester, slices.Clone(f.p.groups))
	if err != nil {
		f.failed = errDirectory
		return nil, f.failed
	}
	f.groups = groups
	return groups, nil
}

func (f *facts) groupNames() any {
	groups, err := f.member()
	if err != nil {
		return types.WrapErr(err)
	}
	called := make([]string, 0, len(groups))
	for _, g := range groups {
		if name := f.p.names.called[string(g)]; name != "" {
			called = append(called, name)
		}
	}
	slices.Sort(called)
	return called
}

// counts are numbers by tool: of a tool that is not there, none.
type counts struct{ traits.Mapper }

func countsOf(m map[string]int) ref.Val {
	return counts{types.NewDynamicMap(types.DefaultTypeAdapter, m)}
}

func (c counts) Get(key ref.Val) ref.Val {
	v, _ := c.Find(key)
	return v
}

func (c counts) Find(key ref.Val) (ref.Val, bool) {
	if v, ok := c.Mapper.Find(key); ok {
		return v, true
	}
	return types.IntZero, true
}

// judge evaluates a condition. Its errors say nothing of the arguments.
func (f *facts) judge(when cel.Program) (bool, error) {
	v, _, err := when.Eval(f)
	if err != nil {
		return false, f.blame(err)
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, errNotBool
	}
	return bool(b), nil
}

func (f *facts) blame(err error) error {
	if f.failed != nil {
		return errDirectory
	}
	switch s := err.Error(); {
	case strings.Contains(s, errArgs.Error()):
		return errArgs
	case strings.Contains(s, errNumber.Error()):
		return errNumber
	case strings.HasPrefix(s, "no such key"), strings.HasPrefix(s, "no such attribute"), strings.HasPrefix(s, "index out of bounds"), strings.HasPrefix(s, "optional.none()"):
		return errMissing
	case strings.Contains(s, "cost limit"):
		return errCost
	}
	return errEval
}
