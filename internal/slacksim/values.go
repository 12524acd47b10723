package slacksim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// object is a JSON object as Slack's API passes it around.
type object = map[string]any

// decodeJSON decodes one JSON value and keeps numbers as they were written.
func decodeJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err //nolint:wrapcheck // callers only look whether there is one
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errTrailing
	}
	return v, nil
}

// encodeJSON writes v as Slack does, without escaping <, > and &.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("slacksim: encode JSON: " + err.Error()) // only maps, slices and scalars come here
	}
	return bytes.TrimSpace(b.Bytes())
}

// storedBlocks is how a message keeps its blocks: as JSON, which is nil if there are none.
// A workspace keeps many messages that nobody looks at again.
func storedBlocks(list []any) json.RawMessage {
	if list == nil {
		return nil
	}
	return encodeJSON(list)
}

// blocksOf is the reverse of storedBlocks.
func blocksOf(stored json.RawMessage) []any {
	if stored == nil {
		return nil
	}
	v, err := decodeJSON(stored)
	if err != nil {
		panic("slacksim: decode stored blocks: " + err.Error()) // they were encoded here
	}
	return v.([]any)
}

// hasBlocks reports whether there is a block among those that are stored.
func hasBlocks(stored json.RawMessage) bool { return stored != nil && string(stored) != "[]" }

func str(v any) string {
	s, _ := v.(string)
	return s
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func orEmpty(list []string) []string { return append([]string{}, list...) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func escapeText(s string) string { return escaper.Replace(s) }

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(encodeJSON(v)) // a client that went away is not our problem
}

func unescapeForm(s string) (string, error) {
	text, err := url.QueryUnescape(s)
	if err != nil {
		return "", fmt.Errorf("unescape a form value: %w", err)
	}
	return text, nil
}
