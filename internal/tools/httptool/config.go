package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/argschema"
	"github.com/countersign/countersign/internal/dialguard"
)

// A Config is one tool, as the operator described it.
type Config struct {
	Name        string
	Description string
	Method      string
	URL         string            // with {placeholders} in its path and its query
	Schema      json.RawMessage   // JSON Schema of the arguments, an object
	Headers     map[string]string // their values are secrets
	Hosts       []string          // the hosts that are allowed
	Allow       []netip.Prefix    // addresses that are not public and may be dialed
	ReadOnly    bool              // the operator says that a call changes nothing
	Effect      agentrun.Effect   // what the operator says a second call would do; not [agentrun.EffectLookup]
	Timeout     time.Duration     // [DefaultTimeout] if it is 0
	MaxResult   int               // bytes of an answer that the model reads; [DefaultMaxResult] if it is 0

	Resolver *net.Resolver // nil means that of the system
}

// The defaults of a [Config].
const (
	DefaultTimeout   = 30 * time.Second
	DefaultMaxResult = 64 << 10
)

const (
	maxTimeout = 10 * time.Minute
	maxURL     = 8 << 10
	mostResult = agentrun.MaxResult - 4<<10 // what is said of the answer has room too
)

var (
	toolName    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	headerName  = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`)
	placeholder = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_-]*)\}`)
)

// methods that a tool can have, and whether their requests have a body.
var methods = map[string]bool{
	http.MethodGet: false, http.MethodHead: false, http.MethodDelete: false,
	http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true,
}

// reserved are the headers that the tool sets itself.
var reserved = map[string]bool{
	"Host": true, "Content-Type": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Accept-Encoding": true,
	"Te": true, "Trailer": true, "Upgrade": true, "Expect": true, "Proxy-Authorization": true, "Proxy-Connection": true,
}

// New returns the tool, or everything that is wrong with its configuration, each with
// its key.
func New(c Config) (*Tool, error) {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	t := &Tool{config: c, body: methods[c.Method]}
	if !toolName.MatchString(c.Name) {
		wrong("name: must be 1 to 64 letters, digits, _ or -, but is %q", c.Name)
	}
	if _, known := methods[c.Method]; !known {
		wrong("method: must be one of %s, but is %q", strings.Join(slices.Sorted(maps.Keys(methods)), ", "), c.Method)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		if !headerName.MatchString(name) || reserved[http.CanonicalHeaderKey(name)] {
			wrong("headers: %q cannot be set", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		if strings.ContainsFunc(c.Headers[name], func(r rune) bool { return r < ' ' || r == 0x7f }) {
			wrong("headers.%s: the value has a line break or another control character", name)
		}
	}
	if c.Timeout < 0 || c.Timeout > maxTimeout {
		wrong("timeout: must be between 0 and %s, but is %s", maxTimeout, c.Timeout)
	}
	if c.MaxResult < 0 || c.MaxResult > mostResult {
		wrong("max_result: must be between 0 and %d, but is %d", mostResult, c.MaxResult)
	}
	if c.Effect != "" && (c.Effect == agentrun.EffectLookup || !slices.Contains(agentrun.Effects, c.Effect)) {
		wrong("effect: must be %s, %s or %s, but is %q", agentrun.EffectPure, agentrun.EffectIdempotent, agentrun.EffectNone, c.Effect)
	}
	guard := dialguard.Guard{Allow: c.Allow}
	if err := guard.Check(); err != nil {
		wrong("allow: cannot be %w", err)
	}
	problems = append(problems, t.readSchema()...)
	if err := t.readURL(guard); err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	t.open()
	return t, nil
}

// readSchema compares the schema with the placeholders.
func (t *Tool) readSchema() (problems []error) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	var s struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		More       json.RawMessage            `json:"additionalProperties"`
	}
	if err := json.Unmarshal(t.config.Schema, &s); err != nil || s.Type != "object" {
		wrong("schema: must be one of an object, with type: object")
		return problems
	}
	var err error
	if t.schema, err = argschema.Compile(t.config.Schema); err != nil {
		wrong("schema: %w", err)
	}
	t.hidden = argschema.WriteOnly(t.config.Schema)
	used := t.placeholders()
	for _, name := range used {
		var p struct {
			Type any `json:"type"`
		}
		_ = json.Unmarshal(s.Properties[name], &p) // what is not there has no type
		switch {
		case !slices.Contains([]any{"string", "integer", "number", "boolean"}, p.Type):
			wrong("url: {%s} must be an argument of the schema with the type string, integer, number or boolean", name)
		case !slices.Contains(s.Required, name):
			wrong("url: {%s} must be required in the schema", name)
		}
	}
	if t.body {
		return problems
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(used, name) {
			wrong("schema: the argument %q has no placeholder in the url, and a %s has no body", name, t.config.Method)
		}
	}
	if string(s.More) != "false" {
		wrong("schema: must have additionalProperties: false, because a %s has no body", t.config.Method)
	}
	return problems
}

func (t *Tool) placeholders() (names []string) {
	for _, m := range placeholder.FindAllStringSubmatch(t.config.URL, -1) {
		names = append(names, m[1])
	}
	return names
}

// readURL reads the template: placeholders are in the path and in the query only.
func (t *Tool) readURL(guard dialguard.Guard) error {
	template := t.config.URL
	end := strings.Index(template, "://")
	if end < 0 {
		return errors.New("url: must begin with https://")
	}
	origin, rest := template, ""
	if i := strings.IndexAny(template[end+3:], "/?#"); i >= 0 {
		origin, rest = template[:end+3+i], template[end+3+i:]
	}
	u, err := url.Parse(origin)
	switch {
	case err != nil || u.Hostname() == "" || strings.ContainsAny(origin, "{}\\% \t\r\n"):
		return errors.New("url: must name a host, and placeholders are only in the path and the query")
	case u.User != nil:
		return errors.New("url: must not hold a name or a password; use headers")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("url: must begin with https://")
	case u.Scheme == "http" && len(t.config.Allow) == 0:
		return errors.New("url: must begin with https://; http:// is only for addresses that are listed under allow")
	case !slices.ContainsFunc(t.config.Hosts, func(h string) bool { return strings.EqualFold(h, u.Hostname()) }):
		return fmt.Errorf("url: the host %s is not listed under hosts", u.Hostname())
	case strings.Contains(rest, "#"):
		return errors.New("url: must not have a fragment")
	}
	if a, ok := dialguard.Literal(u.Hostname()); ok {
		if err := guard.Judge(a); err != nil {
			return fmt.Errorf("url: %w", err)
		}
	}
	path, query, _ := strings.Cut(rest, "?")
	for _, part := range []string{path, query} {
		if strings.ContainsAny(placeholder.ReplaceAllString(part, ""), "{}\\ \t\r\n") {
			return errors.New("url: a placeholder is {NAME}, and a space or a backslash must be escaped")
		}
	}
	if path == "" {
		path = "/"
	}
	t.origin, t.path, t.query = *u, path, query
	// With harmless values it must be a URL.
	if _, err := t.target(func(string) (string, error) { return "x", nil }); err != nil {
		return fmt.Errorf("url: %w", err)
	}
	return nil
}
