package summary

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// most is how many arguments [Default] names: those behind the first three stand
// in for what a call leaves out.
const most = 12

// Default returns the template of a tool for which nobody wrote one, by the rule
// of the package comment. It is empty if the schema lists no arguments.
func Default(tool string, schema json.RawMessage, writeOnly []string) string {
	s, ok := newSchema(schema, writeOnly)
	if !ok {
		return ""
	}
	source := strings.NewReplacer("{", "{{", "}", "}}").Replace(Words(tool)) + "{fields"
	open := source
	for i, key := range telling(s, schema) {
		next := source + " " + path{{key: key, isKey: true}}.String()
		if i == most || len(next) >= MaxTemplate {
			break
		}
		source = next
	}
	if source == open {
		return ""
	}
	if source += "}"; Check(source, schema, writeOnly) != nil {
		return ""
	}
	return source
}

// telling returns the arguments that may be shown, in their order of importance.
func telling(s schema, raw json.RawMessage) []string {
	type candidate struct {
		key      string
		list     bool
		optional bool
	}
	var all []candidate
	for _, key := range propertyOrder(raw) {
		if strings.ContainsAny(key, `'"`) {
			continue // it cannot be written
		}
		found, err := s.resolve(path{{key: key, isKey: true}})
		if err != nil || found.kinds == 0 || found.kinds&^functions["fields"].fits != 0 {
			continue
		}
		all = append(all, candidate{key, found.kinds&kindList != 0, found.optional})
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if a.list != b.list {
			return later(a.list)
		}
		if a.optional != b.optional {
			return later(a.optional)
		}
		return 0
	})
	keys := make([]string, len(all))
	for i, c := range all {
		keys[i] = c.key
	}
	return keys
}

func later(is bool) int {
	if is {
		return 1
	}
	return -1
}

// propertyOrder returns the names of the arguments as the schema lists them.
func propertyOrder(schema json.RawMessage) []string {
	var s struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	var keys []string
	all, _ := inOrder(s.Properties)
	for _, f := range all {
		keys = append(keys, f.name)
	}
	return keys
}

// fallback is the line of a call for which there is no template, or one that does
// not fit.
func fallback(tool string, fields []field, hidden approvals.Hidden) string {
	all := slices.DeleteFunc(fields, func(f field) bool {
		_, isObject := f.value.(map[string]any)
		return isObject || hidden.Here() || hidden.Below(f.name).Any()
	})
	slices.SortStableFunc(all, func(a, b field) int {
		_, aList := a.value.([]any)
		_, bList := b.value.([]any)
		if aList != bList {
			return later(aList)
		}
		return 0
	})
	for i, f := range all {
		all[i].name = quotedName(f.name)
	}
	return cut(oneLine(Words(tool)+named(all)), Limit)
}

// quotedName returns the name of an argument as whoever made the call wrote it, in
// quotes unless it consists of letters, digits and _-. only. Otherwise a name could
// close the parenthesis and go on as if it were our words.
func quotedName(name string) string {
	if name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == "" {
		return name
	}
	return `"` + cut(inQuotes.Replace(oneLine(name)), nameLimit-len(`""`)) + `"`
}
