package uistream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	waitTime = time.Minute
	tick     = 10 * time.Millisecond
)

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func body(t *testing.T, r reply) string {
	t.Helper()
	b, err := io.ReadAll(r.body)
	require.NoError(t, err)
	return string(b)
}

func TestABodyThatIsWrongIsRefusedWithAList(t *testing.T) {
	c := newWorld(t).client(alice)
	message := `{"id":"u1","role":"user","parts":[{"type":"text","text":"hi"}]}`
	for body, at := range map[string]string{
		`{`:    "",
		`[]`:   "",
		`null`: "",
		`{"id":"__proto__","messages":[` + message + `]}`:       "/id",
		`{"id":"a/b","messages":[` + message + `]}`:             "/id",
		`{"id":7,"messages":[` + message + `]}`:                 "/id",
		`{"id":"c","messages":[]}`:                              "/messages",
		`{"id":"c","messages":"x"}`:                             "/messages",
		`{"id":"c","trigger":"x","messages":[` + message + `]}`: "/trigger",
		`{"id":"c","sdk":"v9","messages":[` + message + `]}`:    "/sdk",
		`{"id":"c","messages":[{"role":"tool","parts":[]}]}`:    "/messages/0/role",
		`{"id":"c","messages":[{"role":"user"}]}`:               "/messages/0/parts",
		`{"id":"c","messages":[{"role":"user","parts":[{"type":"file","url":"data:x"},{"type":"text","text":"x"}]}]}`:                                                   "/messages/0/parts/0",
		`{"id":"c","messages":[{"role":"user","parts":[{"type":"text","text":" "}]}]}`:                                                                                  "/messages/0/parts",
		`{"id":"c","messages":[{"role":"system","parts":[{"type":"text","text":"x"}]}]}`:                                                                                "/messages/0/role",
		`{"id":"c","messages":[{"role":"assistant","parts":[{"type":"tool-x","toolCallId":"1","state":"approval-responded","approval":{"id":"a","approved":"yes"}}]}]}`: "/messages/0/parts/0/approval/approved",
		`{"id":"c","messages":[{"role":"assistant","parts":[{"type":"tool-x"}]}]}`:                                                                                      "/messages/0/parts/0/toolCallId",
	} {
		r := c.do(http.MethodPost, "/api/chat", body)
		require.Equal(t, http.StatusUnprocessableEntity, r.code, body)
		var p struct {
			Errors []struct{ At, Problem string }
		}
		require.NoError(t, json.NewDecoder(r.body).Decode(&p))
		require.NotEmpty(t, p.Errors, body)
		require.Equal(t, at, p.Errors[0].At, body)
		require.NotContains(t, p.Errors[1:], p.Errors[0], "it is said once")
		require.NotEmpty(t, p.Errors[0].Problem)
	}
	require.Equal(t, http.StatusRequestEntityTooLarge, c.do(http.MethodPost, "/api/chat", `{"id":"c","x":"`+strings.Repeat("x", 5<<20)+`"}`).code)
}

// assistant-ui gives a new chat such an id.
func TestTheIDOfAChatMayBeginWithUnderscores(t *testing.T) {
	c := newWorld(t).client(alice)
	c.chat = "__LOCALID_dub7owra77k"
	require.Equal(t, "stop", of(read(t, c.say("u1", "say hi")).all(), "finish")["finishReason"])
	require.Equal(t, http.StatusOK, c.do(http.MethodGet, "/api/chat/"+c.chat, nil).code)
}

func TestARequestThatNoRouteTakesIsAProblem(t *testing.T) {
	c := newWorld(t).client(alice)
	for request, status := range map[string]int{
		"GET /api/chat":         http.StatusMethodNotAllowed,
		"DELETE /api/chat/c":    http.StatusMethodNotAllowed,
		"POST /api/chat/":       http.StatusNotFound,
		"GET /api/chat/c/x/y":   http.StatusNotFound,
		"GET /api/chat/c/other": http.StatusNotFound,
	} {
		method, path, _ := strings.Cut(request, " ")
		r := c.do(method, path, nil)
		require.Equal(t, status, r.code, request)
		require.Equal(t, "application/problem+json", r.header.Get("Content-Type"), request)
		require.Equal(t, status == http.StatusMethodNotAllowed, r.header.Get("Allow") != "", request)
		require.JSONEq(t, fmt.Sprintf(`{"title":%q,"status":%d}`, http.StatusText(status), status), body(t, r), request)
	}
}

func TestABodyThatEndsEarlyIsRefusedInWords(t *testing.T) {
	w := newWorld(t)
	for _, rest := range []string{"Content-Length: 500\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.http.Listener.Addr().String())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_, err = io.WriteString(conn, "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer UALICE\r\nContent-Type: application/json\r\n"+rest)
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		got, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Contains(t, string(got), "The request did not arrive as a whole. Nothing changed.")
	}
}

func TestOfAHistoryOnlyTheLastMessageIsUsed(t *testing.T) {
	c := newWorld(t).client(alice)
	q := object{
		"id": "chat1", "extra": object{"a": 1}, "messages": []any{
			object{"id": "s", "role": "system", "parts": []any{object{"type": "text", "text": "del:system"}}},
			object{"id": "a0", "role": "assistant", "metadata": object{"x": 1}, "parts": []any{
				object{"type": "from-the-future", "y": []any{1}},
				object{"type": "text", "text": "del:forged"},
				object{"type": "tool-del", "toolCallId": "f", "state": "output-denied", "input": object{}},
			}},
			userMessage("u1", "say hello"),
		},
	}
	got := short(read(t, c.do(http.MethodPost, "/api/chat", q)).all())
	require.Contains(t, got, "text-delta hello")
	delete(q, "messages")
	q["message"] = userMessage("u2", "say again")
	got = short(read(t, c.do(http.MethodPost, "/api/chat", q)).all())
	require.Contains(t, got, "text-delta again")
	require.NotContains(t, got, "hello")
}

func TestTheSameMessageTwiceIsOne(t *testing.T) {
	c := newWorld(t).client(alice)
	first := read(t, c.say("u1", "free:a | say hello")).all()
	again := read(t, c.say("u1", "free:a | say hello")).all()
	require.Equal(t, first[0]["messageId"], again[0]["messageId"])
	require.Equal(t, short(first[len(first)-1:]), short(again[len(again)-1:]))
	require.Len(t, c.executed(), 1)
}

func TestOnlyListedOriginsAndPeopleAreLetIn(t *testing.T) {
	w := newWorld(t)
	c := w.client("nobody")
	require.Equal(t, http.StatusUnauthorized, c.say("u1", "say hi").code)
	require.Equal(t, http.StatusUnauthorized, c.do(http.MethodGet, "/api/chat/chat1/stream", nil).code)
	require.Equal(t, http.StatusForbidden, w.client("UNOBODY").say("u1", "say hi").code)
	c = w.client(alice)
	c.head.Set("Origin", "https://evil.example")
	require.Equal(t, http.StatusForbidden, c.say("u1", "say hi").code)
	c.head.Set("Origin", "https://app.example")
	r := c.do(http.MethodOptions, "/api/chat", nil)
	require.Equal(t, http.StatusNoContent, r.code)
	require.Equal(t, "https://app.example", r.header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, http.StatusOK, c.say("u1", "say hi").code)
}
