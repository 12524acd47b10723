package blockkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// object is a JSON object as Slack's API passes it around.
type object = map[string]any

// rule checks the value v that was found at the JSON pointer at.
type rule func(c *Checker, v any, at string)

type field struct {
	name     string
	required bool
	rule     rule
}

func need(name string, r rule) field { return field{name, true, r} }
func may(name string, r rule) field  { return field{name, false, r} }

// shape is an object with exactly these properties.
func shape(fields ...field) rule {
	known := map[string]rule{}
	for _, f := range fields {
		known[f.name] = f.rule
	}
	return func(c *Checker, v any, at string) {
		o, ok := v.(object)
		if !ok {
			c.fail(at, "must provide an object")
			return
		}
		for _, f := range fields {
			value, present := o[f.name]
			switch {
			case present:
				f.rule(c, value, at+"/"+f.name)
			case f.required:
				c.fail(at, "missing required field: %s", f.name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if known[name] == nil {
				c.fail(at, "invalid additional property: %s", name)
			}
		}
	}
}

// typed picks the rule by the object's "type".
func typed(kinds map[string]rule) rule {
	return func(c *Checker, v any, at string) {
		o, ok := v.(object)
		if !ok {
			c.fail(at, "must provide an object")
			return
		}
		value, present := o["type"]
		if !present {
			c.fail(at, "missing required field: type")
			return
		}
		kind, ok := value.(string)
		if !ok {
			c.fail(at+"/type", "must provide a string")
			return
		}
		r := kinds[kind]
		if r == nil {
			c.fail(at+"/type", "unsupported type: %s", kind)
			return
		}
		r(c, v, at)
	}
}

// also runs r and then what needs the whole object.
func also(r rule, more ...func(c *Checker, o object, at string)) rule {
	return func(c *Checker, v any, at string) {
		r(c, v, at)
		if o, ok := v.(object); ok {
			for _, m := range more {
				m(c, o, at)
			}
		}
	}
}

// text is a string of least to most characters.
func text(least, most int) rule {
	return func(c *Checker, v any, at string) {
		s, ok := v.(string)
		if !ok {
			c.fail(at, "must provide a string")
			return
		}
		n := utf8.RuneCountInString(s)
		if n < least {
			c.fail(at, "must be more than %d characters", least-1)
		}
		if n > most {
			c.fail(at, "must be less than %d characters", most+1)
		}
	}
}

func anyText(c *Checker, v any, at string) {
	if _, ok := v.(string); !ok {
		c.fail(at, "must provide a string")
	}
}

func enum(values ...string) rule {
	return func(c *Checker, v any, at string) {
		s, ok := v.(string)
		if !ok {
			c.fail(at, "must provide a string")
			return
		}
		if !slices.Contains(values, s) {
			c.fail(at, "must be a valid enum value")
		}
	}
}

func boolean(c *Checker, v any, at string) {
	if _, ok := v.(bool); !ok {
		c.fail(at, "must provide a boolean")
	}
}

// integer is a whole number of least to most.
func integer(least, most int64) rule {
	return func(c *Checker, v any, at string) {
		n, ok := v.(json.Number)
		if !ok {
			c.fail(at, "must provide an integer")
			return
		}
		i, err := strconv.ParseInt(n.String(), 10, 64)
		switch {
		case err != nil:
			c.fail(at, "must provide an integer")
		case i < least:
			c.fail(at, "must be greater than or equal to %d", least)
		case i > most:
			c.fail(at, "must be less than or equal to %d", most)
		}
	}
}

func number(c *Checker, v any, at string) {
	if _, ok := v.(json.Number); !ok {
		c.fail(at, "must provide a number")
	}
}

// list is an array of least to most items.
func list(least, most int, item rule) rule {
	return func(c *Checker, v any, at string) {
		items, ok := v.([]any)
		if !ok {
			c.fail(at, "must provide an array")
			return
		}
		if len(items) < least {
			c.fail(at, "must provide at least %d items", least)
		}
		if len(items) > most {
			c.fail(at, "no more than %d items allowed", most)
			return
		}
		for i, it := range items {
			item(c, it, fmt.Sprintf("%s/%d", at, i))
		}
	}
}

// orNull leaves a place in a list empty.
func orNull(r rule) rule {
	return func(c *Checker, v any, at string) {
		if v != nil {
			r(c, v, at)
		}
	}
}

// oneOf demands exactly one of two properties.
func oneOf(a, b string) func(*Checker, object, string) {
	return func(c *Checker, o object, at string) {
		_, hasA := o[a]
		_, hasB := o[b]
		switch {
		case hasA && hasB:
			c.fail(at, "must define only one of `%s` or `%s`", a, b)
		case !hasA && !hasB:
			c.fail(at, "must define either `%s` or `%s`", a, b)
		}
	}
}

// anything accepts every value.
func anything(*Checker, any, string) {}

// later breaks the cycles between rules.
func later(r func() rule) rule {
	return func(c *Checker, v any, at string) { r()(c, v, at) }
}
