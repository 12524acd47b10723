package policy

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/countersign/countersign/internal/strictyaml"
)

// directID is the id of a direct message, which has no name in the file.
var directID = regexp.MustCompile(`^D[A-Z0-9]{3,}$`)

// constants refuses a condition that is compared with a name that nothing has:
// it would never be true.
func (c *checker) constants(when text, a *cel.Ast) {
	type kind struct {
		kind, under string // the key of the file that has them, if one does
		names       []string
	}
	channels, people := []string{""}, []string{""}
	for name, id := range c.names.groups {
		if channelID.MatchString(string(id)) {
			channels = append(channels, name, string(id))
		}
	}
	for name, id := range c.names.people {
		people = append(people, name, string(id))
	}
	slices.Sort(channels)
	slices.Sort(people)
	ids := func(all []string, id bool) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool {
			return s != "" && (userID.MatchString(s) || channelID.MatchString(s)) != id
		})
	}
	known := map[string]kind{
		"requester.groups": {"group", "groups", slices.Sorted(maps.Keys(c.names.groups))},
		"channel.name":     {"channel", "groups", ids(channels, false)},
		"channel.id":       {"channel", "groups", ids(channels, true)},
		"requester.name":   {"person", "people", ids(people, false)},
		"requester.id":     {"person", "people", ids(people, true)},
		"severity":         {"severity", "", []string{"", "low", "high", "irreversible"}},
		"hours":            {"calendar", "calendars", slices.Sorted(maps.Keys(c.names.calendars))},
		"gate":             {"gate", "", []string{"", "declared", "predicate", "raised"}},
	}
	if len(c.tools) > 0 {
		tools, agents := kind{kind: "tool"}, kind{kind: "agent"}
		for _, t := range c.tools {
			tools.names, agents.names = append(tools.names, t.Name), append(agents.names, t.Agent)
		}
		agents.names = append(agents.names, c.remote...)
		known["agent"] = agents
		for _, of := range []string{"tool", "run.executed", "run.failed", "run.denied", executedToday} {
			if len(c.remote) == 0 { // the tools of remote agents are not known
				known[of] = tools
			}
		}
	}
	named(a.NativeRep().Expr(), nil, func(of, s string) {
		k, ok := known[of]
		switch {
		case !ok:
		case of == "channel.id" && directID.MatchString(s):
		case !slices.Contains(k.names, s):
			where := ""
			if k.under != "" {
				where = " under " + k.under
			}
			c.Wrong(when.Mark, "there is no %s %q%s%s", k.kind, s, where, strictyaml.Hint(s, k.names))
		default:
			c.names.look(of, s, when.Mark)
		}
	})
	visit(a, func(e ast.Expr) { c.zone(when, e) })
}

// ofTime are what a time may be asked for by the clocks of a zone.
var ofTime = regexp.MustCompile(`^get(Date|DayOfMonth|DayOfWeek|DayOfYear|FullYear|Hours|Milliseconds|Minutes|Month|Seconds)$`)

var anOffset = regexp.MustCompile(`^[+-]?(0[0-9]|1[0-4]):[0-5][0-9]$`)

// zone refuses a time zone that nothing knows: the rule could never be judged.
func (c *checker) zone(when text, e ast.Expr) {
	if e.Kind() != ast.CallKind || !ofTime.MatchString(e.AsCall().FunctionName()) {
		return
	}
	for _, a := range e.AsCall().Args() {
		eachText(a, func(s string) {
			if _, err := time.LoadLocation(s); (err != nil || s == "" || s == "Local") && !anOffset.MatchString(s) {
				c.Wrong(when.Mark, "%q is not a time zone such as Europe/Berlin", s)
			}
		})
	}
}

// madePlace stands for the place of what a condition makes from something else.
const madePlace = "?"

// named goes over what is compared with a text, looked up by one, or looked for
// in a list of some, by the chain of its names, or nothing if it has none, and over the keys
// of objects. What goes over a list stands for it.
func named(e ast.Expr, vars map[string]string, each func(of, s string)) {
	at := func(e ast.Expr) string { return place(e, vars) }
	switch e.Kind() {
	case ast.CallKind:
		args := e.AsCall().Args()
		if len(args) != 2 {
			break
		}
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals, operators.In:
			eachText(args[0], func(s string) { each(at(args[1]), s) })
			eachText(args[1], func(s string) { each(at(args[0]), s) })
		case operators.Index, operators.OptIndex, operators.OptSelect:
			eachText(args[1], func(s string) { each(at(args[0]), s) })
		}
	case ast.MapKind: // may be compared with an object
		for _, m := range e.AsMap().Entries() {
			eachText(m.AsMapEntry().Key(), func(s string) { each("", s) })
		}
	case ast.SelectKind:
		each(at(e.AsSelect().Operand()), e.AsSelect().FieldName())
	case ast.ComprehensionKind:
		eachText(e.AsComprehension().IterRange(), func(s string) { each("", s) }) // names that its variable stands for
		inside := maps.Clone(vars)
		if inside == nil {
			inside = map[string]string{}
		}
		inside[e.AsComprehension().IterVar()] = cmp.Or(at(e.AsComprehension().IterRange()), madePlace)
		inside[e.AsComprehension().AccuVar()] = cmp.Or(at(e.AsComprehension().AccuInit()), madePlace) // of optMap
		named(e.AsComprehension().IterRange(), vars, each)
		for _, part := range children(e)[1:] {
			named(part, inside, each)
		}
		return
	default:
	}
	for _, part := range children(e) {
		named(part, vars, each)
	}
}

// place is [chain] where a variable stands for another place, as for each item of a list.
// An item of a list by its number, and what is optional, is in the same place.
func place(e ast.Expr, vars map[string]string) string {
	of, name := e, ""
	switch e.Kind() {
	case ast.IdentKind:
		return cmp.Or(vars[e.AsIdent()], e.AsIdent())
	case ast.SelectKind:
		of, name = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case "string": // the text of a place is compared, or is a key, as what is there
			return place(call.Args()[0], vars)
		case "value", "orValue":
			if call.IsMemberFunction() {
				return place(call.Target(), vars)
			}
		case operators.Index, operators.OptIndex, operators.OptSelect:
			of = call.Args()[0]
			if _, number := literal[types.Int](call.Args()[1]); number {
				return place(of, vars)
			}
			s, _ := literal[types.String](call.Args()[1])
			name = string(s)
		}
	default:
	}
	if !plainName.MatchString(name) {
		return ""
	}
	if at := place(of, vars); at != "" {
		return at + "." + name
	}
	return ""
}

// children are the parts of an expression; of a comprehension what it goes over
// is the first.
func children(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.CallKind:
		if e.AsCall().IsMemberFunction() {
			return append([]ast.Expr{e.AsCall().Target()}, e.AsCall().Args()...)
		}
		return e.AsCall().Args()
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		var all []ast.Expr
		for _, m := range e.AsMap().Entries() {
			all = append(all, m.AsMapEntry().Key(), m.AsMapEntry().Value())
		}
		return all
	case ast.StructKind:
		var all []ast.Expr
		for _, f := range e.AsStruct().Fields() {
			all = append(all, f.AsStructField().Value())
		}
		return all
	case ast.ComprehensionKind:
		l := e.AsComprehension()
		return []ast.Expr{l.IterRange(), l.AccuInit(), l.LoopCondition(), l.LoopStep(), l.Result()}
	default:
		return nil
	}
}

// literal is the value of a literal, if it is a T.
func literal[T any](e ast.Expr) (v T, ok bool) {
	if e.Kind() == ast.LiteralKind {
		v, ok = e.AsLiteral().(T)
	}
	return v, ok
}
