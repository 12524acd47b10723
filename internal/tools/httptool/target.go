package httptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/agentrun"
)

// target fills the placeholders in. Whatever the values are, the scheme, the host and
// the port are those of the configuration, and the path has as many segments as the
// template.
func (t *Tool) target(value func(name string) (string, error)) (*url.URL, error) {
	path, err := expand(t.path, value, url.PathEscape, inPath)
	if err != nil {
		return nil, err
	}
	query, err := expand(t.query, value, url.QueryEscape, inQuery)
	if err != nil {
		return nil, err
	}
	text := t.origin.Scheme + "://" + t.origin.Host + path
	if query != "" {
		text += "?" + query
	}
	if len(text) > maxURL {
		return nil, fmt.Errorf("the URL would have %d bytes, more than %d", len(text), maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it makes no URL")
	case u.Scheme != t.origin.Scheme || u.Host != t.origin.Host || u.User != nil || u.Fragment != "" || u.EscapedPath() != path || u.RawQuery != query:
		return nil, errors.New("it makes another URL than the configuration describes") // unreachable
	case strings.Count(path, "/") != strings.Count(t.path, "/"):
		return nil, errors.New("it changes the path") // unreachable
	}
	for segment := range strings.SplitSeq(path, "/") {
		if plain, err := url.PathUnescape(segment); err != nil || plain == "." || plain == ".." {
			return nil, errors.New("it makes a path with . or .. as a segment")
		}
	}
	return u, nil
}

// expand replaces the placeholders of a part of the template.
func expand(template string, value func(string) (string, error), escape func(string) string, check func(string) error) (string, error) {
	var problem error
	out := placeholder.ReplaceAllStringFunc(template, func(m string) string {
		name := m[1 : len(m)-1]
		v, err := value(name)
		if err == nil {
			err = check(v)
		}
		if err != nil && problem == nil {
			problem = &agentrun.ArgumentError{Pointer: "/" + name, Message: err.Error()}
		}
		return escape(v)
	})
	return out, problem
}

// inPath returns why a value may not stand in a path. Servers and proxies read
// escaped slashes and percent signs in more than one way, so none is sent.
func inPath(v string) error {
	switch {
	case v == "":
		return errors.New("it is empty, and it is a part of the path of the URL")
	case strings.ContainsAny(v, `/\%`):
		return errors.New(`it is a part of the path of the URL, so it must not hold / \ or %`)
	}
	return inQuery(v)
}

// inQuery returns why a value may not stand in a query.
func inQuery(v string) error {
	if !utf8.ValidString(v) || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029' }) {
		return errors.New("it is a part of the URL, so it must not hold line breaks or other control characters")
	}
	return nil
}

// request is what the arguments make: the URL, and the body, which is nil for methods
// without one.
func (t *Tool) request(args json.RawMessage) (*url.URL, []byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(args, &fields); err != nil {
		return nil, nil, &agentrun.ArgumentError{Message: "they are no JSON object"}
	}
	u, err := t.target(func(name string) (string, error) { return scalar(fields[name]) })
	if err != nil || !t.body {
		return u, nil, err
	}
	body, err := without(args, t.placeholders())
	return u, body, err
}

// scalar is a value as text: a string without its quotes, anything else letter for
// letter.
func scalar(raw json.RawMessage) (string, error) {
	var s string
	switch {
	case len(raw) == 0:
		return "", errors.New(agentrun.ArgumentMissing)
	case raw[0] == '"':
		err := json.Unmarshal(raw, &s)
		return s, err
	case raw[0] == '{' || raw[0] == '[' || string(raw) == "null":
		return "", errors.New("it is a part of the URL, so it must be text, a number, true or false")
	}
	return string(raw), nil
}

// without returns the object without these keys, and the rest byte for byte.
func without(args json.RawMessage, keys []string) ([]byte, error) {
	if len(keys) == 0 {
		return args, nil
	}
	var out bytes.Buffer
	out.WriteByte('{')
	d := json.NewDecoder(bytes.NewReader(args))
	if _, err := d.Token(); err != nil {
		return nil, errUnread
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		name, isName := key.(string)
		if err != nil || !isName {
			return nil, errUnread
		}
		if slices.Contains(keys, name) {
			continue
		}
		written, err := json.Marshal(name)
		if err != nil {
			return nil, errUnread
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.Write(written)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

var errUnread = &agentrun.ArgumentError{Message: "they cannot be read"}
