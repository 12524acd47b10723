package strictyaml

import (
	"fmt"
	"reflect"
	"strings"
)

// Field is the field of a struct that a key fills, by its yaml tag.
func Field(t reflect.Type, key string) (reflect.StructField, bool) {
	for f := range t.Fields() {
		if f.IsExported() && f.Tag.Get("yaml") == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// Keys returns the YAML keys of a struct, in the order of its fields.
func Keys(t reflect.Type) []string {
	var keys []string
	for f := range t.Fields() {
		if key := f.Tag.Get("yaml"); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// HintOr returns a hint or, if no known name is close, all known names.
func HintOr(name string, known []string) string {
	if h := Hint(name, known); h != "" || len(known) == 0 {
		return h
	}
	if len(known) == 1 {
		return "; use " + known[0]
	}
	return "; use one of " + strings.Join(known, ", ")
}

// Hint is "; did you mean ...?" if something known is close to name.
func Hint(name string, known []string) string {
	best, least := "", 1+len(name)/4
	for _, k := range known {
		if n := distance(strings.ToLower(name), strings.ToLower(k)); n <= least && n < max(len(name), len(k)) && (best == "" || n < least) {
			best, least = k, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is how many letters must be changed, added, removed or swapped with
// their neighbor.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var before, last, row []int
	for j := range len(b) + 1 {
		last = append(last, j)
	}
	for i := 1; i <= len(a); i++ {
		row = []int{i}
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			n := min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, before[j-2]+1)
			}
			row = append(row, n)
		}
		before, last = last, row
	}
	return last[len(b)]
}
