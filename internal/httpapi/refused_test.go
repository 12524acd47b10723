package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/httpapi"
	"github.com/countersign/countersign/internal/intake"
)

// An operation of an agent, as it would be called.
type operation struct{ method, path, body string }

func operations(id approvals.RunID) []operation {
	at := "/v1/approvals/" + string(id)
	return []operation{
		{http.MethodPost, "/v1/approvals", oneCall},
		{http.MethodGet, "/v1/approvals", ""},
		{http.MethodGet, at, ""},
		{http.MethodGet, at + "/results?format=pydantic-ai", ""},
		{http.MethodPost, at + "/withdraw", `{}`},
		{http.MethodPost, at + "/calls/c1/claim", `{}`},
		{http.MethodPost, at + "/calls/c1/result", `{"state":"ran"}`},
		{http.MethodGet, "/v1/waiting-calls", ""},
		{http.MethodGet, "/v1/events", ""},
	}
}

func TestNothingIsDoneWithoutACredential(t *testing.T) {
	w := newWorld(t)
	for _, o := range operations("x") {
		for _, token := range []string{"", "wrong"} {
			got := w.do(o.method, o.path, token, o.body)
			require.Equal(t, http.StatusUnauthorized, got.status, o.path)
			require.Equal(t, "unauthorized", got.kind(t))
			require.True(t, strings.HasPrefix(got.header.Get("WWW-Authenticate"), `Bearer realm="countersign"`))
		}
		got := w.do(o.method, o.path, noDoorToken, o.body)
		require.Equal(t, http.StatusForbidden, got.status, o.path)
		require.Equal(t, "door-not-allowed", got.kind(t))
	}
	for range 20 {
		w.do(http.MethodGet, "/v1/approvals", "wrong", "")
	}
	for _, o := range operations("x") {
		got := w.do(o.method, o.path, "wrong", o.body)
		require.Equal(t, http.StatusTooManyRequests, got.status, o.path)
		require.NotEmpty(t, got.header.Get("Retry-After"))
	}
	require.NotContains(t, w.log.String(), "wrong")
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/v1/approvals", claudeToken, "").status, "a good token counts all the same")
}

func TestATokenInTheAddressIsNone(t *testing.T) {
	w := newWorld(t)
	got := w.do(http.MethodGet, "/v1/approvals?access_token="+claudeToken+"&token="+claudeToken, "", "")
	require.Equal(t, http.StatusUnauthorized, got.status)
}

// A broken is an intake that fails in one way.
type broken struct {
	err   error
	panic bool
}

func (b broken) fail() error {
	if b.panic {
		panic("a bug, with arguments: 4711")
	}
	return b.err
}

func (b broken) Ask(context.Context, intake.Client, intake.Ask) (intake.Request, error) {
	return intake.Request{}, b.fail()
}

func (b broken) Get(context.Context, intake.Client, approvals.RunID) (intake.Request, error) {
	return intake.Request{}, b.fail()
}

func (b broken) Wait(context.Context, intake.Client, approvals.RunID, string) (intake.Request, error) {
	return intake.Request{}, b.fail()
}

func (b broken) List(context.Context, intake.Client, intake.Filter) ([]intake.Request, error) {
	return nil, b.fail()
}

func (b broken) Withdraw(context.Context, intake.Client, approvals.RunID, string) (intake.Request, error) {
	return intake.Request{}, b.fail()
}

func (b broken) Claim(context.Context, intake.Client, approvals.RunID, approvals.ToolCallID) (intake.Claim, error) {
	return intake.Claim{}, b.fail()
}

func (b broken) Report(context.Context, intake.Client, approvals.RunID, approvals.ToolCallID, intake.Report) (intake.Request, error) {
	return intake.Request{}, b.fail()
}

func (b broken) Fulfill(context.Context, intake.Client, approvals.RunID, approvals.ToolCallID, approvals.CallResult) error {
	return b.fail()
}

func (b broken) Waiting(context.Context, intake.Client, approvals.Cursor, int) ([]intake.WaitingCall, approvals.Cursor, error) {
	return nil, "", b.fail()
}

func (b broken) Gone(context.Context, intake.Client, approvals.RunID) error { return b.fail() }

func (b broken) Place(context.Context, intake.Client) (string, error) { return "", b.fail() }

func (b broken) Events(context.Context, intake.Client, string) iter.Seq2[intake.Event, error] {
	return func(yield func(intake.Event, error) bool) { yield(intake.Event{}, b.fail()) }
}

func TestEveryFailureIsAProblem(t *testing.T) {
	for name, c := range map[string]struct {
		broken
		status int
		kind   string
	}{
		"an unknown error":  {broken{err: errors.New("dial tcp 10.0.0.1: refused, with arguments: 4711")}, http.StatusServiceUnavailable, "unavailable"},
		"not durable":       {broken{err: approvals.ErrNotDurable}, http.StatusServiceUnavailable, "unavailable"},
		"it took too long":  {broken{err: context.DeadlineExceeded}, http.StatusServiceUnavailable, "unavailable"},
		"somebody's commit": {broken{err: approvals.ErrConflict}, http.StatusConflict, "in-progress"},
		"too late":          {broken{err: intake.ErrTooLate}, http.StatusConflict, "decision-lapsed"},
		"limited":           {broken{err: &intake.LimitError{What: "open requests", Limit: 1, RetryAfter: 1500 * time.Millisecond}}, http.StatusTooManyRequests, "too-many-requests"},
		"a panic":           {broken{panic: true}, http.StatusInternalServerError, "internal"},
	} {
		w := newWorld(t, func(h *httpapi.Config) { h.Intake = c.broken })
		for _, o := range operations("x") {
			documented := o.path != "/v1/approvals" && !strings.HasSuffix(o.path, "events") && o.method == http.MethodPost ||
				c.status != http.StatusConflict || o.method == http.MethodPost || strings.Contains(o.path, "/results")
			if !documented || o.path == "/v1/events" && c.status == http.StatusConflict {
				continue
			}
			got := w.do(o.method, o.path, claudeToken, o.body)
			require.Equal(t, c.status, got.status, "%s: %s: %s", name, o.path, got.body)
			require.Equal(t, c.kind, got.kind(t), name)
			require.NotContains(t, string(got.body), "4711")
			if c.kind == "too-many-requests" {
				require.Equal(t, "2", got.header.Get("Retry-After"))
			}
		}
		require.NotContains(t, strings.Split(w.log.String(), "stack=")[0], "panicked: a bug", "what a panic says is not logged")
	}
}

// A handler of ours that answers nothing would read as a yes to some clients.
func TestAnEmptyAnswerIsAProblem(t *testing.T) {
	w := newWorld(t, func(h *httpapi.Config) { h.Keys = func() []byte { return nil } })
	got := w.do(http.MethodGet, "/nowhere", claudeToken, "")
	require.Equal(t, http.StatusNotFound, got.status)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.server.URL+"/.well-known/countersign-keys", http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(t, http.StatusInternalServerError, answer.StatusCode)
}

func TestBodiesThatReadersCouldReadDifferentlyAreRefused(t *testing.T) {
	w := newWorld(t)
	posts := []string{"/v1/approvals", "/v1/approvals/x/withdraw", "/v1/approvals/x/calls/c1/claim", "/v1/approvals/x/calls/c1/result"}
	for _, path := range posts {
		for _, c := range []struct {
			body, kind, says string
			status           int
		}{
			{`{"calls":[],"calls":[]}`, "malformed-json", `at byte 12: the key \"calls\" occurs twice`, http.StatusBadRequest},
			{`{"calls":[{"args":{"a":1,"a":2}}]}`, "malformed-json", "occurs twice", http.StatusBadRequest},
			{`{"state":"\ud800"}`, "malformed-json", "half a surrogate pair", http.StatusBadRequest},
			{"{\"state\":\"\xff\"}", "malformed-json", "not valid UTF-8", http.StatusBadRequest},
			{`{} {}`, "malformed-json", "nothing may follow", http.StatusBadRequest},
			{`{"state":`, "malformed-json", "the text ends", http.StatusBadRequest},
			{`{"state":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "malformed-json", "nested too deep", http.StatusBadRequest},
			{`{"state":NaN}`, "malformed-json", "a value is expected", http.StatusBadRequest},
			{`[]`, "invalid-request", "must be an object", http.StatusUnprocessableEntity},
			{`{"aprovals":{}}`, "invalid-request", `"at":"/aprovals","problem":"there is no such key`, http.StatusUnprocessableEntity},
			{`{"state":"` + strings.Repeat("x", 5<<20) + `"}`, "too-large", "at most 4194304 bytes", http.StatusRequestEntityTooLarge},
		} {
			got := w.do(http.MethodPost, path, claudeToken, c.body)
			require.Equal(t, c.status, got.status, "%s %.100s: %s", path, c.body, got.body)
			require.Equal(t, c.kind, got.kind(t))
			require.Contains(t, string(got.body), c.says)
		}
		for name, headers := range map[string][]string{
			"a form": {"Content-Type", "application/x-www-form-urlencoded"}, "text": {"Content-Type", "text/plain"},
			"packed": {"Content-Encoding", "gzip"}, "UTF-16": {"Content-Type", "application/json; charset=utf-16"},
			"Latin-1": {"Content-Type", `application/json;charset="ISO-8859-1"`}, "no charset": {"Content-Type", `application/json;charset=""`},
		} {
			got := w.do(http.MethodPost, path, claudeToken, `{}`, headers...)
			require.Equal(t, http.StatusUnsupportedMediaType, got.status, name)
		}
		for _, charset := range []string{"utf-8", "UTF-8", `"Utf-8"`, "us-ascii"} {
			got := w.do(http.MethodPost, path, claudeToken, `{"no":1}`, "Content-Type", "application/json; charset="+charset)
			require.Equal(t, "invalid-request", got.kind(t), "%s is read", charset)
		}
	}
	var list struct{ Approvals []ours }
	w.do(http.MethodGet, "/v1/approvals", claudeToken, "").json(t, &list)
	require.Empty(t, list.Approvals)
}

func TestWhatARequestMustHaveIsNamedWithItsPlace(t *testing.T) {
	w := newWorld(t)
	for body, at := range map[string]string{
		`{}`:             "/calls",
		`{"calls":null}`: "/calls",
		`{"calls":[{"id":"a","tool":"x","cwd":null}]}`:      "/calls/0/cwd",
		`{"calls":[{"id":"a","tool":"x","external":null}]}`: "/calls/0/external",
		`{"calls":[{"id":"a","tool":"x"}],"group":null}`:    "/group",
		`{"calls":[{"id":"a","tool":"x"}],"body":null}`:     "/format",
		`{"calls":{}}`:                    "/calls",
		`{"calls":[]}`:                    "/calls",
		`{"calls":[{"tool":"x"}]}`:        "/calls/0/id",
		`{"calls":[{"id":"a"}]}`:          "/calls/0/tool",
		`{"calls":[{"id":1,"tool":"x"}]}`: "/calls/0/id",
		`{"calls":[{"id":"a","tool":"x"},{"id":"..","tool":"x"}]}`:                                                                      "/calls/1/id", // it could not be claimed
		`{"calls":[{"id":".","tool":"x"}]}`:                                                                                             "/calls/0/id",
		`{"format":"langchain","body":{"actionRequests":[{"name":"x","args":{}}]},"ids":[".."]}`:                                        "/calls/0/id",
		`{"calls":[{"id":"a","tool":"x","args":[]}]}`:                                                                                   "/calls/0/args",
		`{"calls":[{"id":"a","tool":"x","args":"{}"}]}`:                                                                                 "/calls/0/args",
		`{"calls":[{"id":"a","tool":"x"},{"id":"a","tool":"x"}]}`:                                                                       "/calls/1/id",
		`{"calls":[{"id":"a","tool":"x","run":true}]}`:                                                                                  "/calls/0/run",
		`{"calls":[{"id":"a","tool":"x"}],"within":"soon"}`:                                                                             "/within",
		`{"calls":[{"id":"a","tool":"x"}],"within":3600}`:                                                                               "/within",
		`{"calls":[{"id":"a","tool":"x"}],"external_id":"` + strings.Repeat("x", 257) + `"}`:                                            "/external_id",
		`{"calls":[{"id":"a","tool":"x","cwd":"` + strings.Repeat("x", 513) + `"}]}`:                                                    "/calls/0/cwd",
		`{"calls":[{"id":"a","tool":"x"}],"body":{}}`:                                                                                   "/format",
		`{"calls":[{"id":"a","tool":"x"}],"ids":["b"]}`:                                                                                 "/ids",
		`{"format":"langchain","calls":[{"id":"a","tool":"x"}]}`:                                                                        "/calls",
		`{"format":"langchain"}`:                                                                                                        "/body",
		`{"format":"langchain","body":{},"carries":{"edits":true}}`:                                                                     "/carries",
		`{"format":"openai-agents","body":[{"type":"tool_approval_item","rawItem":{"callId":"a","name":"x"}}],"carries":{"late":true}}`: "/carries/late",
		`{"format":"crewai","body":{}}`:                                                                                                 "/body",
		`{"format":"langchain","body":{"actionRequests":[{"name":"x","args":1}]}}`:                                                      "/body/actionRequests/0/args",
		`{"calls":[{"id":"a","tool":"x"}],"carries":{"edits":"yes"}}`:                                                                   "/carries/edits",
		`{"calls":[{"id":"a","tool":"x"}],"carries":{"edit":true}}`:                                                                     "/carries/edit",
		`{"calls":[{"id":"a","tool":"x"}],"notify":"nowhere"}`:                                                                          "/notify",
		`{"calls":[{"id":"a","tool":"x"}],"group":"a\u0000"}`:                                                                           "/group",
		`{"calls":[{"id":"a","tool":"x"}],"session":"a\u0000"}`:                                                                         "/session",
		`{"calls":[{"id":"a","tool":"x"},{"id":"b","tool":"x"}],"reuse":true}`:                                                          "/calls",
	} {
		got := w.do(http.MethodPost, "/v1/approvals", claudeToken, body)
		require.Equal(t, http.StatusUnprocessableEntity, got.status, "%s: %s", body, got.body)
		var p struct {
			Errors []struct{ At, Problem string }
		}
		got.json(t, &p)
		require.Len(t, p.Errors, 1, body)
		require.Equal(t, at, p.Errors[0].At, "%s: %s", body, got.body)
	}
	require.Equal(t, http.StatusUnprocessableEntity, w.do(http.MethodPost, "/v1/approvals", claudeToken, "").status, "no body at all")
}

// A problem never repeats what was sent.
func TestNoProblemHoldsArguments(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{
		`{"calls":[{"id":"c1","tool":"refund","args":{"secret":"hunter2"},"external":"hunter2"}]}`,
		`{"calls":[{"id":"c1","tool":"refund","args":["hunter2"]}]}`,
		`{"calls":[{"id":"c1","tool":"refund","args":{"a":"hunter2"}}]} hunter2`,
		`{"calls":[{"id":"c1","tool":"refund","args":{"a":"hunter2"}}],"within":"hunter2"}`,
	} {
		got := w.do(http.MethodPost, "/v1/approvals", claudeToken, body)
		require.GreaterOrEqual(t, got.status, 400)
		require.NotContains(t, string(got.body), "hunter2")
	}
	require.NotContains(t, w.log.String(), "hunter2")
}

// raw sends bytes as they are, and returns the status that comes back.
func (w *world) raw(text string) int {
	w.Helper()
	c, err := new(net.Dialer).DialContext(w.Context(), "tcp", w.server.Listener.Addr().String())
	require.NoError(w, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, text)
	require.NoError(w, err)
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(w, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(w, err)
	q, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.SplitAfter(text, "\r\n\r\n")[0] + "\r\n")))
	require.NoError(w, err)
	conforms(w.T, q, "", exchange{answer.StatusCode, answer.Header, body})
	return answer.StatusCode
}

func TestABodyThatDoesNotComeIsGivenUp(t *testing.T) {
	w := newWorld(t, func(h *httpapi.Config) { h.BodyTime = 50 * time.Millisecond })
	for _, path := range []string{"/v1/approvals", "/v1/approvals/x/withdraw", "/v1/approvals/x/calls/c/claim", "/v1/approvals/x/calls/c/result"} {
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n", path, claudeToken)
		require.Equal(t, http.StatusRequestTimeout, w.raw(head+`{"calls":`))
	}
	var list struct{ Approvals []ours }
	w.do(http.MethodGet, "/v1/approvals", claudeToken, "").json(t, &list)
	require.Empty(t, list.Approvals)
	// A wait takes longer than a body may, but not if a part of the body is missing.
	var q ours
	w.do(http.MethodPost, "/v1/approvals", claudeToken, oneCall).json(t, &q)
	for _, path := range []string{"approvals/" + string(q.ID) + "?wait=1s", "approvals/" + string(q.ID) + "/results?format=pydantic-ai&wait=1s", "events"} {
		head := fmt.Sprintf("GET /v1/%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n", path, claudeToken)
		require.Equal(t, http.StatusRequestTimeout, w.raw(head+"{"), path)
	}
}

func TestUnknownPathsAndMethodsAreProblems(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/", "/v1", "/v1/approvals/", "/v1/approvals/x/calls", "/v2/approvals", "/v1/approvals/x/approve"} {
		require.Equal(t, "not-found", w.do(http.MethodPost, path, claudeToken, `{}`).kind(t), path)
	}
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		got := w.do(method, "/v1/approvals", claudeToken, "")
		require.Equal(t, "method-not-allowed", got.kind(t), method)
		require.Equal(t, "GET, POST", got.header.Get("Allow"))
	}
	require.Equal(t, http.StatusMethodNotAllowed, w.do(http.MethodHead, "/v1/approvals", claudeToken, "").status)
}

func TestEveryTypeOfProblemIsExplained(t *testing.T) {
	w := newWorld(t)
	for _, name := range httpapi.Problems() {
		got := w.do(http.MethodGet, "/v1/problems/"+name, "", "")
		require.Equal(t, http.StatusOK, got.status, name)
		require.Contains(t, string(got.body), `"help":"`)
	}
	require.Equal(t, http.StatusNotFound, w.do(http.MethodGet, "/v1/problems/none", "", "").status)
}

func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	w := newWorld(t, func(h *httpapi.Config) { h.Origins = []string{"https://ops.example"} })
	for _, origin := range []string{"https://evil.example", "null", "https://ops.example.evil.example", "http://ops.example", "https://ops.example:8443"} {
		got := w.do(http.MethodGet, "/v1/approvals", claudeToken, "", "Origin", origin)
		require.Equal(t, "origin-not-allowed", got.kind(t), origin)
		require.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
	}
	got := w.do(http.MethodGet, "/v1/approvals", claudeToken, "", "Origin", "https://ops.example")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, "https://ops.example", got.header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "Origin", got.header.Get("Vary"))
	preflight := w.do(http.MethodOptions, "/v1/approvals", "", "", "Origin", "https://ops.example", "Access-Control-Request-Method", "POST")
	require.Equal(t, http.StatusNoContent, preflight.status)
	require.Contains(t, preflight.header.Get("Access-Control-Allow-Headers"), "Authorization")
	require.Empty(t, preflight.header.Get("Access-Control-Allow-Credentials"))

	off := newWorld(t)
	require.Equal(t, "origin-not-allowed", off.do(http.MethodGet, "/v1/approvals", claudeToken, "", "Origin", "https://ops.example").kind(t), "off unless it is configured")
}

// A page can give its own name the address of this machine.
func TestAListenerOnLoopbackAnswersOnlyUnderItsNames(t *testing.T) {
	w := newWorld(t, func(h *httpapi.Config) { h.Hosts = []string{"api.example"} })
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "127.0.0.1:1": 200, "[::1]:80": 200, "API.example": 200, "api.example:443": 200,
		"evil.example": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "10.0.0.1": 421,
	} {
		head := fmt.Sprintf("GET /v1/approvals HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", host, claudeToken)
		require.Equal(t, want, w.raw(head), host)
	}
}

func TestTheKeysOfReceiptsAreServed(t *testing.T) {
	w := newWorld(t, func(h *httpapi.Config) { h.Keys = func() []byte { return []byte(`{"keys":[]}`) } })
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/.well-known/countersign-keys", "", "").status)
	require.Equal(t, http.StatusNotFound, newWorld(t).do(http.MethodGet, "/.well-known/countersign-keys", "", "").status)
}

// While the keys of an issuer cannot be read, a token of it proves nobody, and
// its owner learns that it is not the token.
func TestKeysThatCannotBeReadAreAProblem(t *testing.T) {
	w := newWorld(t)
	agents := *w.agents.Load()
	agents[0].JWT = unreadableKeys
	w.agents.Store(&agents)
	require.Equal(t, "unavailable", w.do(http.MethodGet, "/v1/approvals", unreadableToken, "").kind(t))
}

// unreadableToken is a token of an issuer whose keys cannot be read.
const unreadableToken = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJpIiwiYXVkIjoiYSIsInN1YiI6InMifQ.c2ln"

var unreadableKeys = &bearer.JWT{Issuer: "i", Audience: "a", Subject: "s", Keys: "/nowhere"}
