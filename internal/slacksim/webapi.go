package slacksim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// webAPI is /api/: what holds for every method, and the methods by family.
type webAPI struct {
	*installations

	gate    *gate
	journal *journal
	used    map[string][]time.Time // recent calls, for the rate limits

	chat          *chatAPI
	schedule      *scheduleAPI
	assistant     *assistantAPI
	conversations *conversationsAPI
	views         *viewsAPI
	people        *peopleAPI
	reactions     *reactionsAPI
	oauth         *oauthAPI
	socketMode    *socketMode
}

// serveAPI answers one Web API call. Checks come in Slack's order: method,
// token, scope, arguments; then the method itself, with mu held.
func (s *webAPI) serveAPI(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodPost:
	case http.MethodHead, http.MethodOptions: // a request of a browser or monitor without a method
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
		w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
		return
	default:
		http.Error(w, "the Web API takes GET and POST", http.StatusMethodNotAllowed)
		return
	}
	name := r.PathValue("method")
	m := methods[name]
	a, body, problem := readArgs(r, m == nil || m.json)
	if strings.HasPrefix(name, "oauth.") {
		a.fromBasic(r)
	}
	s.gate.reachedBy(r, a.token)
	entry := LogEntry{Direction: FromApp, Kind: name, Method: r.Method, URL: r.URL.Path, Request: string(body)}
	if len(body) == 0 {
		entry.Request = r.URL.RawQuery
	}

	s.mu.Lock()
	fault := s.faults.take(name, s.clock.now())
	if fault != nil && fault.Status != 0 && fault.Status != http.StatusOK {
		answer := object{"ok": false, "error": cmp.Or(fault.Error, faultError(fault.Status))}
		s.journal.logged(entry, fault.Status, encodeJSON(answer))
		s.mu.Unlock()
		if fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
		}
		writeJSON(w, fault.Status, answer)
		return
	}
	if wait := s.tooFast(m, &a); wait > 0 {
		answer := object{"ok": false, "error": "ratelimited"}
		s.journal.logged(entry, http.StatusTooManyRequests, encodeJSON(answer))
		s.mu.Unlock()
		w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		writeJSON(w, http.StatusTooManyRequests, answer)
		return
	}
	var answer object
	switch {
	case fault != nil && fault.Error != "":
		answer = object{"ok": false, "error": fault.Error}
	case m == nil:
		answer = unknown(name)
	default:
		answer = s.answer(m, a, problem)
	}
	s.journal.logged(entry, http.StatusOK, encodeJSON(answer))
	s.mu.Unlock()
	if fault != nil && fault.LostReply {
		panic(http.ErrAbortHandler) // done, but the app gets no answer
	}
	s.scopeHeaders(w.Header(), m, a.token)
	writeJSON(w, http.StatusOK, answer)
}

// scopeHeaders says what the method needs, and what the token was granted.
func (s *webAPI) scopeHeaders(h http.Header, m *method, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m != nil && len(m.scopes) > 0 {
		h.Set("X-Accepted-OAuth-Scopes", strings.Join(m.scopes, ","))
	}
	if m != nil && s.withToken(token) != nil {
		h.Set("X-OAuth-Scopes", strings.Join(s.cfg.Scopes, ","))
	}
}

// answer runs one call and returns its JSON. The caller holds mu.
func (s *webAPI) answer(m *method, a args, problem string) object {
	c := &call{args: a}
	result, f := s.checked(m, c, problem)
	if f == nil {
		result["ok"] = true
		if warnings := append(slices.Clone(a.warnings), c.warnings...); len(warnings) > 0 {
			result["warning"] = strings.Join(warnings, ",")
			meta := object{"warnings": warnings}
			if cursor, ok := result["response_metadata"].(object); ok {
				maps.Copy(meta, cursor)
			}
			result["response_metadata"] = meta
		}
		return result
	}
	answer := object{"ok": false, "error": f.code}
	maps.Copy(answer, f.extra)
	meta := object{}
	if len(f.problems) > 0 {
		messages := make([]string, len(f.problems))
		for i, p := range f.problems {
			messages[i] = "[ERROR] " + p
		}
		if f.code != "invalid_arguments" && !f.quiet { // whose problems are only in the metadata
			answer["errors"] = f.problems
		}
		meta["messages"] = messages
	}
	if len(a.warnings) > 0 {
		answer["warning"] = strings.Join(a.warnings, ",")
		meta["warnings"] = a.warnings
	}
	if len(meta) > 0 {
		answer["response_metadata"] = meta
	}
	return answer
}

func (s *webAPI) checked(m *method, c *call, problem string) (object, *failure) {
	if problem != "" {
		return nil, fail(problem)
	}
	if m.bare {
		return m.run(s, c)
	}
	switch c.in = s.withToken(c.token); {
	case c.token == "":
		return nil, fail("not_authed")
	case m.appLevel && c.token == s.cfg.AppToken:
		return m.run(s, c)
	case !m.appLevel && strings.HasPrefix(c.token, "xapp-"):
		return nil, fail("not_allowed_token_type")
	case c.in == nil:
		return nil, fail("invalid_auth")
	case c.in.ended != "":
		return nil, fail(c.in.ended)
	}
	if !s.granted(m) {
		f := fail("missing_scope")
		f.extra = object{"needed": strings.Join(m.scopes, ","), "provided": strings.Join(s.cfg.Scopes, ",")}
		return nil, f
	}
	if problems := m.wrong(&c.args); len(problems) > 0 {
		return nil, &failure{code: "invalid_arguments", problems: problems}
	}
	if !slices.Contains(s.cfg.Scopes, customize) {
		delete(c.values, "username")
	}
	return m.run(s, c)
}

func (s *webAPI) granted(m *method) bool {
	if len(m.scopes) == 0 {
		return true
	}
	return slices.ContainsFunc(m.scopes, func(scope string) bool { return slices.Contains(s.cfg.Scopes, scope) })
}

// wrong returns what is missing from the arguments or has the wrong type.
func (m *method) wrong(a *args) []string {
	var problems []string
	for _, name := range m.required {
		if !a.has(name) || (a.values[name] == "" && !slices.Contains(m.empty, name)) {
			problems = append(problems, "missing required field: "+name)
		}
	}
	if !a.json {
		return problems
	}
	for _, name := range slices.Sorted(maps.Keys(a.values)) {
		if want := m.types[name].refuses(a.values[name]); want != "" && m.names(name) {
			problems = append(problems, fmt.Sprintf("%s [json-pointer:/%s]", want, name))
		}
	}
	return problems
}

// names reports whether the argument is one that the method reads as text.
func (m *method) names(arg string) bool {
	_, typed := m.types[arg]
	return typed || slices.Contains(m.required, arg) || slices.Contains(textArgs, arg)
}

var textArgs = []string{"text", "markdown_text", "thread_ts", "view_id", "external_id", "hash", "users", "cursor", "username"}

// refuses returns why v cannot be an argument of type t.
func (t argType) refuses(v any) string {
	if v == nil {
		return ""
	}
	kind := kindOf(v)
	switch t {
	case isBool:
		if kind != "boolean" && kind != "string" && v != json.Number("0") && v != json.Number("1") {
			return "must provide a boolean"
		}
	case isNumber:
		if kind != "number" && kind != "string" {
			return "must provide a number"
		}
	case isJSON:
		if kind == "boolean" || kind == "number" {
			return "must provide an object"
		}
	case isString:
		if kind != "string" {
			return "must provide a string"
		}
	}
	return ""
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case object:
		return "object"
	case []any:
		return "array"
	}
	return "number"
}
