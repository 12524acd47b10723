package hookserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	pathpkg "path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/door"
	command "github.com/countersign/countersign/internal/hook"
	"github.com/countersign/countersign/internal/intake"
)

// The routes of hooks. Each path below Path is answered with a denial, also one
// that is no route: a typing error in the settings of a client must not run tools.
const (
	Path       = "/v1/hooks/"
	ClaudePath = Path + "claude-code"
)

const (
	// defaultHold is how long a call is held: less than the 600 s that Claude Code
	// waits for a hook without a setting.
	defaultHold = 9 * time.Minute
	maxHold     = 24 * time.Hour
	maxBody     = 4 << 20
	// maxUnproven is how much is read of a question whose sender proves no agent:
	// enough to tell whether the answer decides. Before a refusal, as much again is read.
	maxUnproven = 64 << 10
)

// Answers reports whether a request for this path is one for [Server.Hooks]: also
// one whose path is written otherwise, such as //v1/hooks/claude-code, because a
// redirect is no denial.
func Answers(path string) bool {
	return strings.HasPrefix(strings.ToLower(pathpkg.Clean("/"+path))+"/", Path)
}

// Hooks is the handler of everything below [Path].
func (s *Server) Hooks() http.Handler { return http.HandlerFunc(s.claude) }

// An answer of a hook, as Claude Code reads it.
type answer struct {
	Output hookOutput `json:"hookSpecificOutput"`
}

type hookOutput struct {
	Event    string          `json:"hookEventName"`
	Decision string          `json:"permissionDecision,omitempty"`
	Reason   string          `json:"permissionDecisionReason,omitempty"`
	Input    json.RawMessage `json:"updatedInput,omitempty"`
	Request  *behavior       `json:"decision,omitempty"` // of a PermissionRequest
}

// A behavior answers a permission prompt.
type behavior struct {
	Behavior string          `json:"behavior"`
	Input    json.RawMessage `json:"updatedInput,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// preToolUse is the answer to the hook that decides whether a tool runs.
func preToolUse(v verdict, opts options) []byte {
	o := hookOutput{Event: eventPre, Decision: "deny", Reason: v.reason}
	switch {
	case v.allow:
		o.Decision, o.Reason, o.Input = "allow", "Approved through Countersign.", v.input
	case v.pending && opts.deferred:
		o.Decision = "defer"
	case o.Reason == "":
		o.Reason = "Not run: there is no approval."
	}
	body, err := json.Marshal(answer{o})
	if err != nil {
		return []byte(lastWord)
	}
	return body
}

// lastWord is the denial when there is nothing else to say.
const lastWord = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Not run: Countersign could not write an answer. Nobody denied this call."}}`

// nothing is the answer that decides nothing. An empty body would be taken for a
// failure by some versions and for a yes by others.
var nothing = []byte("{}")

// claude answers a hook. The handler works on its own, so that whatever it does,
// its deadline has an answer.
func (s *Server) claude(w http.ResponseWriter, r *http.Request) {
	defer func() { //nolint:contextcheck // that of the request
		if p := recover(); p != nil { // only send writes, and it is the last
			send(w, s.panicked(r.Context()))
		}
	}()
	opts, err := readOptions(r.URL.RawQuery)
	limit := opts.hold + s.c.Handling
	opts.until = s.c.Now().Add(opts.hold)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(s.c.Now().Add(s.c.Handling))
	_ = control.SetWriteDeadline(s.c.Now().Add(limit + 2*s.c.Handling))
	if err != nil {
		send(w, preToolUse(deny(err.Error()), options{}))
		return
	}
	who, _, why := s.door.Agent(r, intake.DoorHooks)
	most := int64(maxBody)
	if why != "" {
		most = maxUnproven
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	large := int64(len(body)) > most
	if large && err == nil && why == "" {
		if short, after := withoutResult(body, io.LimitReader(r.Body, maxResult)); after {
			body, large = short, false
		}
	}
	if large || err != nil { // the deadline stays: the rest may still be read before the answer is sent
		if large {
			why = cmp.Or(why, fmt.Sprintf("the question has more than %d bytes", maxBody))
		}
		send(w, preToolUse(deny(cmp.Or(why, "the question did not arrive as a whole")), options{}))
		return
	}
	if why == "" { // the credential may have been taken away while the question arrived
		why = who.Still()
	}
	// A read deadline would end the request, because the server reads on to learn
	// whether the client is still there.
	_ = control.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	done := make(chan []byte, 1)
	go func() { done <- s.guarded(ctx, r, who, why, body, opts) }()
	select {
	case out := <-done:
		send(w, out)
	case <-ctx.Done():
		grace := time.NewTimer(s.c.Handling / 4)
		defer grace.Stop()
		select {
		case out := <-done: // it says better why
			send(w, out)
		case <-grace.C:
			s.c.Log.ErrorContext(ctx, "a hook got no answer in time", slog.String("route", ClaudePath))
			send(w, preToolUse(deny("Countersign took too long"), options{}))
		}
	}
}

// guarded answers a hook; why says why its sender proves no agent. A panic is a
// denial.
func (s *Server) guarded(ctx context.Context, r *http.Request, c door.Caller, why string, body []byte, opts options) (out []byte) {
	defer func() {
		if p := recover(); p != nil {
			out = s.panicked(ctx)
		}
	}()
	if r.Method != http.MethodPost {
		return preToolUse(deny("a hook is asked with POST"), options{})
	}
	if r.URL.Path != ClaudePath {
		return preToolUse(deny("there is no hook at this URL; that of Claude Code is "+ClaudePath), options{})
	}
	h, err := readHook(body)
	if err != nil {
		return preToolUse(deny(err.Error()), options{})
	}
	if why != "" {
		if !h.decides() {
			return nothing
		}
		return preToolUse(deny(why), options{})
	}
	return s.event(ctx, c, h, opts)
}

func (s *Server) panicked(ctx context.Context) []byte {
	s.c.Log.ErrorContext(ctx, "a hook panicked", slog.String("stack", string(debug.Stack())))
	return preToolUse(deny("something is wrong with Countersign; its log says more"), options{})
}

// send sends a whole answer. One that would be empty is a denial: clients take an
// empty 200 for a yes.
func send(w http.ResponseWriter, body []byte) {
	if len(body) == 0 {
		body = preToolUse(deny("Countersign has an empty answer"), options{})
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // nobody is left to tell of an error
}

// options are what the URL of the hook says, which stands beside the time-out in
// the settings of the client.
type options struct {
	hold     time.Duration
	keep     bool // a request whose client is gone stays open
	deferred bool // a call that nobody has decided is deferred, and not denied

	until time.Time // when the hold ends, counted from the start of the request
}

func readOptions(query string) (options, error) {
	o := options{hold: defaultHold}
	q, err := url.ParseQuery(query)
	if err != nil {
		return o, errors.New("the URL of the hook cannot be read")
	}
	for key, values := range q {
		v := values[len(values)-1]
		switch {
		case key == "hold":
			d, err := time.ParseDuration(v)
			if err != nil || d < time.Second || d > maxHold {
				return o, errors.New("hold in the URL of the hook must be a duration between 1s and 24h, such as 9m")
			}
			o.hold = d
		case key == "late" && (v == "keep" || v == "withdraw"):
			o.keep = v == "keep"
		case key == "pending" && (v == "deny" || v == "defer"):
			o.deferred = v == "defer"
		default:
			return o, errors.New("the URL of the hook may have hold=9m, late=keep and pending=defer, and nothing else")
		}
	}
	o.keep = o.keep || o.deferred // a deferred call is asked about again by a process that is not there yet
	return o, nil
}

// A hook is what Claude Code says when it calls one.
type hook struct {
	event, session, cwd, tool, use, reason, failure string

	sub      string // which sub-agent asks
	server   string // of a tool of MCP
	input    json.RawMessage
	response json.RawMessage
}

// decides reports whether the answer decides if a tool runs, as far as that is
// known: an event that is not known may, if it names a tool that has no result.
func (h hook) decides() bool {
	switch h.event {
	case eventPre, eventRequest, "":
		return true
	case eventPost, eventFailed, eventDenied, eventEnd:
		return false
	}
	return (h.tool != "" || len(h.input) > 0) && len(h.response) == 0
}

// readHook reads the keys exactly as they are named, from JSON that every reader
// reads alike. What a tool said need not be that, after the call: an agent may have cut it
// within a character.
func readHook(body []byte) (hook, error) {
	var h hook
	unclear := door.CheckJSON("the question", body)
	doc := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &doc); err != nil {
		return h, cmp.Or(unclear, errors.New("the question is not a JSON object"))
	}
	if unclear != nil {
		rest := body
		for _, key := range []string{"tool_response", "error"} {
			if said := doc[key]; len(said) > 0 {
				rest = bytes.Replace(rest, said, []byte(`""`), 1)
			}
		}
		if door.CheckJSON("the question", rest) != nil {
			return h, unclear
		}
	}
	var server struct{ Name string }
	for key, to := range map[string]any{
		"hook_event_name": &h.event, "session_id": &h.session, "cwd": &h.cwd, "tool_name": &h.tool, "tool_use_id": &h.use,
		"mcp_server": &server, "reason": &h.reason, "error": &h.failure,
	} {
		if raw, there := doc[key]; there && json.Unmarshal(raw, to) != nil {
			return h, fmt.Errorf("%s in the question is not what it should be", key)
		}
	}
	h.server, h.input, h.response, h.sub = server.Name, doc["tool_input"], doc["tool_response"], command.SubAgent(doc)
	if unclear != nil && h.decides() {
		return h, unclear
	}
	return h, nil
}
