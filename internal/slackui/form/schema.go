package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// shape is the part of a JSON Schema that a form understands. A value of any
// other schema is odd, and becomes a field of JSON: the tool itself validates
// the arguments.
type shape struct {
	Types       oneOrMore         `json:"type"`
	Enum        []json.RawMessage `json:"enum"`
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Properties  properties        `json:"properties"`
	Required    []string          `json:"required"`
	WriteOnly   bool              `json:"writeOnly"`

	unsupported bool
}

// keywords are those of schemas for which there is no simple input.
var keywords = []string{"$ref", "$dynamicRef", "oneOf", "anyOf", "allOf", "not", "if", "const"}

// UnmarshalJSON never fails: a schema that it does not understand is odd.
func (s *shape) UnmarshalJSON(raw []byte) error {
	type known shape
	var k known
	var all map[string]json.RawMessage
	if errors.Join(json.Unmarshal(raw, &all), json.Unmarshal(raw, &k)) != nil {
		k, all = known{unsupported: true}, nil
	}
	*s = shape(k)
	for _, key := range keywords {
		if _, ok := all[key]; ok {
			s.unsupported = true
		}
	}
	return nil
}

// is reports whether the schema allows this type and no other, except null.
func (s shape) is(typ string) bool {
	rest := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" })
	return !s.unsupported && len(rest) == 1 && rest[0] == typ
}

func (s shape) requires(key string) bool { return slices.Contains(s.Required, key) }

// oneOrMore is a type, or a list of them.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		*o = oneOrMore{""}
		return json.Unmarshal(raw, &(*o)[0])
	}
	return json.Unmarshal(raw, (*[]string)(o))
}

// properties are the properties of an object in the order of the schema.
type properties []property

type property struct {
	key string
	shape
}

func (p *properties) UnmarshalJSON(raw []byte) error {
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	*p = nil
	for _, m := range Members(raw) {
		var s shape
		if err := json.Unmarshal(raw[m.Start:m.End], &s); err != nil {
			return fmt.Errorf("property %q: %w", m.Key, err)
		}
		*p = append(*p, property{m.Key, s})
	}
	return nil
}
