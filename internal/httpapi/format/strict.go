package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// A Value is a JSON value with its place in the document. Its bytes are those of
// the document.
type Value struct {
	At  string
	Raw json.RawMessage
}

// Object takes an object apart. A key that is not known is a [*RequestError]: it
// may be a known one misspelled, and its value would be lost.
func (v Value) Object(known ...string) (map[string]Value, error) {
	var fields map[string]json.RawMessage
	if kind(v.Raw) != '{' || json.Unmarshal(v.Raw, &fields) != nil {
		return nil, fault(v.At, "must be an object")
	}
	out := make(map[string]Value, len(fields))
	for key, raw := range fields {
		at := v.At + "/" + pointer(key)
		if !slices.Contains(known, key) {
			return nil, fault(at, "there is no such key; the keys here are %s", cmp.Or(strings.Join(known, ", "), "none"))
		}
		out[key] = Value{at, raw}
	}
	return out, nil
}

// given takes an object of a framework apart. Frameworks write null for what is
// not there.
func (v Value) given(known ...string) (map[string]Value, error) {
	fields, err := v.Object(known...)
	maps.DeleteFunc(fields, func(_ string, f Value) bool { return string(f.Raw) == "null" })
	return fields, err
}

// List takes a list apart.
func (v Value) List() ([]Value, error) {
	var items []json.RawMessage
	if kind(v.Raw) != '[' || json.Unmarshal(v.Raw, &items) != nil {
		return nil, fault(v.At, "must be a list")
	}
	out := make([]Value, len(items))
	for i, raw := range items {
		out[i] = Value{v.At + "/" + strconv.Itoa(i), raw}
	}
	return out, nil
}

// Text returns a string of at most limit bytes; a value that is not there is
// empty.
func (v Value) Text(limit int) (string, error) {
	var s string
	if v.Raw == nil {
		return "", nil
	}
	if kind(v.Raw) != '"' || json.Unmarshal(v.Raw, &s) != nil {
		return "", fault(v.At, "must be a text")
	}
	if len(s) > limit {
		return "", fault(v.At, "must have at most %d bytes, but has %d", limit, len(s))
	}
	return s, nil
}

// Flag returns a boolean; a value that is not there is false.
func (v Value) Flag() (bool, error) {
	switch string(v.Raw) {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	}
	return false, fault(v.At, "must be true or false")
}

// Args returns the arguments of a call: an object, whose bytes are kept as they
// stand. A call without arguments has an empty object, so that its executor can parse
// what it claims.
func (v Value) Args() (json.RawMessage, error) {
	if v.Raw == nil || string(v.Raw) == "null" {
		return json.RawMessage("{}"), nil
	}
	if err := approvals.CheckArgs(v.Raw); err != nil {
		return nil, fault(v.At, "%s", plainly(err))
	}
	return bytes.Clone(v.Raw), nil
}

// argsText returns the arguments of a call that a text holds, as the model wrote
// them.
func (v Value) argsText() (json.RawMessage, error) {
	s, err := v.Text(approvals.MaxArgs)
	if err != nil {
		return nil, err
	}
	if s == "" {
		return Value{At: v.At}.Args()
	}
	return Value{v.At, json.RawMessage(s)}.Args()
}

// has reports whether the value is an object with the key.
func (v Value) has(key string) bool {
	var fields map[string]json.RawMessage
	return kind(v.Raw) == '{' && json.Unmarshal(v.Raw, &fields) == nil && fields[key] != nil
}

func plainly(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), approvals.ErrInvalid.Error()+" JSON at", "at"), approvals.ErrInvalid.Error()+": ")
}

func kind(raw json.RawMessage) byte {
	if t := bytes.TrimLeft(raw, " \t\r\n"); len(t) > 0 {
		return t[0]
	}
	return 0
}

// pointer is a key as a reference token of a JSON pointer.
func pointer(key string) string {
	return fmt.Sprintf("%.100s", strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
}

// compact writes a document without escaping what only HTML needs escaped.
func compact(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write an answer: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
