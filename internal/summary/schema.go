package summary

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// A schema is the JSON Schema of a tool's arguments, as far as a template is
// checked against it.
type schema struct {
	root   map[string]any
	hidden approvals.Hidden
	looked *int // how many schemas were looked at; see maxLooked
}

func newSchema(raw json.RawMessage, writeOnly []string) (schema, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var root map[string]any
	if dec.Decode(&root) != nil || root == nil {
		return schema{}, false
	}
	return schema{root, approvals.HiddenAt(writeOnly), new(int)}, true
}

// check compares a template with a schema.
func (t Template) check(raw json.RawMessage, writeOnly []string) error {
	s, known := newSchema(raw, writeOnly)
	var problems []string
	for _, p := range t.parts {
		if p.expr == nil {
			continue
		}
		for i, a := range p.expr.args {
			if a.kind != operandPath {
				continue
			}
			err := errors.New("the tool has no schema, so nothing is known of its arguments; give it one, or write the template without arguments")
			if known {
				err = s.fits(p.expr, i)
			}
			if err != nil {
				problems = append(problems, wrongAt(a.at, "%s: %w", a.path, err).Error())
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

// fits says why an argument cannot stand where it does.
func (s schema) fits(e *expr, i int) error {
	found, err := s.resolve(e.args[i].path)
	if err != nil {
		return err
	}
	want := e.fn.fits
	switch {
	case i > 0 && e.fn.currency():
		if want = kindText; found.kinds == kindText {
			return found.currencies(e.or != nil)
		}
	case e.fn.name == "list" && found.kinds == kindList:
		switch k := s.items(found, e.args[i].path.each()); {
		case k == 0:
			return errors.New("the schema does not say what its items are; add their type, or use count")
		case k&^kindScalar != 0:
			return fmt.Errorf("its items are %s, and list shows texts and numbers; write [] and the name of a text in each item, or use count", k&^kindScalar)
		}
	}
	switch {
	case found.kinds == 0:
		return errors.New("the schema does not say what type it has; add its type, or leave it out")
	case found.kinds&^want != 0 && e.fn.name == "" && found.kinds&kindTruth != 0:
		return fmt.Errorf(`it is true or false; write {if %s "yes" "no"}`, e.args[i].path)
	case found.kinds&^want != 0 && e.fn.name == "" && found.kinds&kindList != 0:
		return fmt.Errorf("it is a list; write {list %s} or {count %s \"item\"}", e.args[i].path, e.args[i].path)
	case found.kinds&^want != 0:
		return fmt.Errorf("it is %s, and %s shows %s", found.kinds&^want, cmpName(e.fn.name), want)
	case found.optional && e.or == nil && !e.fn.bare:
		return fmt.Errorf(`a call may leave it out; add or "text" before the }, or use {if %s "text"}`, e.args[i].path)
	}
	return nil
}

func cmpName(fn string) string {
	if fn == "" {
		return "a placeholder without a function"
	}
	return fn
}

// A finding is what a schema says of an argument.
type finding struct {
	kinds    kinds // 0: it does not say
	optional bool  // a call may leave it out, or null
	all      []map[string]any
}

// currencies says why a text cannot be the currency of money.
func (f finding) currencies(orElse bool) error {
	if f.optional && !orElse {
		return errors.New("a call may leave the currency out; require it, or name one in quotes")
	}
	for _, alternative := range f.all {
		for _, v := range values(alternative) {
			if code, ok := v.(string); ok {
				if _, known := minorUnits(code); !known {
					return fmt.Errorf("it may be %q, which is not an ISO 4217 currency code", code)
				}
			}
		}
	}
	return nil
}

// resolve follows a path. An error says why nobody may show what is there, or
// that nothing is.
func (s schema) resolve(p path) (finding, error) {
	*s.looked = 0
	at, hidden := finding{all: s.alternatives(s.root, 0)}, s.hidden
	for i, st := range p {
		if hidden.Here() || slices.ContainsFunc(at.all, isWriteOnly) {
			return finding{}, errWriteOnly
		}
		next, err := s.below(at, st, p[:i])
		if err != nil {
			return finding{}, err
		}
		if st.each && i+1 < len(p) {
			if inner, err := s.belowItems(next, p[i+1:], p[:i+1]); err != nil {
				return finding{}, err
			} else if inner.optional {
				return finding{}, errors.New("some items may lack it, so not every item could be shown; use count")
			}
		}
		hidden = hidden.Below(st.name())
		at = next
	}
	if hidden.Any() || slices.ContainsFunc(at.all, func(a map[string]any) bool { return s.holdsWriteOnly(a, map[string]bool{}) }) {
		return finding{}, errWriteOnly
	}
	for _, a := range at.all {
		k := kindsOf(a)
		if k == 0 {
			at.kinds = 0
			return at, nil
		}
		at.optional = at.optional || k&kindNull != 0
		at.kinds |= k &^ kindNull
	}
	if p.each() {
		at.kinds = kindList
	}
	return at, nil
}

// belowItems looks at the rest of a path within one item.
func (s schema) belowItems(item finding, rest, before path) (finding, error) {
	item.optional = false
	for i, st := range rest {
		next, err := s.below(item, st, slices.Concat(before, rest[:i]))
		if err != nil {
			return finding{}, err
		}
		item = next
	}
	return item, nil
}

var errWriteOnly = errors.New("it is write-only, or contains something that is, so it can't be shown; leave it out")

// name is the key or index of a step, as pointers of hidden values have it.
func (s step) name() string {
	switch {
	case s.each:
		return "*"
	case s.isKey:
		return s.key
	}
	return strconv.Itoa(s.index)
}

// below takes one step into what at may be.
func (s schema) below(at finding, st step, before path) (finding, error) {
	next := finding{optional: at.optional}
	var known []string
	var free, other bool
	for _, a := range at.all {
		switch k := kindsOf(a); {
		case k == kindNull:
			next.optional = true
			continue
		case k == 0:
			free = true
			continue
		case st.isKey && k&kindObject == 0, !st.isKey && k&kindList == 0:
			other = true
			continue
		case k&kindNull != 0:
			next.optional = true
		}
		sub, optional, ok := s.child(a, st)
		if !ok {
			known, free = append(known, propertyNames(a)...), free || isFree(a, st)
			next.optional = true
			continue
		}
		next.optional = next.optional || optional
		next.all = append(next.all, s.alternatives(sub, 0)...)
	}
	switch {
	case len(next.all) > 0 && !other:
		return next, nil
	case len(next.all) == 0 && free:
		return next, fmt.Errorf("the schema does not list what is in %s; describe it there, or leave it out", before)
	case st.isKey && len(known) > 0:
		slices.Sort(known)
		return next, fmt.Errorf("there is no such argument; %s has %s", before, strings.Join(slices.Compact(known), ", "))
	case st.isKey && !other:
		return next, fmt.Errorf("there is no such argument; %s has none", before)
	case st.isKey:
		return next, fmt.Errorf("%s is not always an object", before)
	}
	return next, fmt.Errorf("%s is not always a list", before)
}

// child is the schema of one key or item.
func (s schema) child(a map[string]any, st step) (sub any, optional, ok bool) {
	if st.isKey {
		properties, _ := a["properties"].(map[string]any)
		if sub, ok := properties[st.key]; ok {
			required, _ := a["required"].([]any)
			return sub, !slices.Contains(required, any(st.key)), true
		}
		rest, ok := a["additionalProperties"].(map[string]any)
		return rest, true, ok
	}
	if prefix, ok := a["prefixItems"].([]any); ok {
		if st.each || st.index >= len(prefix) {
			return nil, false, false
		}
		return prefix[st.index], !atLeast(a, st.index+1), true
	}
	items, ok := a["items"].(map[string]any)
	return items, !st.each && !atLeast(a, st.index+1), ok
}

func atLeast(a map[string]any, n int) bool {
	number, _ := a["minItems"].(json.Number)
	least, err := number.Int64()
	return err == nil && least >= int64(n)
}

// items are the kinds of what is in a list, or 0 if the schema does not say.
// Where the path has [], the finding is of the items.
func (s schema) items(list finding, each bool) kinds {
	items := list.all
	if !each {
		items = nil
		for _, a := range list.all {
			if kindsOf(a) != kindNull {
				sub, _, _ := s.child(a, step{each: true})
				items = append(items, s.alternatives(sub, 0)...)
			}
		}
	}
	var k kinds
	for _, a := range items {
		one := kindsOf(a)
		if one == 0 {
			return 0
		}
		k |= one
	}
	return k
}

// isFree reports whether an object or list may hold what its schema does not name.
func isFree(a map[string]any, st step) bool {
	if !st.isKey {
		return true
	}
	_, some := a["properties"]
	_, patterns := a["patternProperties"]
	return patterns || !some && a["additionalProperties"] != false
}

func propertyNames(a map[string]any) []string {
	properties, _ := a["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}
