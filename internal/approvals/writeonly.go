package approvals

import "strings"

// Hidden says which values of a JSON document are write-only: people and models
// are told that they are there, and how long they are. A caller that writes
// such a document walks down with it, and asks at every value.
//
// It holds what is left of each pointer below the value that it is about.
type Hidden [][]string

// HiddenAt reads JSON pointers (RFC 6901), as in [Approval].WriteOnly. A "*" in
// a pointer stands for every key and every index. The empty pointer is the
// whole document.
func HiddenAt(pointers []string) Hidden {
	var h Hidden
	for _, p := range pointers {
		if p == "" {
			h = append(h, nil)
			continue
		}
		keys := strings.Split(strings.TrimPrefix(p, "/"), "/")
		for i, k := range keys {
			keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(k)
		}
		h = append(h, keys)
	}
	return h
}

// Below is about the value with this key, or this index in digits.
func (h Hidden) Below(key string) Hidden {
	var below Hidden
	for _, p := range h {
		if len(p) > 0 && (p[0] == key || p[0] == "*") {
			below = append(below, p[1:])
		}
	}
	return below
}

// Here reports whether the value itself is hidden, and all that is in it.
func (h Hidden) Here() bool {
	for _, p := range h {
		if len(p) == 0 {
			return true
		}
	}
	return false
}

// Any reports whether the value, or something in it, is hidden.
func (h Hidden) Any() bool { return len(h) > 0 }
