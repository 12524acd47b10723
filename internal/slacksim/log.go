package slacksim

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The directions of a [LogEntry].
const (
	FromApp = "from_app" // a Web API call or a post to a response_url
	ToApp   = "to_app"   // a signed request to the app
)

// LogEntry is one request between the workspace and the app. Tokens and
// secrets in it are replaced by "[redacted]".
type LogEntry struct {
	Seq       int               `json:"seq"`
	At        time.Time         `json:"at"`
	Direction string            `json:"direction"`
	Kind      string            `json:"kind"` // the method, or the type of what was delivered
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers,omitempty"` // of requests to the app
	Request   string            `json:"request"`
	Status    int               `json:"status,omitempty"` // 0: no answer
	Response  string            `json:"response,omitempty"`
	Problem   string            `json:"problem,omitempty"` // http_timeout, connection_failed, ...
}

const maxLog = 2000

// journal keeps the requests between the workspace and the app.
type journal struct {
	*engine

	entries []LogEntry
}

// Log returns the requests so far, newest last.
func (s *journal) Log() []LogEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.entries)
}

// Calls returns the Web API calls of one method so far, newest last.
func (s *journal) Calls(method string) []LogEntry {
	return slices.DeleteFunc(s.Log(), func(e LogEntry) bool { return e.Direction != FromApp || e.Kind != method })
}

// logged appends an entry. The caller holds mu.
func (s *journal) logged(e LogEntry, status int, response []byte) {
	e.Seq = 1
	if n := len(s.entries); n > 0 {
		e.Seq = s.entries[n-1].Seq + 1
	}
	e.At, e.Status = s.clock.now(), status
	e.Request, e.Response = s.redact(e.Request), s.redact(string(bytes.TrimSpace(response)))
	if len(s.entries) >= maxLog {
		s.entries = slices.Delete(s.entries, 0, maxLog/10) // now and then, because it moves all others
	}
	s.entries = append(s.entries, e)
	s.changed()
}

// tokens are the places where tokens stand: what is before one, and the
// rest. Each starts with letters to look for, which keeps the search cheap.
var tokens = []*regexp.Regexp{
	regexp.MustCompile(`("token"\s*:\s*")[^"]*`),
	regexp.MustCompile(`(token=)[^&\s"]*`),
	regexp.MustCompile(`(%22token%22%3A%22)[^%]*`),
	regexp.MustCompile(`(xox)[a-z]-[\w-]+`),
	regexp.MustCompile(`(xapp)-[\w-]+`),
	regexp.MustCompile(`(ticket=)[0-9a-f]+`),
}

// redact removes every token and secret from text.
func (s *journal) redact(text string) string {
	for _, secret := range []string{s.cfg.BotToken, s.cfg.SigningSecret, s.cfg.ClientSecret} {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	for _, t := range tokens {
		text = t.ReplaceAllString(text, "${1}[redacted]")
	}
	return text
}

// Payload returns the JSON that a request to the app carried: the body of
// an event or the payload field of an interaction. It is nil for others.
func (e LogEntry) Payload() json.RawMessage {
	body := e.Request
	if e.Method == SocketMethod {
		var envelope struct{ Payload json.RawMessage }
		if json.Unmarshal([]byte(body), &envelope) != nil {
			return nil
		}
		return envelope.Payload
	}
	if rest, ok := strings.CutPrefix(body, "payload="); ok {
		decoded, err := unescapeForm(rest)
		if err != nil {
			return nil
		}
		body = decoded
	}
	if !json.Valid([]byte(body)) {
		return nil
	}
	return json.RawMessage(body)
}

// SocketMethod stands for the HTTP method in a [LogEntry] of Socket Mode.
const SocketMethod = "SOCKET"
