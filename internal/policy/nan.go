package policy

import (
	"math"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// A numeric is a call in a condition, such as a conversion or a division. A result
// that is NaN is an error: every comparison with it is false, so that a deny would
// not hold, and what has a ! before it would.
type numeric struct{ interpreter.InterpretableCall }

// noNaN makes every call of a condition a [numeric] one.
func noNaN(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if call, ok := i.(interpreter.InterpretableCall); ok {
		return numeric{call}, nil
	}
	return i, nil
}

// Exec implements [interpreter.InterpretableV2].
func (n numeric) Exec(f *interpreter.ExecutionFrame) ref.Val {
	return orError(n.InterpretableCall.Exec(f))
}

// Eval implements [interpreter.Interpretable].
func (n numeric) Eval(a interpreter.Activation) ref.Val { return orError(n.InterpretableCall.Eval(a)) }

func orError(v ref.Val) ref.Val {
	if d, ok := v.(types.Double); ok && math.IsNaN(float64(d)) {
		return types.WrapErr(errNaN)
	}
	return v
}
