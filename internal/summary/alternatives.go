package summary

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// How far references and alternatives are followed, and how many schemas are
// looked at for one path: a schema may refer to itself.
const (
	maxDepth  = 32
	maxLooked = 10_000
)

// alternatives returns what a value may be by a schema: its references are
// followed, and anyOf, oneOf and allOf are taken apart. An empty map is a schema
// that says nothing.
func (s schema) alternatives(of any, depth int) []map[string]any {
	m, ok := of.(map[string]any)
	*s.looked++
	if !ok || depth > maxDepth || *s.looked > maxLooked {
		return []map[string]any{{}}
	}
	var all []map[string]any
	switch {
	case m["$ref"] != nil:
		all = s.alternatives(s.refer(m["$ref"]), depth+1)
	case m["type"] != nil || m["properties"] != nil || m["enum"] != nil || m["const"] != nil:
		return []map[string]any{m}
	case m["anyOf"] != nil || m["oneOf"] != nil:
		branches, _ := m["anyOf"].([]any)
		more, _ := m["oneOf"].([]any)
		for _, b := range slices.Concat(branches, more) {
			all = append(all, s.alternatives(b, depth+1)...)
		}
	case m["allOf"] != nil:
		branches, _ := m["allOf"].([]any)
		if len(branches) == 1 {
			all = s.alternatives(branches[0], depth+1)
		}
	}
	if len(all) == 0 {
		return []map[string]any{m}
	}
	if isWriteOnly(m) { // what is said around a reference holds of what it refers to
		for i := range all {
			all[i] = maps.Clone(all[i])
			all[i]["writeOnly"] = true
		}
	}
	return all
}

// refer follows a reference within the schema.
func (s schema) refer(ref any) any {
	text, _ := ref.(string)
	pointer, ok := strings.CutPrefix(text, "#")
	if !ok {
		return nil
	}
	var at any = s.root
	for key := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if key == "" {
			continue
		}
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
	}
	return at
}

func isWriteOnly(a map[string]any) bool { return a["writeOnly"] == true }

// holdsWriteOnly reports whether anything within a schema is write-only.
func (s schema) holdsWriteOnly(of any, seen map[string]bool) bool {
	switch v := of.(type) {
	case map[string]any:
		if isWriteOnly(v) {
			return true
		}
		if ref, ok := v["$ref"].(string); ok && !seen[ref] {
			seen[ref] = true
			if s.holdsWriteOnly(s.refer(ref), seen) {
				return true
			}
		}
		for _, inner := range v {
			if s.holdsWriteOnly(inner, seen) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return s.holdsWriteOnly(inner, seen) })
	}
	return false
}

// kindsOf is what type a schema without references says a value has.
func kindsOf(a map[string]any) kinds {
	named := map[string]kinds{
		"string": kindText, "integer": kindInteger, "number": kindNumber, "boolean": kindTruth,
		"array": kindList, "object": kindObject, "null": kindNull,
	}
	switch t := a["type"].(type) {
	case string:
		return named[t]
	case []any:
		var k kinds
		for _, one := range t {
			name, _ := one.(string)
			k |= named[name]
		}
		return k
	}
	var k kinds
	for _, v := range values(a) {
		switch v := v.(type) {
		case string:
			k |= kindText
		case json.Number:
			if d, ok := newDecimal(v.String()); ok && d.scale == 0 {
				k |= kindInteger
			} else {
				k |= kindNumber
			}
		case bool:
			k |= kindTruth
		case nil:
			k |= kindNull
		}
	}
	if k == 0 && a["properties"] != nil {
		return kindObject
	}
	return k
}

// values are those that a schema lists, if it does.
func values(a map[string]any) []any {
	if v, ok := a["const"]; ok {
		return []any{v}
	}
	list, _ := a["enum"].([]any)
	return list
}
