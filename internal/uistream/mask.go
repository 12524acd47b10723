package uistream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// shownInput is the arguments of a call as its user sees them: without the values
// of those that are write-only. Arguments that are not JSON are a text.
func shownInput(args json.RawMessage, writeOnly []string) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage(`{}`)
	}
	hide := approvals.HiddenAt(writeOnly)
	switch {
	case !hide.Any():
		return shownJSON(args)
	case approvals.CheckJSON(args, shownDepth) != nil:
		return quoted(hiddenWords(args))
	}
	return shownJSON(masked(args, hide))
}

// shownJSON is a value as the client gets it. One that no client takes, or that could
// not be sent back to us with the history, is a text: it would end the chat.
func shownJSON(raw json.RawMessage) json.RawMessage {
	var v any
	if approvals.CheckJSON(raw, shownDepth) != nil || json.Unmarshal(raw, &v) != nil || pollutes(v) {
		return quoted(string(raw))
	}
	return raw
}

// pollutes reports whether a value has keys at which the AI SDK refuses to parse it.
func pollutes(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		constructor, named := v["constructor"]
		own, _ := constructor.(map[string]any)
		_, proto := v["__proto__"]
		_, prototype := own["prototype"]
		if proto || prototype || named && constructor == nil { // old versions fail at the null
			return true
		}
		for _, x := range v {
			if pollutes(x) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, pollutes)
	}
	return false
}

// masked replaces what is hidden, and keeps everything else byte for byte.
func masked(raw json.RawMessage, hide approvals.Hidden) json.RawMessage {
	switch {
	case hide.Here():
		return quoted(hiddenWords(raw))
	case !hide.Any():
		return raw
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil && len(object) > 0 {
		var all [][]byte
		for _, key := range keysOf(raw) {
			all = append(all, slices.Concat(quoted(key), []byte(":"), masked(object[key], hide.Below(key))))
		}
		return slices.Concat([]byte("{"), bytes.Join(all, []byte(",")), []byte("}"))
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		var all [][]byte
		for i, v := range list {
			all = append(all, masked(v, hide.Below(strconv.Itoa(i))))
		}
		return slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]"))
	}
	return raw
}

// keysOf returns the keys of an object in their order. It has none twice.
func keysOf(raw json.RawMessage) []string {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil
	}
	var all []string
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return all
		}
		all = append(all, name)
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return all
		}
	}
	return all
}

// hiddenWords says how long a hidden value is.
func hiddenWords(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return fmt.Sprintf("(hidden, %d characters)", utf8.RuneCountInString(text))
	}
	return "(hidden)"
}

// sameInput reports whether two inputs are the same for a client, which reads
// numbers as doubles.
func sameInput(shown, sent json.RawMessage) bool {
	var a, b any
	return json.Unmarshal(shown, &a) == nil && json.Unmarshal(sent, &b) == nil && reflect.DeepEqual(a, b)
}

// quoted is a text as JSON.
func quoted(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return json.RawMessage(`""`) // unreachable
	}
	return slices.Clip(bytes.TrimSpace(b.Bytes()))
}
