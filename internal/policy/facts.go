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

// facts are one call as the rules see it. Costly facts are looked up when a
// condition needs them, and once.
type facts struct {
	p         *Policy
	q         approvals.Proposal
	ctx       context.Context //nolint:containedctx // lives as long as one ruling; conditions cannot hand one on
	shape     *shape
	unheld    *tool // as in [plan]
	hints     hints
	directory Directory
	ledger    Ledger
	held      bool           // a check asks for approval, so no allow decides
	today     map[string]int // how many calls of each tool went ahead today, once they were counted or given

	args      any
	spelled   spellings           // the keys in args, once a condition named one
	shellCall *shellCall          // once a rule looked at a command
	wanted    []approvals.GroupID // what the condition at hand looks for in the requester's groups
	looked    []lookup            // the arguments that it names, until they were looked for
	respelled bool                // one of them has a key in its place that differs only in case
	member    map[approvals.GroupID]membership
}

// A membership is whether the requester is in a group, or why that could not be
// looked up.
type membership struct {
	in  bool
	err error
}

type hints struct {
	readOnly, destructive, idempotent, openWorld bool

	severity approvals.Severity
}

func (a Annotations) hints() hints {
	yes := func(b *bool) bool { return b == nil || *b }
	return hints{a.ReadOnlyHint, yes(a.DestructiveHint), a.IdempotentHint, yes(a.OpenWorldHint), approvals.SeverityUnset}
}

// planned gives the facts what the plan for a call says of its tool.
func (f *facts) planned(pl *plan) { f.shape, f.hints, f.unheld = pl.shape, pl.hints, pl.unheld }

// The names that a condition may use, besides args.
var variables = []struct {
	name string
	t    *cel.Type
	of   func(f *facts) any
}{
	{"tool", cel.StringType, func(f *facts) any { return f.q.Call.Name }},
	{"agent", cel.StringType, func(f *facts) any { return f.q.Agent }},
	{"call.cwd", cel.StringType, func(f *facts) any { return f.q.Place.Cwd }},
	{"call.repository", cel.StringType, func(f *facts) any { return f.q.Place.Repository }},
	{"call.branch", cel.StringType, func(f *facts) any { return f.q.Place.Branch }},
	{"call.server", cel.StringType, func(f *facts) any { return f.q.Place.Server }},
	{"gate", cel.StringType, func(f *facts) any { return string(f.q.Gate) }},
	{"now", cel.TimestampType, func(f *facts) any { return f.q.At }},
	{"annotations.readOnlyHint", cel.BoolType, func(f *facts) any { return f.hints.readOnly }},
	{"annotations.destructiveHint", cel.BoolType, func(f *facts) any { return f.hints.destructive }},
	{"annotations.idempotentHint", cel.BoolType, func(f *facts) any { return f.hints.idempotent }},
	{"annotations.openWorldHint", cel.BoolType, func(f *facts) any { return f.hints.openWorld }},
	{"severity", cel.StringType, func(f *facts) any { return string(f.hints.severity) }},
	{"requester.id", cel.StringType, func(f *facts) any { return string(f.q.Requester) }},
	{"requester.name", cel.StringType, func(f *facts) any { return f.p.names.called[string(f.q.Requester)] }},
	{"requester.groups", cel.ListType(cel.StringType), (*facts).groupNames},
	{"channel.id", cel.StringType, func(f *facts) any { return f.q.Channel }},
	{"channel.name", cel.StringType, func(f *facts) any { return f.p.names.called[f.q.Channel] }},
	{executedToday, cel.MapType(cel.StringType, cel.IntType), (*facts).ranToday},
	{"hours", cel.MapType(cel.StringType, cel.BoolType), (*facts).hours},
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
		if len(f.looked) > 0 && f.spelled == nil {
			f.spelled = spellings{}
			f.spelled.read(f.args, f.shape, true)
		}
		f.respelled = f.respelled || slices.ContainsFunc(f.looked, func(l lookup) bool { return f.spelled.others(l) && (l.anywhere || l.respelled(f.args, f.shape, true)) })
		f.looked = nil // a condition that goes over a list asks for args with each item
		if f.respelled {
			return types.WrapErr(errRespelled), true
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
	if f.unheld != nil {
		if wrong, err := f.unheld.misfits(f.q.Call.Args); err != nil || len(wrong) > 0 {
			return types.WrapErr(errMisfit)
		}
	}
	m, err := readArgs(f.q.Call.Args, f.shape)
	if err != nil {
		return types.WrapErr(err)
	}
	return m
}

// in reports whether the requester is in the group. Each is looked up when a
// rule needs it, and once: a group that cannot be looked up is in the way of
// the rules that name it, and of no others.
func (f *facts) in(g approvals.GroupID) (bool, error) {
	if known, ok := f.member[g]; ok {
		return known.in, known.err
	}
	var m membership
	if f.directory == nil || f.q.Requester == "" {
		m.err = errDirectory
	} else if groups, err := f.directory.GroupsOf(f.ctx, f.q.Requester, []approvals.GroupID{g}); err != nil {
		m.err = errDirectory
	} else {
		m.in = slices.Contains(groups, g)
	}
	if f.member == nil {
		f.member = map[approvals.GroupID]membership{}
	}
	f.member[g] = m
	return m.in, m.err
}

// inOneOf is an error only if none is known to hold them, and one is not known.
func (f *facts) inOneOf(groups []approvals.GroupID) (bool, error) {
	var failed error
	for _, g := range groups {
		in, err := f.in(g)
		if in {
			return true, nil
		}
		if err != nil {
			failed = err
		}
	}
	return false, failed
}

// groupNames are the names of the groups in which the requester is, of those
// that the condition at hand looks for.
func (f *facts) groupNames() any {
	names := []string{}
	for _, g := range f.wanted {
		in, err := f.in(g)
		if err != nil {
			return types.WrapErr(err)
		}
		if in {
			names = append(names, f.p.names.called[string(g)])
		}
	}
	slices.Sort(names)
	return names
}

// executedToday is the variable that counts the calls of a day.
const executedToday = "today.executed"

// ranToday counts the calls that went ahead for the requester since midnight and
// before this one.
func (f *facts) ranToday() any {
	if f.today != nil {
		return countsOf(f.today)
	}
	if f.ledger == nil || f.q.Requester == "" {
		return types.WrapErr(errLedger)
	}
	entries, err := f.ledger.Entries(f.ctx, f.q.Requester)
	if err != nil {
		return types.WrapErr(errLedger)
	}
	midnight := f.p.Midnight(f.q.At)
	f.today = map[string]int{}
	for _, e := range entries {
		if f.q.Entry != "" && e.Key == f.q.Entry {
			break
		}
		if !e.At.Before(midnight) {
			f.today[e.Tool]++
		}
	}
	return countsOf(f.today)
}

// hours says of each calendar of the file whether the call is made within it.
func (f *facts) hours() any {
	open := make(map[string]bool, len(f.p.names.calendars))
	for name, c := range f.p.names.calendars {
		open[name] = c.open(f.q.At)
	}
	return open
}

// counts are numbers by tool, 0 for a tool that is not in the map.
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
func (f *facts) judge(r *rule) (bool, error) {
	f.wanted, f.looked, f.respelled = r.wanted, r.looked, false
	v, _, err := r.when.Eval(f)
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
	switch s := err.Error(); {
	case strings.Contains(s, errDirectory.Error()):
		return errDirectory
	case strings.Contains(s, errLedger.Error()):
		return errLedger
	case strings.Contains(s, errArgs.Error()):
		return errArgs
	case strings.Contains(s, errMisfit.Error()):
		return errMisfit
	case strings.Contains(s, errRecased.Error()):
		return errRecased
	case strings.Contains(s, errRespelled.Error()):
		return errRespelled
	case strings.Contains(s, errNumber.Error()):
		return errNumber
	case strings.Contains(s, errNaN.Error()):
		return errNaN
	case strings.Contains(s, errUnlike.Error()):
		return errUnlike
	case strings.Contains(s, errRounded.Error()):
		return errRounded
	case strings.HasPrefix(s, "no such key"), strings.HasPrefix(s, "no such attribute"), strings.HasPrefix(s, "index out of bounds"), strings.HasPrefix(s, "optional.none()"):
		return errMissing
	case strings.Contains(s, errCost.Error()), strings.Contains(s, "cost limit"):
		return errCost
	}
	return errEval
}
