package policy

import (
	"errors"
	"slices"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// A comparison is an ==, a !=, an in, a <, a <=, a > or a >=. It hides from the optimizer
// that it is a call.
type comparison struct{ interpreter.InterpretableV2 }

var comparisons = map[string]func(values ...ref.Val) ref.Val{
	operators.Equals: equal, operators.NotEquals: differ, operators.In: contained,
	operators.Less:          ordered(types.IntNegOne),
	operators.LessEquals:    ordered(types.IntNegOne, types.IntZero),
	operators.Greater:       ordered(types.IntOne),
	operators.GreaterEquals: ordered(types.IntOne, types.IntZero),
}

// alikeOnly makes a comparison of values of different types an error, where it would be
// false: some tools take "true" for true, or ["prod"] for "prod". Null may be compared with
// anything. What is in lists and objects of the same size is compared in the same way. So
// is, for every comparison, a whole number with the double to which it would be rounded.
func alikeOnly(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	by := comparisons[call.Function()]
	if by == nil {
		return i, nil
	}
	return comparison{interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), by)}, nil
}

func equal(values ...ref.Val) ref.Val {
	if err := incomparable(values[0], values[1]); err != nil {
		return types.WrapErr(err)
	}
	return types.Equal(values[0], values[1])
}

func differ(values ...ref.Val) ref.Val {
	same := equal(values...)
	if same, ok := same.(types.Bool); ok {
		return !same
	}
	return same
}

func contained(values ...ref.Val) ref.Val {
	of, ok := values[1].(traits.Container)
	if !ok {
		return types.MaybeNoSuchOverloadErr(values[1])
	}
	list, ok := of.(traits.Lister)
	if !ok {
		return of.Contains(values[0])
	}
	var unlike, rounded error
	alike := false
	for each := list.Iterator(); each.HasNext() == types.True; {
		item := each.Next()
		switch err := incomparable(values[0], item); {
		case errors.Is(err, errUnlike):
			unlike = err
		case err != nil:
			rounded = err
		case types.Equal(values[0], item) == types.True:
			return types.True
		default:
			alike = true
		}
	}
	switch {
	case rounded != nil:
		return types.WrapErr(rounded)
	case unlike != nil && !alike:
		return types.WrapErr(unlike)
	}
	return types.False
}

// ordered is true if the first value compares with the second in one of these ways.
func ordered(ways ...types.Int) func(values ...ref.Val) ref.Val {
	return func(values ...ref.Val) ref.Val {
		of, ok := values[0].(traits.Comparer)
		if !ok {
			return types.MaybeNoSuchOverloadErr(values[0])
		}
		if rounds(values[0], values[1]) {
			return types.WrapErr(errRounded)
		}
		way, ok := of.Compare(values[1]).(types.Int)
		if !ok {
			return types.MaybeNoSuchOverloadErr(values[1])
		}
		return types.Bool(slices.Contains(ways, way))
	}
}

// rounds reports whether one of the two is a whole number that no double holds, and the
// other the double next to it: CEL takes them for equal.
func rounds(a, b ref.Val) bool {
	d, ok := a.(types.Double)
	if !ok {
		if d, ok = b.(types.Double); !ok {
			return false
		}
		b = a
	}
	switch whole := b.(type) {
	case types.Int:
		return types.Double(whole) == d && !equals(float64(d), int64(whole))
	case types.Uint:
		return types.Double(whole) == d && !equals(float64(d), uint64(whole))
	}
	return false
}

// incomparable returns why it can't be said whether the two are equal, or nil.
func incomparable(a, b ref.Val) error {
	a, b = held(a), held(b)
	one, other := jsonType(a), jsonType(b)
	switch {
	case one == "" || other == "":
		return nil
	case one != other:
		return errUnlike
	case rounds(a, b):
		return errRounded
	}
	switch a := a.(type) {
	case traits.Mapper:
		b, ok := b.(traits.Mapper)
		if !ok || a.Size() != b.Size() {
			return nil
		}
		for keys := a.Iterator(); keys.HasNext() == types.True; {
			key := keys.Next()
			mine, _ := a.Find(key)
			if theirs, found := b.Find(key); found {
				if err := incomparable(mine, theirs); err != nil {
					return err
				}
			}
		}
	case traits.Lister:
		b, ok := b.(traits.Lister)
		if !ok || a.Size() != b.Size() {
			return nil
		}
		for mine, theirs := a.Iterator(), b.Iterator(); mine.HasNext() == types.True; {
			if err := incomparable(mine.Next(), theirs.Next()); err != nil {
				return err
			}
		}
	}
	return nil
}

// held returns what an optional value holds, and any other value as it is.
func held(v ref.Val) ref.Val {
	if o, ok := v.(*types.Optional); ok && o.HasValue() {
		return held(o.GetValue())
	}
	return v
}

// jsonType returns the type that a value has in JSON; empty for null, and for what JSON
// does not have.
func jsonType(v ref.Val) string {
	switch v.(type) {
	case types.String:
		return "text"
	case types.Bool:
		return "truth"
	case types.Int, types.Uint, types.Double:
		return "number"
	case traits.Mapper:
		return "object"
	case traits.Lister:
		return "list"
	}
	return ""
}
