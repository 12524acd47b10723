package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// A member is one member of a JSON object, with the offsets of its parts.
type member struct {
	Key        string
	from       int // of the quote before the key
	Start, End int // of the value
}

// Members lists the members of a JSON object in their order. Any other value has
// none.
func Members(raw []byte) []member {
	d := blockkit.Decoder(raw)
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var all []member
	for last := int(d.InputOffset()); d.More(); last = int(d.InputOffset()) {
		key, err := d.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return nil
		}
		end := int(d.InputOffset())
		from := last + bytes.IndexByte(raw[last:], '"') // only blanks and a comma are before it
		all = append(all, member{Key: name, from: from, Start: end - len(value), End: end})
	}
	return all
}

// ValueAt returns the value at the path, and whether there is one.
func ValueAt(raw []byte, path []string) ([]byte, bool) {
	for _, key := range path {
		all := Members(raw)
		i := slices.IndexFunc(all, func(m member) bool { return m.Key == key })
		if i < 0 {
			return nil, false
		}
		raw = raw[all[i].Start:all[i].End]
	}
	return raw, true
}

// setAt returns raw with this value at the path, or without the member at the
// path if the value is nil. All other bytes stay as they are. A new key is added
// at the end of its object.
func setAt(raw []byte, path []string, value []byte) []byte {
	if len(path) == 0 {
		return value
	}
	all := Members(raw)
	i := slices.IndexFunc(all, func(m member) bool { return m.Key == path[0] })
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
			end, added = all[len(all)-1].End, append([]byte(","), added...)
		}
		return splice(raw, end, end, added)
	case value != nil || len(path) > 1:
		m := all[i]
		return splice(raw, m.Start, m.End, setAt(raw[m.Start:m.End], path[1:], value))
	case i > 0:
		return splice(raw, all[i-1].End, all[i].End, nil)
	case len(all) > 1:
		return splice(raw, all[0].from, all[1].from, nil)
	}
	return splice(raw, all[0].from, all[0].End, nil)
}

func splice(raw []byte, from, to int, with []byte) []byte {
	return slices.Concat(raw[:from], with, raw[to:])
}

// jsonText writes s as a JSON string.
func jsonText(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // never fails for a string
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

// absent stands for a value that is missing. No value is shown like it, because
// texts are quoted.
const absent = "(no value)"

// OnOneLine writes a value on one line, with hidden values as their length.
func OnOneLine(raw []byte, hide approvals.Hidden) string {
	if raw == nil {
		return absent
	}
	if !blockkit.Unambiguous(raw) {
		if hide.Any() {
			return fmt.Sprintf("(hidden, %s)", blockkit.Count(len(raw), "byte"))
		}
		return blockkit.Quote(string(raw))
	}
	var p blockkit.Printer
	p.Value(blockkit.Decoder(raw), hide, 0)
	return p.Out.String()
}

// LabelOf is the label of a value: the keys that lead to it.
func LabelOf(path []string) string {
	if len(path) == 0 {
		return "all arguments"
	}
	keys := make([]string, len(path))
	for i, key := range path {
		keys[i], _ = blockkit.Shorten(blockkit.QuoteKey(key), blockkit.MaxKey)
	}
	return strings.Join(keys, " › ")
}

// Object returns raw without white space around it, and the empty object for no
// bytes.
func Object(raw []byte) []byte {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 {
		return raw
	}
	return []byte("{}")
}
