package summary

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// Of returns the summary of a call: one line of at most [Limit] characters, never
// empty. The template is that of the approval, or empty; tool is the name of the
// tool, args are the arguments that the call would run with now, and writeOnly
// are the pointers of those that nobody reads, as in [approvals.Approval].
//
// It never fails, and the same call has the same line everywhere. The line is
// text of models and people: whoever draws it marks and escapes it.
func Of(template, tool string, args json.RawMessage, writeOnly []string) string {
	hidden := approvals.HiddenAt(writeOnly)
	fields, ok := inOrder(args)
	if !ok && len(bytes.TrimSpace(args)) > 0 {
		return Words(tool)
	}
	if template != "" {
		if t, err := Parse(template); err == nil {
			if line, fits := t.render(object(fields), hidden); fits {
				return line
			}
		}
	}
	return fallback(tool, fields, hidden)
}

// inOrder returns the fields of an object as they are written, with their numbers as they
// are written, and whether it is an object and nothing else.
func inOrder(args json.RawMessage) ([]field, bool) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var all []field
	for dec.More() {
		key, err := dec.Token()
		f := field{}
		if f.name, _ = key.(string); errors.Join(err, dec.Decode(&f.value)) != nil {
			return nil, false
		}
		all = append(all, f)
	}
	if _, err := dec.Token(); err != nil {
		return nil, false
	}
	_, err := dec.Token()
	return all, errors.Is(err, io.EOF)
}

// object returns the fields by their names: of those with the same name, the last.
func object(fields []field) map[string]any {
	all := make(map[string]any, len(fields))
	for _, f := range fields {
		all[f.name] = f.value
	}
	return all
}

// render returns the line, unless the template does not fit the arguments.
func (t Template) render(args map[string]any, hidden approvals.Hidden) (string, bool) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			b.WriteString(p.text)
			continue
		}
		text, ok := call{p.expr, args, hidden}.text()
		if !ok {
			return "", false
		}
		b.WriteString(text)
	}
	line := cut(oneLine(b.String()), Limit)
	return line, line != ""
}

// A call is one placeholder with the arguments of a call.
type call struct {
	*expr
	arguments map[string]any
	hidden    approvals.Hidden
}

func (c call) text() (string, bool) {
	if c.fn.bare {
		return c.fn.render(c)
	}
	v, ok := c.value(0)
	switch {
	case !ok:
		return "", false
	case !given(v) && c.or != nil:
		return *c.or, true
	case v == nil:
		return "", false
	}
	return c.fn.render(c)
}

// value returns an argument, or nil for one that is not there. What is hidden, or
// holds something hidden, does not fit.
func (c call) value(i int) (any, bool) {
	if c.arguments == nil {
		return nil, true
	}
	return lookup(c.arguments, c.args[i].path, c.hidden)
}

func lookup(v any, p path, hidden approvals.Hidden) (any, bool) {
	for i, s := range p {
		if hidden.Here() {
			return nil, false
		}
		if v == nil {
			return nil, true
		}
		if s.each {
			return each(v, p[i+1:], hidden)
		}
		if s.isKey {
			object, ok := v.(map[string]any)
			if !ok {
				return nil, false
			}
			v, hidden = object[s.key], hidden.Below(s.key)
			continue
		}
		list, ok := v.([]any)
		if !ok {
			return nil, false
		}
		if v, hidden = nil, hidden.Below(strconv.Itoa(s.index)); s.index < len(list) {
			v = list[s.index]
		}
	}
	return v, !hidden.Any()
}

// each looks up the rest of a path in every item. An item without it does not fit.
func each(v any, rest path, hidden approvals.Hidden) (any, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	all := make([]any, len(list))
	for i, item := range list {
		if all[i], ok = lookup(item, rest, hidden.Below(strconv.Itoa(i))); !ok || all[i] == nil {
			return nil, false
		}
	}
	return all, true
}

// given reports whether an argument says anything: it is there, and not null or
// empty.
func given(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return strings.TrimSpace(v) != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
