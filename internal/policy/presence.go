package policy

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// A presence finds arguments that a call may leave out and that a condition
// looks at without having asked whether they are there: it could not be judged
// for such a call. Where that is not plain it says nothing.
type presence struct {
	c    *checker
	when text
	tool *tool
}

// sure are the places of which it is known that they are there.
type sure map[string]bool

func (s sure) and(more sure) sure {
	all := sure{}
	for _, of := range []sure{s, more} {
		for k := range of {
			all[k] = true
		}
	}
	return all
}

func (s sure) or(other sure) sure {
	both := sure{}
	for k := range s {
		if other[k] {
			both[k] = true
		}
	}
	return both
}

// at returns what a place holds, and the place.
func (p *presence) at(e ast.Expr, vars map[string]*shape) (*shape, string) {
	switch {
	case e.Kind() == ast.IdentKind:
		return vars[e.AsIdent()], e.AsIdent()
	case e.Kind() == ast.SelectKind:
		of, place := p.at(e.AsSelect().Operand(), vars)
		return of.field(e.AsSelect().FieldName()), place + "." + e.AsSelect().FieldName()
	case isCall(e, operators.Index), isCall(e, operators.OptSelect), isCall(e, operators.OptIndex):
		of, place := p.at(e.AsCall().Args()[0], vars)
		name, ok := literal[types.String](e.AsCall().Args()[1])
		switch {
		case ok && e.AsCall().FunctionName() == operators.Index:
			return of.field(string(name)), place + "." + string(name)
		case ok:
			return nil, place + "." + string(name)
		case of != nil:
			return of.elem, place + "[]"
		}
	}
	return nil, "?"
}

func (s *shape) field(name string) *shape {
	if s == nil {
		return nil
	}
	return s.fields[name]
}

// walk goes over what is looked at when these places are known to be there.
func (p *presence) walk(e ast.Expr, known sure, vars map[string]*shape) {
	switch {
	case isCall(e, operators.LogicalAnd), isCall(e, operators.LogicalOr):
		l, r := e.AsCall().Args()[0], e.AsCall().Args()[1]
		is := isCall(e, operators.LogicalAnd) // the other side decides alone if it is not so
		p.walk(l, known.and(p.implied(r, is, vars)), vars)
		p.walk(r, known.and(p.implied(l, is, vars)), vars)
		return
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Conditional:
		args := e.AsCall().Args()
		p.walk(args[0], known, vars)
		p.walk(args[1], known.and(p.implied(args[0], true, vars)), vars)
		p.walk(args[2], known.and(p.implied(args[0], false, vars)), vars)
		return
	case e.Kind() == ast.ComprehensionKind:
		l := e.AsComprehension()
		p.walk(l.IterRange(), known, vars)
		inside := map[string]*shape{l.IterVar(): nil}
		for name, s := range vars {
			if name != l.IterVar() {
				inside[name] = s
			}
		}
		if of, _ := p.at(l.IterRange(), vars); of != nil && !l.HasIterVar2() {
			inside[l.IterVar()] = of.elem
		}
		for _, part := range children(e)[1:] {
			p.walk(part, known, inside)
		}
		return
	case e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly():
		p.look(e, e.AsSelect().Operand(), e.AsSelect().FieldName(), known, vars)
	case isCall(e, operators.Index):
		if name, ok := literal[types.String](e.AsCall().Args()[1]); ok {
			p.look(e, e.AsCall().Args()[0], string(name), known, vars)
		}
	}
	for _, part := range children(e) {
		p.walk(part, known, vars)
	}
}

func (p *presence) look(e, operand ast.Expr, name string, known sure, vars map[string]*shape) {
	of, _ := p.at(operand, vars)
	_, place := p.at(e, vars)
	if of == nil || !of.optional[name] || known[place] {
		return
	}
	_, outer := p.at(operand, vars)
	p.c.Wrong(p.when.Mark, "%s is optional (for the tool %s of %s), and without it the rule can't be judged; write has(%s) && ..., or %s.?%s.orValue(...)",
		place, p.tool.Name, p.tool.Agent, place, outer, name)
}

// implied are the places that are there if e is true, or false.
func (p *presence) implied(e ast.Expr, is bool, vars map[string]*shape) sure {
	switch {
	case e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly():
		if !is {
			return nil
		}
		_, place := p.at(e, vars)
		return sure{place: true}
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.LogicalNot:
		return p.implied(e.AsCall().Args()[0], !is, vars)
	case isCall(e, operators.LogicalAnd), isCall(e, operators.LogicalOr):
		l, r := p.implied(e.AsCall().Args()[0], is, vars), p.implied(e.AsCall().Args()[1], is, vars)
		if isCall(e, operators.LogicalAnd) == is {
			return l.and(r)
		}
		return l.or(r)
	}
	return p.asked(e, vars)
}

// asked are the places that something complicated asks for: it is taken for a
// guard.
func (p *presence) asked(e ast.Expr, vars map[string]*shape) sure {
	all := sure{}
	switch {
	case e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly(), isCall(e, operators.OptSelect), isCall(e, operators.OptIndex):
		_, place := p.at(e, vars)
		all[place] = true
	case isCall(e, operators.In):
		if name, ok := literal[types.String](e.AsCall().Args()[0]); ok {
			_, place := p.at(e.AsCall().Args()[1], vars)
			all[place+"."+string(name)] = true
		}
	}
	for _, part := range children(e) {
		all = all.and(p.asked(part, vars))
	}
	return all
}
