package blockkit

import (
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// once runs more on an object in which r found nothing wrong: what compares
// fields needs fields that are right by themselves.
func once(r rule, more func(c *Checker, o object, at string)) rule {
	return func(c *Checker, v any, at string) {
		before := len(c.problems)
		r(c, v, at)
		if o, ok := v.(object); ok && len(c.problems) == before {
			more(c, o, at)
		}
	}
}

const maxURL = 3000

// link is an absolute URL with one of the schemes; only mailto has no host.
func link(schemes ...string) rule {
	return func(c *Checker, v any, at string) {
		text(1, maxURL)(c, v, at)
		s, ok := v.(string)
		if n := utf8.RuneCountInString(s); !ok || n == 0 || n > maxURL {
			return
		}
		if u, err := url.Parse(s); err != nil || !slices.Contains(schemes, u.Scheme) || (u.Hostname() == "" && u.Scheme != "mailto") {
			c.fail(at, "invalid url")
		}
	}
}

// written is a text in a layout of package time, with every digit.
func written(layout, as string) rule {
	return func(c *Checker, v any, at string) {
		s, ok := v.(string)
		if !ok {
			c.fail(at, "must provide a string")
			return
		}
		if _, err := time.Parse(layout, s); err != nil || len(s) != len(layout) {
			c.fail(at, "must be in the format %s", as)
		}
	}
}

// focus is focus_on_load, which one element of a payload may set.
func focus(c *Checker, v any, at string) {
	boolean(c, v, at)
	if v != true {
		return
	}
	if c.focused {
		c.fail(at, "only one element can set `focus_on_load`")
	}
	c.focused = true
}

// leastBelowMost refuses an input that nothing can be long enough for.
func leastBelowMost(c *Checker, o object, at string) {
	least, hasLeast := Integer(o["min_length"])
	most, hasMost := Integer(o["max_length"])
	if hasLeast && hasMost && least > most {
		c.fail(at+"/min_length", "must be less than or equal to `max_length`")
	}
}

// offered demands that what is chosen at first can be chosen.
func offered(c *Checker, o object, at string) {
	options, _ := o["options"].([]any)
	groups, _ := o["option_groups"].([]any)
	for _, g := range groups {
		of, _ := g.(object)["options"].([]any)
		options = append(slices.Clone(options), of...)
	}
	there := func(chosen any) bool {
		return slices.ContainsFunc(options, func(o any) bool { return sameOption(o, chosen) })
	}
	if chosen, has := o["initial_option"]; has && !there(chosen) {
		c.fail(at+"/initial_option", "must match one of the options")
	}
	chosen, _ := o["initial_options"].([]any)
	for i, one := range chosen {
		if !there(one) {
			c.fail(at+"/initial_options/"+strconv.Itoa(i), "must match one of the options")
		}
	}
}

// sameOption compares what a person reads and the app gets. Whether emoji
// are converted may differ: Slack fills that in itself.
func sameOption(a, b any) bool {
	x, _ := a.(object)
	y, _ := b.(object)
	words := func(o object, name string) [2]string {
		t, _ := o[name].(object)
		return [2]string{str(t["type"]), str(t["text"])}
	}
	return x["value"] == y["value"] && words(x, "text") == words(y, "text") && words(x, "description") == words(y, "description")
}
