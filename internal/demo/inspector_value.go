package demo

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// pretty writes a value for reading, and says what it cut.
func pretty(value any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return "cannot be shown: " + err.Error()
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if len(text) <= mostBytes {
		return text
	}
	at := mostBytes
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return text[:at] + "\n… cut here"
}
