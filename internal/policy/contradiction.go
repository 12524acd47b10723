package policy

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"
)

// impossible reports whether a condition can never be true, or with want false
// never be false, because what it says of one term contradicts itself; about
// names that term. A term is any expression: it has one value all over a
// condition. What is said of it is found in comparisons with constants, in the
// beginnings, ends and parts of texts, in has, and where the same expression is
// to be true and false. Anything else is taken for possible, so that a condition
// which some call satisfies is never called impossible.
func impossible(root ast.Expr, want bool) (about string, is bool) {
	s := &search{left: maxSearch}
	if s.possible([]goal{{root, want}}, nil) {
		return "", false
	}
	return s.about, true
}

// maxSearch bounds the steps of a search. Beyond it everything is possible.
const maxSearch = 5_000

// A goal is an expression that is to have this value. To be an error is neither:
// so both sides of an && that is true are true, and one side of an && that is
// false is false.
type goal struct {
	e    ast.Expr
	want bool
}

// A search looks for a way in which several goals are reached together.
type search struct {
	left  int
	about string // the term of all contradictions so far; empty if there are several
	found bool   // there was one
}

func (s *search) possible(goals []goal, known claims) bool {
	if s.left--; s.left < 0 || len(goals) == 0 {
		return true
	}
	g, rest := goals[0], goals[1:]
	with := func(more ...goal) bool { return s.possible(append(more, rest...), known) }
	if b, ok := literal[types.Bool](g.e); ok {
		return bool(b) == g.want && s.possible(rest, known)
	}
	if g.e.Kind() == ast.CallKind {
		args := g.e.AsCall().Args()
		switch name := g.e.AsCall().FunctionName(); name {
		case operators.LogicalNot:
			return with(goal{args[0], !g.want})
		case operators.LogicalAnd, operators.LogicalOr:
			l, r := goal{args[0], g.want}, goal{args[1], g.want}
			if (name == operators.LogicalAnd) == g.want {
				return with(l, r)
			}
			return with(l) || with(r)
		case operators.Conditional:
			return with(goal{args[0], true}, goal{args[1], g.want}) || with(goal{args[0], false}, goal{args[2], g.want})
		}
	}
	if !s.someElement(g) {
		return false
	}
	c := claimOf(g)
	if known.contradict(c) {
		s.blame(c.term)
		return false
	}
	return s.possible(rest, append(slices.Clip(known), c))
}

// someElement reports whether an exists may be true, and an all false: its own
// condition must be so for one element. Of anything else it says nothing.
func (s *search) someElement(g goal) bool {
	if g.e.Kind() != ast.ComprehensionKind {
		return true
	}
	l, name := g.e.AsComprehension(), operators.LogicalOr
	if !g.want {
		name = operators.LogicalAnd
	}
	begins, ok := literal[types.Bool](l.AccuInit())
	if !ok || bool(begins) == g.want || !isCall(l.LoopStep(), name) || l.HasIterVar2() {
		return true
	}
	return s.possible([]goal{{l.LoopStep().AsCall().Args()[1], g.want}}, nil)
}

// blame keeps what the contradictions are about while that is one term.
func (s *search) blame(term ast.Expr) {
	about := chain(term)
	if about == "" {
		about, _ = parser.Unparse(term, ast.NewSourceInfo(nil)) // where it cannot be written, it has no name
	}
	if s.found && s.about != about {
		about = ""
	}
	s.about, s.found = about, true
}
