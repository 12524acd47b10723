package policy

import (
	"maps"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/countersign/countersign/internal/approvals"
)

// A condition is a condition of a rule or a setting after it was read.
type condition struct {
	program cel.Program
	written string              // however it is spaced
	wanted  []approvals.GroupID // the groups that it looks for
	looked  []lookup            // the arguments that it names
}

func (c condition) of(r *rule) {
	r.isWhen, r.when, r.written, r.wanted, r.looked = true, c.program, c.written, c.wanted, c.looked
}

// condition reads a condition for these tools. If they are those of its own rule
// only, it must say something that the rule does not say by them already.
func (c *checker) condition(when text, tools []*tool, own bool) condition {
	before := c.Count()
	read := condition{program: c.compile(when, tools)}
	env, err := untyped()
	if err != nil || c.Count() > before {
		return read
	}
	parsed, issues := env.Parse(when.Value)
	if issues.Err() != nil {
		return read
	}
	root := parsed.NativeRep().Expr()
	if read.written, err = cel.AstToString(parsed); err != nil {
		read.written = when.Value
	}
	read.wanted, read.looked = c.names.wanted(root), lookups(root)
	for _, t := range tools {
		p := &presence{c: c, when: when, tool: t}
		if p.walk(root, nil, map[string]*shape{"args": t.shape}); c.Count() > before {
			return read
		}
	}
	if !own {
		tools = nil
	}
	if own && len(tools) > 0 {
		c.excluded(when, root, tools)
	}
	if c.Count() == before {
		c.foregone(when, folded(env, parsed), tools)
	}
	return read
}

// foregone refuses a condition that is always true or always false.
func (c *checker) foregone(when text, root ast.Expr, tools []*tool) {
	v, known := outcome(root, tools)
	switch {
	case known && v:
		c.Wrong(when.Mark, "is always true; remove it")
		return
	case known:
		c.Wrong(when.Mark, "is never true, so the rule never matches; correct it, or remove the rule")
		return
	}
	if about, is := impossible(root, true); is {
		c.Wrong(when.Mark, "is never true%s, so the rule never matches; correct it, or remove the rule", whatever(about))
		return
	}
	if about, is := impossible(root, false); is {
		c.Wrong(when.Mark, "is never false%s; correct it, or remove it", whatever(about))
		return
	}
	c.arms(when, root)
}

// arms refuses an arm of an || that is never true: the rule does not match what
// its author wrote there.
func (c *checker) arms(when text, e ast.Expr) {
	if !isCall(e, operators.LogicalAnd) && !isCall(e, operators.LogicalOr) {
		return
	}
	for _, arm := range e.AsCall().Args() {
		if isCall(e, operators.LogicalOr) && !isCall(arm, operators.LogicalOr) {
			if about, is := impossible(arm, true); is {
				c.Wrong(when.Mark, "has an alternative (||) that is never true%s; correct it, or remove it", whatever(about))
				continue
			}
		}
		c.arms(when, arm)
	}
}

func whatever(about string) string {
	if about == "" {
		return ""
	}
	return ", whatever " + about + " is"
}

// excluded refuses to look for a tool or an agent that the rule is not for.
func (c *checker) excluded(when text, root ast.Expr, tools []*tool) {
	for of, name := range ofTool {
		named(root, nil, func(at, s string) {
			if at == of && !slices.ContainsFunc(tools, func(t *tool) bool { return name(t) == s }) {
				c.Wrong(when.Mark, "%s is never %q here, because of the tools and agents of this rule", of, s)
			}
		})
	}
}

var ofTool = map[string]func(t *tool) string{
	"tool":  func(t *tool) string { return t.Name },
	"agent": func(t *tool) string { return t.Agent },
}

// folded computes what depends on nothing.
func folded(env *cel.Env, parsed *cel.Ast) ast.Expr {
	root := parsed.NativeRep().Expr()
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return root
	}
	folding, err := cel.NewConstantFoldingOptimizer()
	if err != nil {
		return root
	}
	optimizer, err := cel.NewStaticOptimizer(folding)
	if err != nil {
		return root
	}
	if out, issues := optimizer.Optimize(env, checked); issues.Err() == nil {
		return out.NativeRep().Expr()
	}
	return root
}

// outcome is what a condition always is, if that is known.
func outcome(e ast.Expr, tools []*tool) (v, known bool) {
	if b, ok := literal[types.Bool](e); ok {
		return bool(b), true
	}
	if e.Kind() != ast.CallKind {
		return false, false
	}
	args := e.AsCall().Args()
	switch name := e.AsCall().FunctionName(); name {
	case operators.LogicalNot:
		v, known = outcome(args[0], tools)
		return !v, known
	case operators.LogicalAnd, operators.LogicalOr:
		or := name == operators.LogicalOr
		l, left := outcome(args[0], tools)
		r, right := outcome(args[1], tools)
		if left && l == or || right && r == or {
			return or, true
		}
		return !or, left && right
	case operators.Conditional:
		if v, known = outcome(args[0], tools); known {
			return outcome(args[2-btoi(v)], tools)
		}
	case operators.Equals, operators.NotEquals:
		v, known = always(args[0], args[1], tools)
		if !known {
			v, known = always(args[1], args[0], tools)
		}
		return v == (name == operators.Equals), known
	case operators.In:
		return always(args[0], args[1], tools)
	}
	return false, false
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// always is whether the tool or agent of the rule is one of these texts.
func always(e, texts ast.Expr, tools []*tool) (v, known bool) {
	name, ok := ofTool[chain(e)]
	var all []string
	eachText(texts, func(s string) { all = append(all, s) })
	if !ok || len(all) == 0 || len(tools) == 0 {
		return false, false
	}
	in := 0
	for _, t := range tools {
		in += btoi(slices.Contains(all, name(t)))
	}
	return in > 0, in == 0 || in == len(tools)
}

// wanted are the groups that a condition looks for in those of the requester:
// all of the file unless it does nothing but look for some.
func (n *names) wanted(root ast.Expr) []approvals.GroupID {
	const of = "requester.groups"
	some := map[approvals.GroupID]bool{}
	add := func(s string) {
		if id, ok := n.groups[s]; ok {
			some[id] = true
		}
	}
	all := false
	var walk func(e ast.Expr)
	walk = func(e ast.Expr) {
		switch {
		case chain(e) == of:
			all = true
			return
		case isCall(e, operators.In) && chain(e.AsCall().Args()[1]) == of:
			if s, ok := literal[types.String](e.AsCall().Args()[0]); ok {
				add(string(s))
				return
			}
		case e.Kind() == ast.ComprehensionKind && chain(e.AsComprehension().IterRange()) == of:
			if texts, ok := sought(e.AsComprehension()); ok {
				for _, s := range texts {
					add(s)
				}
				return
			}
		}
		for _, part := range children(e) {
			walk(part)
		}
	}
	if walk(root); all {
		return slices.Sorted(maps.Values(n.groups))
	}
	return slices.Sorted(maps.Keys(some))
}

func isCall(e ast.Expr, name string) bool {
	return e.Kind() == ast.CallKind && e.AsCall().FunctionName() == name && len(e.AsCall().Args()) == 2
}

// sought are the texts that exists(g, g == "a") or exists(g, g in ["a"]) looks
// for.
func sought(l ast.ComprehensionExpr) (texts []string, ok bool) {
	if b, is := literal[types.Bool](l.AccuInit()); !is || bool(b) || !isCall(l.LoopStep(), operators.LogicalOr) {
		return nil, false
	}
	test := l.LoopStep().AsCall().Args()[1]
	if !isCall(test, operators.Equals) && !isCall(test, operators.In) {
		return nil, false
	}
	args := test.AsCall().Args()
	if args[0].Kind() != ast.IdentKind || args[0].AsIdent() != l.IterVar() {
		return nil, false
	}
	eachText(args[1], func(s string) { texts = append(texts, s) })
	if args[1].Kind() == ast.ListKind {
		return texts, len(texts) == len(args[1].AsList().Elements())
	}
	return texts, args[1].Kind() == ast.LiteralKind
}
