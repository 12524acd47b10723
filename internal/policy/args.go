package policy

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
)

// noArgs are the arguments of a call without any.
var noArgs = map[string]any{}

// readArgs reads arguments as conditions see them. Whole numbers stay exact;
// one that nothing can hold is an error to whoever looks at it.
func readArgs(raw json.RawMessage, s *shape) (map[string]any, error) {
	if len(raw) == 0 {
		return noArgs, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, errArgs
	}
	if m == nil {
		return noArgs, nil
	}
	exact(m, s)
	return m, nil
}

// nothing is known of what has no shape.
var nothing = &shape{}

// exact replaces the numbers in v, in place where it can.
func exact(v any, s *shape) any {
	if s == nil {
		s = nothing
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			f := s.fields[k]
			if f == nil {
				f = s.rest
			}
			switch e.(type) {
			case json.Number, map[string]any, []any:
				v[k] = exact(e, f)
			}
		}
	case []any:
		for i, e := range v {
			v[i] = exact(e, s.elem)
		}
	case json.Number:
		return number(string(v), s.kind)
	}
	return v
}

// number reads a number as what the schema says it is: a double unless that
// would round a whole number, an int if it is whole.
func number(n, kind string) any {
	whole, isWhole := integer(n, kind)
	if kind == "number" || !isWhole {
		f, err := strconv.ParseFloat(n, 64)
		if err != nil {
			return types.NewErr("a number is out of range")
		}
		if whole == nil || equals(f, whole) {
			return f
		}
	}
	if whole == nil {
		return types.NewErr("a number is out of range")
	}
	return whole
}

// integer reads a whole number into an int64 or uint64, or nothing if it fits
// neither. 1.0 and 1e3 are whole where the schema wants an integer.
func integer(n, kind string) (v any, isWhole bool) {
	if strings.ContainsAny(n, ".eE") {
		if kind != "integer" || len(n) > 40 {
			return nil, false
		}
		if i := strings.IndexAny(n, "eE"); i >= 0 {
			if e, err := strconv.Atoi(n[i+1:]); err != nil || e > 20 || e < -40 {
				return nil, true
			}
		}
		r, ok := new(big.Rat).SetString(n)
		if !ok || !r.IsInt() {
			return nil, false
		}
		n = r.Num().String()
	}
	if i, err := strconv.ParseInt(n, 10, 64); err == nil {
		return i, true
	}
	if u, err := strconv.ParseUint(n, 10, 64); err == nil {
		return u, true
	}
	return nil, true
}

// equals reports whether the double is exactly the whole number.
func equals(f float64, whole any) bool {
	b := new(big.Float).SetFloat64(f)
	switch v := whole.(type) {
	case int64:
		return b.Cmp(new(big.Float).SetInt64(v)) == 0
	case uint64:
		return b.Cmp(new(big.Float).SetUint64(v)) == 0
	}
	return false
}
