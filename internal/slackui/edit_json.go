package slackui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// A keyed is one key of a JSON object, with where it and its value stand.
type keyed struct {
	key        string
	from       int // the key's own quote
	start, end int // the value
}

// keysOf lists the keys of a JSON object in their order; of anything else
// there are none.
func keysOf(raw []byte) []keyed {
	d := decoder(raw)
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var all []keyed
	for last := int(d.InputOffset()); d.More(); last = int(d.InputOffset()) {
		key, err := d.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return nil
		}
		end := int(d.InputOffset())
		from := last + bytes.IndexByte(raw[last:], '"') // only blanks and a comma are before it
		all = append(all, keyed{key: name, from: from, start: end - len(value), end: end})
	}
	return all
}

// valueAt returns the value at the path, and whether there is one.
func valueAt(raw []byte, path []string) ([]byte, bool) {
	for _, key := range path {
		all := keysOf(raw)
		i := slices.IndexFunc(all, func(m keyed) bool { return m.key == key })
		if i < 0 {
			return nil, false
		}
		raw = raw[all[i].start:all[i].end]
	}
	return raw, true
}

// setAt returns raw with this value at the path, or without what is there if
// the value is nil. All other bytes stay as they are, and in their order; a key
// that is new goes to the end of its object.
func setAt(raw []byte, path []string, value []byte) []byte {
	if len(path) == 0 {
		return value
	}
	all := keysOf(raw)
	i := slices.IndexFunc(all, func(m keyed) bool { return m.key == path[0] })
	switch {
	case i < 0 && value == nil:
		return raw
	case i < 0:
		end := bytes.LastIndexByte(raw, '}')
		if end < 0 {
			return raw
		}
		added := slices.Concat(jsonText(path[0]), []byte(":"), setAt([]byte("{}"), path[1:], value))
		if len(all) > 0 {
			end, added = all[len(all)-1].end, append([]byte(","), added...)
		}
		return splice(raw, end, end, added)
	case value != nil || len(path) > 1:
		m := all[i]
		return splice(raw, m.start, m.end, setAt(raw[m.start:m.end], path[1:], value))
	case i > 0:
		return splice(raw, all[i-1].end, all[i].end, nil)
	case len(all) > 1:
		return splice(raw, all[0].from, all[1].from, nil)
	}
	return splice(raw, all[0].from, all[0].end, nil)
}

func splice(raw []byte, from, to int, with []byte) []byte {
	return slices.Concat(raw[:from], with, raw[to:])
}

// jsonText writes s as a JSON string.
func jsonText(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always can be
	return bytes.TrimSpace(b.Bytes())
}

// pointerTo writes the path as a JSON pointer.
func pointerTo(path []string) string {
	var b strings.Builder
	for _, key := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return b.String()
}

// leftOut is a value that is not there. No value reads like it: texts are
// quoted.
const leftOut = "(left out)"

// onOneLine is a value on one line.
func onOneLine(raw []byte, hide approvals.Hidden) string {
	if raw == nil {
		return leftOut
	}
	if !definite(raw) {
		if hide.Any() {
			return fmt.Sprintf("(hidden, %s)", count(len(raw), "byte"))
		}
		return quote(string(raw))
	}
	var p printer
	p.value(decoder(raw), hide, 0)
	return p.out.String()
}

// labelOf names a value by the keys that lead to it.
func labelOf(path []string) string {
	if len(path) == 0 {
		return "all arguments"
	}
	keys := make([]string, len(path))
	for i, key := range path {
		keys[i], _ = shorten(quoteKey(key), maxKey)
	}
	return strings.Join(keys, " › ")
}

// object is raw without blanks around it, and no arguments at all as the empty
// object.
func object(raw []byte) []byte {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 {
		return raw
	}
	return []byte("{}")
}
