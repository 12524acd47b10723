package policy

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// A comparison is an ==, a != or an in. It hides from the optimizer that it is a call.
type comparison struct{ interpreter.InterpretableV2 }

// alikeOnly makes a comparison of values of different types an error, where it would be
// false: some tools take "true" for true, or ["prod"] for "prod". Null may be compared with
// anything. What is in lists and objects of the same size is compared in the same way.
func alikeOnly(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	by := map[string]func(values ...ref.Val) ref.Val{operators.Equals: equal, operators.NotEquals: differ, operators.In: contained}[call.Function()]
	if by == nil {
		return i, nil
	}
	return comparison{interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), by)}, nil
}

func equal(values ...ref.Val) ref.Val {
	if unlike(values[0], values[1]) {
		return types.WrapErr(errUnlike)
	}
	return types.Equal(values[0], values[1])
}

func differ(values ...ref.Val) ref.Val {
	if same, ok := equal(values...).(types.Bool); ok {
		return !same
	}
	return types.WrapErr(errUnlike)
}

func contained(values ...ref.Val) ref.Val {
	of, ok := values[1].(traits.Container)
	if !ok {
		return types.MaybeNoSuchOverloadErr(values[1])
	}
	in := of.Contains(values[0])
	list, ok := of.(traits.Lister)
	if in != types.False || !ok {
		return in
	}
	others := false
	for each := list.Iterator(); each.HasNext() == types.True; {
		if !unlike(values[0], each.Next()) {
			return in
		}
		others = true
	}
	if others {
		return types.WrapErr(errUnlike)
	}
	return in
}

func unlike(a, b ref.Val) bool {
	a, b = held(a), held(b)
	one, other := jsonType(a), jsonType(b)
	if one == "" || other == "" || one != other {
		return one != "" && other != ""
	}
	switch a := a.(type) {
	case traits.Mapper:
		b, ok := b.(traits.Mapper)
		if !ok || a.Size() != b.Size() {
			return false
		}
		for keys := a.Iterator(); keys.HasNext() == types.True; {
			key := keys.Next()
			mine, _ := a.Find(key)
			if theirs, found := b.Find(key); found && unlike(mine, theirs) {
				return true
			}
		}
	case traits.Lister:
		b, ok := b.(traits.Lister)
		if !ok || a.Size() != b.Size() {
			return false
		}
		for mine, theirs := a.Iterator(), b.Iterator(); mine.HasNext() == types.True; {
			if unlike(mine.Next(), theirs.Next()) {
				return true
			}
		}
	}
	return false
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
