package policy

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
)

// A shape is what a JSON Schema says of a value, as far as a condition can be
// checked against it. The zero shape says nothing.
type shape struct {
	kind   string // object, array, integer, number, string, boolean; empty: anything
	null   bool   // it may be null too
	fields map[string]*shape
	rest   *shape // of fields that have no name here; nil: there are none
	elem   *shape
	// optional are those of the fields that may be left out, where that is plain.
	optional map[string]bool
	enum     []string // of strings, if they are all that may be
}

type schemaForm struct {
	Type                 json.RawMessage            `json:"type"`
	Properties           map[string]json.RawMessage `json:"properties"`
	PatternProperties    map[string]json.RawMessage `json:"patternProperties"`
	AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	Items                json.RawMessage            `json:"items"`
	PrefixItems          json.RawMessage            `json:"prefixItems"`
	Enum                 []any                      `json:"enum"`
	Const                any                        `json:"const"`
	Required             json.RawMessage            `json:"required"`
	AllOf                json.RawMessage            `json:"allOf"`
	AnyOf                json.RawMessage            `json:"anyOf"`
	OneOf                json.RawMessage            `json:"oneOf"`
	If                   json.RawMessage            `json:"if"`
	Ref                  string                     `json:"$ref"`
	Defs                 json.RawMessage            `json:"$defs"`
}

// The bounds of a schema: how deep it is read, and how many shapes are made of it. One
// that refers to itself in many places has no end.
const (
	maxSchemaDepth = 16
	maxShapes      = 10_000
)

// shapeOf reads a schema. A part that it does not understand may be anything: a
// condition on it is not checked here, and is judged at run time. A schema that makes too
// many shapes is read less deep, and what is below that may be anything, too.
func shapeOf(schema json.RawMessage) *shape {
	parts := map[string]json.RawMessage{}
	for depth := maxSchemaDepth; depth > 0; depth-- {
		r := &shaper{root: schema, parts: parts, left: maxShapes}
		if s := r.at(schema, depth); r.left > 0 {
			return s
		}
	}
	return &shape{}
}

// A shaper reads a schema to one depth.
type shaper struct {
	root  json.RawMessage
	parts map[string]json.RawMessage // of the root, by their references
	left  int                        // how many more shapes it may make
}

// at returns the shape of a part of the schema, of which so many more levels are read.
func (r *shaper) at(schema json.RawMessage, deeper int) *shape {
	var f schemaForm
	if r.left--; r.left <= 0 || deeper < 0 || json.Unmarshal(schema, &f) != nil {
		return &shape{}
	}
	if f.Ref != "" {
		part, known := r.parts[f.Ref]
		if !known {
			part = refer(r.root, f.Ref)
			r.parts[f.Ref] = part
		}
		return r.at(part, deeper-1)
	}
	s := &shape{kind: f.kinds()}
	if s.kind, s.null = strings.CutSuffix(s.kind, "|null"); strings.Contains(s.kind, "|") || s.kind == "null" {
		return &shape{}
	}
	if s.kind == "" && len(f.Properties) > 0 {
		return &shape{} // without a type it says nothing of other values
	}
	switch s.kind {
	case "object":
		r.object(s, f, deeper)
	case "array":
		s.elem = &shape{}
		if len(f.Items) > 0 && len(f.PrefixItems) == 0 {
			s.elem = r.at(f.Items, deeper-1)
		}
	case "string":
		s.enum = f.strings()
	}
	return s
}

func (r *shaper) object(s *shape, f schemaForm, deeper int) {
	switch rest := bytes.TrimSpace(f.AdditionalProperties); {
	case len(f.PatternProperties) > 0, len(rest) == 0 && f.Properties == nil, string(rest) == "true":
		s.rest = &shape{}
	case len(rest) > 0 && string(rest) != "false":
		s.rest = r.at(rest, deeper-1)
	}
	s.fields = make(map[string]*shape, len(f.Properties))
	for name, p := range f.Properties {
		s.fields[name] = r.at(p, deeper-1)
	}
	var required []string
	if len(f.Required) > 0 && json.Unmarshal(f.Required, &required) != nil || len(f.AllOf)+len(f.AnyOf)+len(f.OneOf)+len(f.If) > 0 {
		return // other parts may require more
	}
	s.optional = map[string]bool{}
	for name := range f.Properties {
		s.optional[name] = !slices.Contains(required, name)
	}
}

// kinds are the types, joined, with null at the end; what numbers an integer
// and a number make is a number.
func (f schemaForm) kinds() string {
	var one string
	if json.Unmarshal(f.Type, &one) == nil {
		return one
	}
	var many []string
	if json.Unmarshal(f.Type, &many) != nil {
		return ""
	}
	slices.SortFunc(many, func(a, b string) int {
		if (a == "null") != (b == "null") {
			if a == "null" {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	return strings.Replace(strings.Join(many, "|"), "integer|number", "number", 1)
}

func (f schemaForm) strings() []string {
	values := f.Enum
	if f.Const != nil {
		values = []any{f.Const}
	}
	var all []string
	for _, v := range values {
		s, ok := v.(string)
		if !ok {
			return nil
		}
		all = append(all, s)
	}
	return all
}

// refer follows a reference within the schema.
func refer(root json.RawMessage, ref string) json.RawMessage {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at := root
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if part == "" {
			continue
		}
		var m map[string]json.RawMessage
		if json.Unmarshal(at, &m) != nil {
			return nil
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return at
}

// A provider knows the types of the arguments of one tool.
type provider struct {
	types.Provider
	shapes map[string]*shape

	// What was last asked for in vain, and what would have been there.
	missing string
	there   []string
}

// typeOf returns the type of values of this shape, named by their place.
func (p *provider) typeOf(s *shape, place string) *types.Type {
	t := types.DynType
	switch s.kind {
	case "object":
		if len(s.fields) == 0 && s.rest != nil {
			t = types.NewMapType(types.StringType, p.typeOf(s.rest, place+"[]"))
			break
		}
		place = "@" + strings.TrimPrefix(place, "@") // nothing that a condition could write is the name of a type
		p.shapes[place] = s
		t = types.NewObjectType(place)
	case "array":
		t = types.NewListType(p.typeOf(s.elem, place+"[]"))
	case "integer":
		t = types.IntType
	case "number":
		t = types.DoubleType
	case "string":
		t = types.StringType
	case "boolean":
		t = types.BoolType
	}
	switch {
	case !s.null:
		return t
	case s.kind == "integer", s.kind == "number", s.kind == "string", s.kind == "boolean":
		return types.NewNullableType(t)
	}
	return types.DynType
}

func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if p.shapes[name] != nil {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	if s := p.shapes[name]; s != nil {
		return slices.Sorted(maps.Keys(s.fields)), true
	}
	return p.Provider.FindStructFieldNames(name)
}

func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	s := p.shapes[name]
	if s == nil {
		return p.Provider.FindStructFieldType(name, field)
	}
	f := s.fields[field]
	if f == nil {
		f = s.rest
	}
	if f == nil {
		p.missing, p.there = field, slices.Sorted(maps.Keys(s.fields))
		return nil, false
	}
	return &types.FieldType{Type: p.typeOf(f, name+"."+field)}, true
}
