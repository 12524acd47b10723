package policy

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// What a condition is taken to look at when its cost is estimated. Arguments may
// be larger: then it is stopped at run time.
const (
	usualLetters  = 256 // of a text
	usualElements = 10  // of a list or an object
)

// usual estimates by usual arguments, and knows the exact size of what is
// written in the condition itself.
type usual struct{}

// EstimateSize implements [cost.Estimator].
func (usual) EstimateSize(of cost.AstNode) *cost.SizeEstimate {
	if known := of.ComputedSize(); known != nil {
		return nil
	}
	most := uint64(usualElements)
	if t := of.Type(); t != nil && (t.Kind() == cel.StringKind || t.Kind() == cel.BytesKind) {
		most = usualLetters
	}
	return &cost.SizeEstimate{Min: 0, Max: most}
}

// EstimateCallCost implements [cost.Estimator].
func (usual) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// affordable refuses a condition that would run out of its budget by what is
// written in it, or with arguments of usual size.
func (c *checker) affordable(when text, env *cel.Env, checked *cel.Ast) {
	estimate, err := env.EstimateCost(checked, usual{})
	switch {
	case err != nil:
		c.Wrong(when.Mark, "cannot be used: %s", firstLine(err.Error()))
	case estimate.Max > maxCost:
		c.Wrong(when.Mark, "would take %d steps, but at most %d are allowed; loop over fewer or shorter lists", estimate.Max, uint64(maxCost))
	}
}

// actual counts the steps of calls that take longer for a larger value. CEL counts one
// step for them where it does not know the type of the value in advance.
type actual struct{}

// CallCost implements [cost.ActualCostEstimator].
func (actual) CallCost(function, overload string, values []ref.Val, _ ref.Val) *uint64 {
	steps := uint64(1)
	switch {
	case overload == givenPattern:
		steps = matchSteps(values[0], values[1])
	case function == operators.In && overload == "":
		list, ok := values[1].(traits.Lister)
		if !ok {
			return nil
		}
		size, _ := list.Size().(types.Int)
		steps += uint64(size) //nolint:gosec // no list has a negative size
	case function == operators.Add && overload == "", function == overloads.Size, overloads.IsTypeConversionFunction(function):
		for _, v := range values {
			if s, ok := v.(types.String); ok {
				steps += uint64(len(s)) / 10
			}
		}
	default:
		return nil
	}
	return &steps
}

// givenPattern is the overload of a matches whose pattern is not written in the condition.
const givenPattern = "matches_given_pattern"

// boundedMatch makes a matches with a pattern that a call may choose an error where it
// would take too long. The steps that CEL counts for it follow the length of the pattern:
// that of (a?){1000} has 10 letters, and takes as long as one of 2000.
func boundedMatch(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || call.Function() != overloads.Matches || len(call.Args()) != 2 {
		return i, nil
	}
	if _, written := call.Args()[1].(interpreter.InterpretableConst); written {
		return i, nil
	}
	return interpreter.NewCall(call.ID(), call.Function(), givenPattern, call.Args(), func(values ...ref.Val) ref.Val {
		text, ok := values[0].(types.String)
		switch {
		case !ok:
			return types.MaybeNoSuchOverloadErr(values[0])
		case matchSteps(text, values[1]) > maxCost:
			return types.WrapErr(errCost)
		}
		return text.Match(values[1])
	}), nil
}

// matchSteps returns the steps of a matches by the size that its pattern has once repeats
// are written out: those of reading the pattern, and those of the search.
func matchSteps(text, pattern ref.Val) uint64 {
	t, isText := text.(types.String)
	p, isPattern := pattern.(types.String)
	if !isText || !isPattern {
		return 1
	}
	if len(p) > maxExpression {
		return maxCost + 1
	}
	size, err := types.RegexProgramSize(string(p))
	if err != nil {
		return 1
	}
	return uint64(size) + uint64(len(t)/10+1)*uint64(size/4+1) //nolint:gosec // no size is negative
}
