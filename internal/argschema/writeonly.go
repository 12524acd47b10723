package argschema

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// WriteOnly returns JSON pointers to the arguments that a schema marks as writeOnly, in
// the form of approvals.HiddenAt: "*" stands for every key and every index. An argument
// is one of them if any alternative of the schema says so. A mark on the arguments as a
// whole is none.
func WriteOnly(schema json.RawMessage) []string {
	var root any
	if json.Unmarshal(schema, &root) != nil || !holdsMark(root) {
		return nil
	}
	w := marks{root: root, left: maxLooked, open: map[string]bool{}, marked: map[string]bool{}}
	w.walk("", root)
	if w.left <= 0 {
		return []string{""} // it is not known which, so all of them are
	}
	for _, inner := range w.again {
		if w.marked[inner[1]] {
			w.all = append(w.all, inner[0])
		}
	}
	slices.Sort(w.all)
	return slices.Compact(w.all)
}

// maxLooked bounds the work for schemas whose parts refer to each other.
const maxLooked = 10_000

type marks struct {
	root any
	left int
	all  []string

	open   map[string]bool // the references on the way to where the walk is
	marked map[string]bool // the references to what has a mark
	again  [][2]string     // where a schema contains itself, and the reference there
}

var escaped = strings.NewReplacer("~", "~0", "/", "~1")

func (w *marks) walk(at string, of any) {
	s, ok := of.(map[string]any)
	if w.left--; !ok || w.left <= 0 {
		return
	}
	if s["writeOnly"] == true && at != "" {
		w.all = append(w.all, at)
		return
	}
	for key, value := range s {
		switch key {
		case "allOf", "anyOf", "oneOf", "if", "then", "else":
			w.each(at, value)
		case "$ref", "$dynamicRef", "$recursiveRef":
			w.follow(at, value)
		case "dependentSchemas", "dependencies":
			named, _ := value.(map[string]any)
			for _, inside := range named {
				w.walk(at, inside)
			}
		case "properties":
			named, _ := value.(map[string]any)
			for name, inside := range named {
				w.walk(at+"/"+escaped.Replace(name), inside)
			}
		case "patternProperties":
			named, _ := value.(map[string]any)
			for _, inside := range named {
				w.walk(at+"/*", inside)
			}
		case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties":
			w.each(at+"/*", value)
		}
	}
}

// each walks a schema, or each of a list.
func (w *marks) each(at string, value any) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, one := range list {
		w.walk(at, one)
	}
}

// follow walks what a reference within the schema refers to. Of a schema that contains
// itself and has a mark, the inner one is hidden whole: there is no end of it. What a
// reference by an anchor or an id is to is not looked for.
func (w *marks) follow(at string, ref any) {
	text, _ := ref.(string)
	pointer, ok := strings.CutPrefix(text, "#")
	if !ok {
		w.left = 0
		return
	}
	if w.open[text] {
		w.again = append(w.again, [2]string{at, text})
		return
	}
	to, found := within(w.root, pointer)
	if !found {
		w.left = 0
		return
	}
	before := len(w.all)
	w.open[text] = true
	w.walk(at, to)
	delete(w.open, text)
	w.marked[text] = w.marked[text] || len(w.all) > before
}

// within returns what a JSON pointer of a reference points to.
func within(root any, pointer string) (to any, found bool) {
	pointer, err := url.PathUnescape(pointer)
	keys := strings.Split(pointer, "/")
	if err != nil || keys[0] != "" {
		return nil, false
	}
	to = root
	for _, key := range keys[1:] {
		switch in := to.(type) {
		case map[string]any:
			if to, found = in[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]; !found {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			to = in[i]
		default:
			return nil, false
		}
	}
	return to, true
}

// holdsMark reports whether anything in a schema is marked.
func holdsMark(of any) bool {
	switch v := of.(type) {
	case map[string]any:
		if v["writeOnly"] == true {
			return true
		}
		for _, inside := range v {
			if holdsMark(inside) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, holdsMark)
	}
	return false
}
