package policy

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cel.dev/cel-go/common/ast"
)

// noArgs are the arguments of a call without any.
var noArgs = map[string]any{}

// readArgs reads arguments as conditions see them. Whole numbers stay exact. A
// number that nothing can hold, wherever it stands, is an error of all of them:
// inside a list, an equality would take it for a number that differs.
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
	switch {
	case recased(m, s, true):
		return nil, errRecased
	case !exact(m, s):
		return nil, errNumber
	}
	return m, nil
}

// recased reports whether some object has a key that the schema does not name, and
// that differs only in case from one that it names; where no schema says what the
// keys are, and among the arguments themselves, from any other key. A tool that
// ignores case would take the one for the other, and the condition would judge what
// does not run.
func recased(v any, s *shape, arguments bool) bool {
	if s == nil {
		s = nothing
	}
	switch v := v.(type) {
	case map[string]any:
		known := make(map[string]bool, len(s.fields))
		for name := range s.fields {
			known[caseless(name)] = true
		}
		for k, e := range v {
			f := s.fields[k]
			if f == nil {
				if name := caseless(k); known[name] {
					return true
				} else if arguments || s.kind == "" {
					known[name] = true
				}
				f = s.rest
			}
			if recased(e, f, false) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return recased(e, s.elem, false) })
	}
	return false
}

// A lookup is an argument that a condition names.
type lookup struct {
	of       []string // the names that lead from args to the object that it is in
	name     string
	caseless string // the same for all spellings of the name
	anywhere bool   // the object that it is in is not known
}

// lookups are the arguments that a condition names. What it looks for in something that it
// makes, such as what a filter leaves, may be in any object of the arguments.
func lookups(root ast.Expr) []lookup {
	var all []lookup
	named(root, nil, func(at, name string) {
		switch of := strings.Split(at, "."); of[0] {
		case "args":
			all = append(all, lookup{of: of[1:], name: name, caseless: caseless(name)})
		case "", madePlace:
			all = append(all, lookup{name: name, caseless: caseless(name), anywhere: true})
		}
	})
	return all
}

// respelled reports whether args have a key in place of this one that differs from it
// only in case, and of which the schema says nothing: that of a tool of a remote agent is
// not known. arguments is whether args are all the arguments of the call.
func (l lookup) respelled(args any, s *shape, arguments bool) bool {
	switch args := args.(type) {
	case []any: // the condition names what its items have
		var items *shape
		if s != nil {
			items = s.elem
		}
		return slices.ContainsFunc(args, func(item any) bool { return l.respelled(item, items, false) })
	case map[string]any:
		if len(l.of) > 0 {
			of := l.of[0]
			l.of = l.of[1:]
			return l.respelled(args[of], s.field(of), false)
		}
		if s != nil && s.kind != "" && !arguments {
			return false // it says which keys there are, or that they are data
		}
		for key := range args {
			if key != l.name && s.field(key) == nil && strings.EqualFold(key, l.name) {
				return true
			}
		}
	}
	return false
}

// spellings are how the keys of objects are spelled of which the schema says nothing, by what
// is the same for all spellings; empty if there are several. Most names are in no other
// letters anywhere, and need not be looked for.
type spellings map[string]string

func (s spellings) read(v any, of *shape, arguments bool) {
	switch v := v.(type) {
	case map[string]any:
		open := arguments || of == nil || of.kind == ""
		for key, e := range v {
			f := of.field(key)
			s.read(e, f, false)
			if !open || f != nil {
				continue // the schema says that there is such a key, or that keys are data
			}
			id := caseless(key)
			if other, there := s[id]; there && other != key {
				key = ""
			}
			s[id] = key
		}
	case []any:
		var items *shape
		if of != nil {
			items = of.elem
		}
		for _, e := range v {
			s.read(e, items, false)
		}
	}
}

// others reports whether some object has a key that differs from the name only in case.
func (s spellings) others(l lookup) bool {
	key, there := s[l.caseless]
	return there && key != l.name
}

// caseless is the same for texts that are [strings.EqualFold].
func caseless(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// nothing is known of what has no shape.
var nothing = &shape{}

// exact replaces the numbers in an object or a list, and reports whether all of
// them could be held.
func exact(v any, s *shape) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			f := s.fields[k]
			if f == nil {
				f = s.rest
			}
			n, ok := value(e, f)
			if !ok {
				return false
			}
			v[k] = n
		}
	case []any:
		for i, e := range v {
			n, ok := value(e, s.elem)
			if !ok {
				return false
			}
			v[i] = n
		}
	}
	return true
}

func value(v any, s *shape) (any, bool) {
	if s == nil {
		s = nothing
	}
	if n, ok := v.(json.Number); ok {
		return number(string(n), s.kind)
	}
	return v, exact(v, s)
}

// number reads a number as what the schema says it is: a double unless that
// would round a whole number, an int if it is whole.
func number(n, kind string) (v any, ok bool) {
	whole, isWhole := integer(n, kind)
	if kind == "number" || !isWhole {
		f, err := strconv.ParseFloat(n, 64)
		if err != nil || f == 0 && !isZero(n) {
			return nil, false
		}
		if whole == nil || equals(f, whole) {
			return f, true
		}
	}
	return whole, whole != nil
}

// isZero reports whether a number is written with no digit but zero.
func isZero(n string) bool {
	digits, _, _ := strings.Cut(strings.ToLower(n), "e")
	return !strings.ContainsAny(digits, "123456789")
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
