package policy

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// A ranged value is what an exists, an all or another loop of a condition goes over.
// CEL takes an empty text for an empty list.
type ranged struct{ interpreter.InterpretableV2 }

// listsOnly makes it an error that a condition loops over what is neither a list nor an
// object.
func listsOnly(a *cel.Ast) interpreter.InterpretableDecoratorV2 {
	ranges := map[int64]bool{}
	visit(a, func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			ranges[e.AsComprehension().IterRange().ID()] = true
		}
	})
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if ranges[i.ID()] {
			return ranged{i}, nil
		}
		return i, nil
	}
}

// Exec implements [interpreter.InterpretableV2].
func (r ranged) Exec(f *interpreter.ExecutionFrame) ref.Val {
	return iterable(r.InterpretableV2.Exec(f))
}

// Eval implements [interpreter.Interpretable].
func (r ranged) Eval(a interpreter.Activation) ref.Val { return iterable(r.InterpretableV2.Eval(a)) }

func iterable(v ref.Val) ref.Val {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		return v
	}
	return types.MaybeNoSuchOverloadErr(v)
}
