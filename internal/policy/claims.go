package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// A claim is what a part of a condition says of a term when it is true, or with
// want false, when it is false.
type claim struct {
	says   string
	want   bool
	term   ast.Expr
	key    string    // the same for the same term
	place  string    // the chain of names that the term is, or empty
	values []ref.Val // what it is compared with; one, but for isOne
}

// What a claim may say of its term.
const (
	isTrue   = "is true" // nothing more is known of it
	isThere  = "is there"
	isOne    = "is one of"
	isBelow  = "is below"
	isAtMost = "is at most"
	isAbove  = "is above"
	isAtMin  = "is at least"
	begins   = "begins with"
	ends     = "ends with"
	contains = "contains"
	matches  = "matches"
)

var (
	ordersOf = map[string]string{
		operators.Less: isBelow, operators.LessEquals: isAtMost, operators.Greater: isAbove, operators.GreaterEquals: isAtMin,
	}
	mirrored = map[string]string{isBelow: isAbove, isAtMost: isAtMin, isAbove: isBelow, isAtMin: isAtMost}
	opposite = map[string]string{isBelow: isAtMin, isAtMost: isAbove, isAbove: isAtMost, isAtMin: isBelow}
	textsOf  = map[string]string{"startsWith": begins, "endsWith": ends, "contains": contains, "matches": matches}
)

// claimOf is what an expression that is no combination of others says.
func claimOf(g goal) claim {
	e := g.e
	says := func(what string, term ast.Expr, want bool, values ...ref.Val) claim {
		return claim{what, want, term, key(term), chain(term), values}
	}
	if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		return says(isThere, e, g.want)
	}
	if e.Kind() != ast.CallKind {
		return says(isOne, e, true, types.Bool(g.want))
	}
	call, args := e.AsCall(), e.AsCall().Args()
	name := call.FunctionName()
	switch {
	case call.IsMemberFunction() && textsOf[name] != "" && len(args) == 1:
		if s, ok := literal[types.String](args[0]); ok {
			return says(textsOf[name], call.Target(), g.want, s)
		}
	case call.IsMemberFunction() || len(args) != 2:
	case name == operators.Equals || name == operators.NotEquals:
		for i, j := range []int{1, 0} {
			if c, ok := constant(args[j]); ok {
				return says(isOne, args[i], g.want == (name == operators.Equals), c)
			}
		}
		if name == operators.NotEquals { // the opposite of what an == of the same would be
			return claim{isTrue, !g.want, e, strings.Replace(key(e), operators.NotEquals, operators.Equals, 1), "", nil}
		}
	case name == operators.In:
		if all, ok := constants(args[1]); ok {
			return says(isOne, args[0], g.want, all...)
		}
	case ordersOf[name] != "":
		if c, ok := constant(args[1]); ok {
			return says(ordersOf[name], args[0], g.want, c)
		}
		if c, ok := constant(args[0]); ok {
			return says(mirrored[ordersOf[name]], args[1], g.want, c)
		}
	}
	return says(isTrue, e, g.want)
}

// constant is the value of a literal, a time or a duration. Numbers from 2^53 on
// are none: CEL rounds where it compares whole numbers with others, so two of
// them that differ may equal the same value.
func constant(e ast.Expr) (ref.Val, bool) {
	if e.Kind() == ast.CallKind && len(e.AsCall().Args()) == 1 {
		of := map[string]*types.Type{"timestamp": types.TimestampType, "duration": types.DurationType}[e.AsCall().FunctionName()]
		s, ok := literal[types.String](e.AsCall().Args()[0])
		if of == nil || !ok {
			return nil, false
		}
		v := s.ConvertToType(of)
		return v, !types.IsError(v)
	}
	if e.Kind() != ast.LiteralKind {
		return nil, false
	}
	const exact = 1 << 53
	switch v := e.AsLiteral().(type) {
	case types.Int:
		return v, -exact < v && v < exact
	case types.Uint:
		return v, v < exact
	case types.Double:
		return v, -exact < v && v < exact
	default:
		return v, true
	}
}

func constants(list ast.Expr) (all []ref.Val, ok bool) {
	if list.Kind() != ast.ListKind {
		return nil, false
	}
	for _, e := range list.AsList().Elements() {
		c, ok := constant(e)
		if !ok {
			return nil, false
		}
		all = append(all, c)
	}
	return all, true
}

// claims hold together.
type claims []claim

// contradict reports whether one more claim cannot hold beside these.
func (all claims) contradict(c claim) bool {
	of := claims{c}
	for _, k := range all {
		switch {
		case k.absent(c), c.absent(k):
			return true
		case k.key != c.key || k.whole() != c.whole():
		case c.whole() && k.says == c.says && k.want != c.want:
			return true
		case !c.whole():
			of = append(of, k)
		}
	}
	return !c.whole() && of.unmet()
}

// whole reports whether the claim is about an expression and not about a value.
func (c claim) whole() bool { return c.says == isTrue || c.says == isThere }

// absent reports whether c says that something is absent of which o says something.
// Evaluating o would be an error then, and so neither true nor false.
func (c claim) absent(o claim) bool {
	return c.says == isThere && !c.want && !o.whole() && strings.HasPrefix(c.place, "args.") &&
		(o.place == c.place || strings.HasPrefix(o.place, c.place+"."))
}

// unmet reports whether no value meets all of the claims, which are about one
// term.
func (all claims) unmet() bool {
	if len(all) > 0 && isSize(all[0].term) {
		all = append(slices.Clip(all), claim{says: isAtMin, want: true, values: []ref.Val{types.Int(0)}})
	}
	for _, c := range all {
		if c.says == isOne && c.want {
			return !slices.ContainsFunc(c.values, all.admit)
		}
	}
	return all.outOfBounds() || all.unspeakable()
}

// isSize reports whether the term is a size, which is never negative.
func isSize(term ast.Expr) bool {
	return term != nil && term.Kind() == ast.CallKind && term.AsCall().FunctionName() == "size"
}

func (all claims) admit(v ref.Val) bool {
	return !slices.ContainsFunc(all, func(c claim) bool {
		is, known := c.of(v)
		return !known || is != c.want
	})
}

// of is what the claim is about a value. Where CEL has no answer, it is unknown.
func (c claim) of(v ref.Val) (is, known bool) {
	switch c.says {
	case isOne:
		return slices.ContainsFunc(c.values, func(o ref.Val) bool { return types.Equal(v, o) == types.True }), true
	case matches:
		s, ok := v.(types.String)
		re, err := regexp.Compile(c.text())
		if !ok || err != nil {
			return false, false
		}
		return re.MatchString(string(s)), true
	case begins, ends, contains:
		s, ok := v.(types.String)
		is := map[string]func(s, of string) bool{begins: strings.HasPrefix, ends: strings.HasSuffix, contains: strings.Contains}[c.says]
		return ok && is(string(s), c.text()), ok
	}
	n, ok := compare(v, c.values[0])
	return ok && (n < 0 && (c.says == isBelow || c.says == isAtMost) || n > 0 && (c.says == isAbove || c.says == isAtMin) ||
		n == 0 && (c.says == isAtMost || c.says == isAtMin)), ok
}

func (c claim) text() string { return string(c.values[0].(types.String)) }

// compare orders two values, if CEL does.
func compare(a, b ref.Val) (int, bool) {
	comparer, ok := a.(traits.Comparer)
	if !ok {
		return 0, false
	}
	n, ok := comparer.Compare(b).(types.Int)
	return int(n), ok
}

// outOfBounds reports whether the least that the term may be is more than the
// most, or is of another kind.
func (all claims) outOfBounds() bool {
	var low, high *claim
	for _, c := range all {
		if opposite[c.says] == "" {
			continue
		}
		if !c.want {
			c.says, c.want = opposite[c.says], true
		}
		bound, tighter := &low, 1
		if c.says == isBelow || c.says == isAtMost {
			bound, tighter = &high, -1
		}
		if *bound == nil {
			*bound = &c
			continue
		}
		n, ok := compare(c.values[0], (*bound).values[0])
		if !ok {
			return true
		}
		if n*tighter > 0 || n == 0 && (c.says == isBelow || c.says == isAbove) {
			*bound = &c
		}
	}
	if low == nil || high == nil {
		return false
	}
	n, ok := compare(low.values[0], high.values[0])
	return !ok || n > 0 || n == 0 && !all.admit(low.values[0])
}

// unspeakable reports whether no text has these beginnings, ends and parts, and
// none of those that it must not have.
func (all claims) unspeakable() bool {
	for i, c := range all {
		for _, o := range all[i+1:] {
			if c.clashes(o) || o.clashes(c) {
				return true
			}
		}
	}
	return false
}

func (c claim) clashes(o claim) bool {
	if c.says == matches && o.says == matches {
		return c.want != o.want && c.text() == o.text()
	}
	isText := func(c claim) bool { return c.says == begins || c.says == ends || c.says == contains }
	if !c.want || !isText(c) {
		return false
	}
	switch {
	case opposite[o.says] != "":
		_, text := o.values[0].(types.String)
		return !text
	case !isText(o):
		return false
	case o.want && c.says == begins && o.says == begins:
		return !strings.HasPrefix(c.text(), o.text()) && !strings.HasPrefix(o.text(), c.text())
	case o.want && c.says == ends && o.says == ends:
		return !strings.HasSuffix(c.text(), o.text()) && !strings.HasSuffix(o.text(), c.text())
	case !o.want && o.says == contains:
		return strings.Contains(c.text(), o.text())
	case !o.want && c.says == begins && o.says == begins:
		return strings.HasPrefix(c.text(), o.text())
	case !o.want && c.says == ends && o.says == ends:
		return strings.HasSuffix(c.text(), o.text())
	}
	return false
}

// key writes an expression so that two with the same key have the same value.
func key(e ast.Expr) string {
	var b strings.Builder
	if name, ok := field(e); ok { // args["x"] is args.x
		return fmt.Sprintf("s false %s (%s)", name, key(e.AsCall().Args()[0]))
	}
	switch e.Kind() {
	case ast.IdentKind:
		b.WriteString("i " + e.AsIdent())
	case ast.LiteralKind:
		fmt.Fprintf(&b, "l %T %#v", e.AsLiteral(), e.AsLiteral().Value())
	case ast.SelectKind:
		fmt.Fprintf(&b, "s %t %s", e.AsSelect().IsTestOnly(), e.AsSelect().FieldName())
	case ast.CallKind:
		fmt.Fprintf(&b, "c %t %s", e.AsCall().IsMemberFunction(), e.AsCall().FunctionName())
	case ast.ListKind:
		fmt.Fprintf(&b, "a %v", e.AsList().OptionalIndices())
	case ast.ComprehensionKind:
		l := e.AsComprehension()
		fmt.Fprintf(&b, "f %s %s %s", l.IterVar(), l.IterVar2(), l.AccuVar())
	default: // a map or a struct, whose entries may be optional
		return fmt.Sprintf("? %p", e)
	}
	for _, part := range children(e) {
		fmt.Fprintf(&b, " (%s)", key(part))
	}
	return b.String()
}
