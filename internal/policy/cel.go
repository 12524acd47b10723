package policy

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/countersign/countersign/internal/strictyaml"
)

// The bounds of a condition. The cost is counted in steps, and every text that
// is looked at costs a step for ten of its letters.
const (
	maxCost       = 250_000
	maxExpression = 4 << 10
)

// base is what every condition may use: the standard library of CEL, optional
// fields, and comparison of numbers whatever their type.
var base = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(64),
	}
	for _, v := range variables {
		options = append(options, cel.Variable(v.name, v.t))
	}
	return cel.NewEnv(options...)
})

// untyped lets conditions look at any arguments: the environment in which
// programs run, whatever they were checked against.
var untyped = sync.OnceValues(func() (*cel.Env, error) {
	env, err := base()
	if err != nil {
		return nil, err
	}
	return env.Extend(cel.Variable("args", cel.DynType))
})

// A checker type-checks conditions for the tools that they can be asked of.
type checker struct {
	*strictyaml.Problems
	names  *names
	tools  []*tool
	remote []string          // agents whose tools are not known
	envs   map[string]*typed // by schema

	several bool // the condition at hand is for several tools
}

type typed struct {
	env      *cel.Env
	provider *provider
}

func (c *checker) typed(t *tool) (*typed, error) {
	key := string(t.Schema)
	if known := c.envs[key]; known != nil {
		return known, nil
	}
	env, err := base()
	if err != nil {
		return nil, err
	}
	p := &provider{Provider: env.CELTypeProvider(), shapes: map[string]*shape{}}
	of := p.typeOf(t.shape, "args")
	if t.shape.kind == "" {
		of = cel.DynType
	}
	extended, err := env.Extend(cel.CustomTypeProvider(p), cel.Variable("args", of))
	if err != nil {
		return nil, err
	}
	c.envs[key] = &typed{extended, p}
	return c.envs[key], nil
}

// compile returns the program of a condition that is well typed for each of
// the tools, or nil after it has said what is wrong.
func (c *checker) compile(when text, tools []*tool) cel.Program {
	env, err := untyped()
	if err != nil {
		c.Wrong(when.Mark, "%s", err)
		return nil
	}
	parsed, issues := env.Parse(when.Value)
	if issues.Err() != nil {
		c.issues(when, issues, nil, nil)
		return nil
	}
	before := c.Count()
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		c.issues(when, issues, nil, nil)
		return nil
	}
	c.constants(when, checked)
	c.names.today = c.names.today || looksAt(checked, func(name string) bool { return name == executedToday })
	if !looksAt(checked, func(string) bool { return true }) {
		c.Wrong(when.Mark, "does not depend on the call, so its result never changes; remove the condition or the rule")
	}
	c.several = len(tools) > 1
	if looksAt(checked, func(name string) bool { return name == "args" }) {
		for _, t := range tools {
			if c.check(when, parsed, t); c.Count() > before {
				return nil // the first tool says enough
			}
		}
	}
	if out := checked.OutputType(); !out.IsExactType(types.BoolType) && !out.IsExactType(types.DynType) {
		c.Wrong(when.Mark, "must be true or false, but is %s", plainType(cel.FormatCELType(out)))
	}
	if c.affordable(when, env, checked); c.Count() > before {
		return nil
	}
	program, err := env.Program(checked, cel.CostLimit(maxCost), cel.CostTracking(actual{}), cel.EvalOptions(cel.OptOptimize),
		cel.CustomDecoratorV2(noNaN), cel.CustomDecoratorV2(alikeOnly), cel.CustomDecoratorV2(boundedMatch),
		cel.CustomDecoratorV2(listsOnly(checked)))
	if err != nil {
		c.Wrong(when.Mark, "cannot be used: %s", firstLine(err.Error()))
		return nil
	}
	return program
}

func (c *checker) check(when text, parsed *cel.Ast, t *tool) {
	typed, err := c.typed(t)
	if err != nil {
		c.Wrong(when.Mark, "cannot be checked for %s: %s", t.Name, firstLine(err.Error()))
		return
	}
	typed.provider.missing, typed.provider.there = "", nil
	checked, issues := typed.env.Check(parsed)
	if issues.Err() != nil {
		c.issues(when, issues, t, typed.provider)
		return
	}
	if out := checked.OutputType(); !out.IsExactType(types.BoolType) && !out.IsExactType(types.DynType) {
		c.Wrong(when.Mark, "must be true or false, but is %s for %s", plainType(cel.FormatCELType(out)), t.Name)
	}
	c.enums(when, checked, t)
}

// issues says what the checker found, at its place in the file.
func (c *checker) issues(when text, issues *cel.Issues, t *tool, p *provider) {
	for _, e := range issues.Errors() {
		at := when.Mark
		if when.Offset >= 0 && e.Location.Line() == 1 {
			at.Col += when.Offset + e.Location.Column()
		}
		what, tail := plainType(firstLine(e.Message)), ""
		if name, ok := between(what, "undefined field '", "'"); ok && p != nil && p.missing != "" {
			what = fmt.Sprintf("there is no argument %q", name)
			tail = strictyaml.HintOr(p.missing, p.there)
		}
		if name, ok := between(what, "undeclared reference to '", "'"); ok {
			known := []string{"args"}
			for _, v := range variables {
				known = append(known, v.name)
			}
			what, tail = fmt.Sprintf("there is no %q", name), strictyaml.HintOr(name, known)
			if operatorOf[strings.ToLower(name)] != "" {
				tail = inWords(when.Value)
			}
		}
		if strings.HasPrefix(what, "Syntax error") {
			what, tail = plainSyntax(what), inWords(when.Value)
		}
		what = plainOverload(what)
		if t != nil {
			what += fmt.Sprintf(" (for the tool %s of %s)", t.Name, t.Agent)
			if c.several {
				tail += "; name under tools those that it is for"
			}
		}
		c.Wrong(at, "%s%s", what, tail)
	}
}

func between(s, before, after string) (string, bool) {
	_, rest, ok := strings.Cut(s, before)
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, after)
	return name, ok
}

// plainType leaves out what CEL says of its own inside.
func plainType(s string) string {
	return strings.NewReplacer(" (in container '')", "", "wrapper(", "nullable(").Replace(s)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimPrefix(line, "ERROR: <input>:1:1: ")
}

func looksAt(a *cel.Ast, is func(name string) bool) bool {
	found := false
	visit(a, func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && is(e.AsIdent())
	})
	return found
}

func visit(a *cel.Ast, each func(ast.Expr)) {
	ast.PreOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(each))
}

// enums refuses a comparison with what the schema says never comes.
func (c *checker) enums(when text, a *cel.Ast, t *tool) {
	compared(a, func(e ast.Expr, s string) {
		at, ok := strings.CutPrefix(chain(e), "args.")
		if !ok {
			return
		}
		sh := t.shape
		for part := range strings.SplitSeq(at, ".") {
			if sh = sh.fields[part]; sh == nil {
				return
			}
		}
		if len(sh.enum) > 0 && !slices.Contains(sh.enum, s) {
			c.Wrong(when.Mark, "args.%s is never %q (for the tool %s of %s)%s", at, s, t.Name, t.Agent, strictyaml.HintOr(s, sh.enum))
		}
	})
}

// compared goes over what is compared with a text, looked up by one, or looked
// for in a list of some.
func compared(a *cel.Ast, each func(e ast.Expr, s string)) {
	visit(a, func(e ast.Expr) {
		if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		l, r := e.AsCall().Args()[0], e.AsCall().Args()[1]
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals, operators.In:
			eachText(l, func(s string) { each(r, s) })
			eachText(r, func(s string) { each(l, s) })
		case operators.Index:
			eachText(r, func(s string) { each(l, s) })
		}
	})
}

func eachText(e ast.Expr, each func(s string)) {
	if e.Kind() == ast.ListKind {
		for _, i := range e.AsList().Elements() {
			eachText(i, each)
		}
		return
	}
	if e.Kind() != ast.LiteralKind {
		return
	}
	if s, ok := e.AsLiteral().(types.String); ok {
		each(string(s))
	}
}

// field is the name of a field that is looked up by index, as in args["x"].
func field(e ast.Expr) (name string, ok bool) {
	if !isCall(e, operators.Index) {
		return "", false
	}
	s, ok := literal[types.String](e.AsCall().Args()[1])
	return string(s), ok
}

// chain is a chain of names with dots, or empty. A field that is looked up by
// index is in it if it could be written with a dot.
func chain(e ast.Expr) string {
	if e.Kind() == ast.IdentKind {
		return e.AsIdent()
	}
	if name, ok := field(e); ok && plainName.MatchString(name) {
		if of := chain(e.AsCall().Args()[0]); of != "" {
			return of + "." + name
		}
		return ""
	}
	if e.Kind() != ast.SelectKind {
		return ""
	}
	of := chain(e.AsSelect().Operand())
	if of == "" {
		return ""
	}
	return of + "." + e.AsSelect().FieldName()
}
