package mcptool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/tools"
)

// A Server is one MCP server of one agent, as the operator configured it. It is
// reached over stdio if it has a Command, else over streamable HTTP.
type Server struct {
	Agent string
	Name  string // the part of its tools' names before the dot

	Command string
	Args    []string
	Env     map[string]string // all that the program gets; PATH has a default

	URL     string
	Headers map[string]string

	Include, Exclude []string                 // patterns of tools, with * and ?; all without Include
	Timeout          time.Duration            // of a call; [DefaultTimeout] if it is 0
	Timeouts         map[string]time.Duration // the same, by tool
	MaxResult        int                      // how many bytes of a result the model reads; [DefaultMaxResult] if it is 0
	Relist           time.Duration            // how often a server over HTTP is asked what it lists; [DefaultRelist] if it is 0
	Quiet            time.Duration            // after how long without an answer a call over HTTP follows a ping; [DefaultQuiet] if it is 0
	// TrustAnnotations takes the server's word that a tool only reads, and for
	// which arguments people must not see.
	TrustAnnotations bool
	// Whole keeps each result as the server sent it beside what the model reads, for
	// those who pass it on, see [Sent].
	Whole bool
}

// The defaults of a [Server].
const (
	DefaultTimeout   = time.Minute
	DefaultMaxResult = 64 << 10
	DefaultRelist    = time.Minute
	DefaultQuiet     = time.Second // few servers start in less, and calls in a burst need no ping
)

// The bounds of what a server may send.
const (
	maxMessage    = 8 << 20  // one message
	maxDefinition = 64 << 10 // of one tool
	maxTools      = 500      // of one server
)

var (
	serverName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,32}$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Check returns everything that is wrong with the configuration of the server,
// each with its key.
func (s Server) Check() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if !serverName.MatchString(s.Name) {
		wrong("a server is called by 1 to 32 letters, digits, _ or -, not %q", s.Name)
	}
	switch {
	case s.Command == "" && s.URL == "":
		wrong("set command for a program on this machine, or url")
	case s.Command != "" && s.URL != "":
		wrong("has both command and url; leave one out")
	case s.Command != "" && len(s.Headers) > 0:
		wrong("headers: go with url, not with command")
	case s.URL != "" && (len(s.Args) > 0 || len(s.Env) > 0):
		wrong("args and env: go with command, not with url")
	}
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			wrong("url: must begin with https:// or http:// and name a host")
		} else if u.User != nil {
			wrong("url: must not hold a password; use headers")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if !headerName.MatchString(name) || reserved[http.CanonicalHeaderKey(name)] {
			wrong("headers: %q cannot be set", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !envName.MatchString(name) {
			wrong("env: %q is not the name of a variable", name)
		}
	}
	for key, patterns := range map[string][]string{"include": s.Include, "exclude": s.Exclude} {
		for _, p := range patterns {
			if _, err := path.Match(p, ""); err != nil {
				wrong("%s: %q is not a name or a pattern", key, p)
			}
		}
	}
	if s.Timeout < 0 {
		wrong("timeout: must not be negative, but is %s", s.Timeout)
	}
	for _, tool := range slices.Sorted(maps.Keys(s.Timeouts)) {
		if s.Timeouts[tool] <= 0 {
			wrong("timeouts.%s: must be positive, but is %s", tool, s.Timeouts[tool])
		}
	}
	if s.MaxResult < 0 || s.MaxResult > maxResult {
		wrong("max_result: must be between 0 and %d, but is %d", maxResult, s.MaxResult)
	}
	return errors.Join(problems...)
}

// reserved are the headers that the protocol sets itself.
var reserved = map[string]bool{
	"Host": true, "Content-Type": true, "Content-Length": true, "Transfer-Encoding": true, "Accept": true, "Connection": true,
	"Mcp-Session-Id": true, "Mcp-Protocol-Version": true, "Mcp-Method": true, "Mcp-Name": true, "Last-Event-Id": true,
}

// takes reports whether the configuration wants a tool.
func (s Server) takes(tool string) bool {
	matches := func(pattern string) bool {
		ok, err := approvals.MatchTool(pattern, tool)
		return ok && err == nil
	}
	return (len(s.Include) == 0 || slices.ContainsFunc(s.Include, matches)) && !slices.ContainsFunc(s.Exclude, matches)
}

// timeout is how long a call of the tool may take.
func (s Server) timeout(tool string) time.Duration {
	if d := s.Timeouts[tool]; d > 0 {
		return d
	}
	if s.Timeout > 0 {
		return s.Timeout
	}
	return DefaultTimeout
}

// longest is how long any call may take. A server that has read nothing for so long is at
// work on none that anybody waits for.
func (s Server) longest() time.Duration {
	d := s.timeout("")
	for _, of := range s.Timeouts {
		d = max(d, of)
	}
	return d
}

func (s Server) relist() time.Duration { return cmp.Or(s.Relist, DefaultRelist) }

func (s Server) quiet() time.Duration { return cmp.Or(s.Quiet, DefaultQuiet) }

func (s Server) maxResult() int {
	if s.MaxResult > 0 {
		return s.MaxResult
	}
	return DefaultMaxResult
}

// where says how the server is reached, without its secrets.
func (s Server) where() string {
	if s.Command != "" {
		return strings.Join(append([]string{s.Command}, s.Args...), " ")
	}
	at, _, _ := strings.Cut(s.URL, "?") // there are keys in some
	return at
}

// tells reports whether a text or a number of a JSON document has one of the secrets of
// the server in it.
func (s Server) tells(document json.RawMessage) bool {
	var said strings.Builder
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return !errors.Is(err, io.EOF) || s.conceal(said.String()) != said.String()
		}
		_, _ = fmt.Fprintln(&said, token)
	}
}

// conceal returns text without the secrets of the server, should it have said
// one of them.
func (s Server) conceal(text string) string {
	secrets := tools.HeaderSecrets(s.Headers)
	for name, v := range s.Env {
		if name != "PATH" && name != "HOME" {
			secrets = append(secrets, v)
		}
	}
	if _, query, ok := strings.Cut(s.URL, "?"); ok {
		secrets = append(secrets, query)
	}
	return tools.Conceal(text, secrets...)
}
