package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A client that sends its whole request before it reads gets the answer of a handler that
// has not read it.
func TestARefusalReachesAClientThatStillSends(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(readRest(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begins" {
			_, _ = io.CopyN(io.Discard, http.MaxBytesReader(w, r.Body, 1000), 2000)
		}
		http.Error(w, "no such token", http.StatusUnauthorized)
	})))
	defer server.Close()
	const size = 6 << 20
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n", size)
	body := strings.Repeat("x", size)
	for name, request := range map[string]string{
		"that closes the connection":    "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + length + body,
		"that keeps the connection":     "POST / HTTP/1.1\r\nHost: a\r\n" + length + body,
		"of HTTP/1.0":                   "POST / HTTP/1.0\r\n" + length + body,
		"in one chunk":                  fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, body),
		"whose beginning was read":      "POST /begins HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + length + body,
		"that was told to continue":     "POST /begins HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" + length + body,
		"that waits for 100 Continue":   "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" + length,
		"that ends before its own body": "POST / HTTP/1.1\r\nHost: a\r\n" + length + body[:1000],
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			_, err = io.WriteString(conn, request)
			require.NoError(t, err)
			if !strings.Contains(name, "waits") {
				require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			}
			got, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Regexp(t, `^(HTTP/1.1 100 Continue\r\n\r\n)?HTTP/1.[01] 401 `, string(got))
			require.Contains(t, string(got), "no such token")
		})
	}
}

// So does a client of the bot, whatever it asks for: a coding agent that gets no answer
// from its hook may run the tool.
func TestTheBotAnswersAClientThatStillSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.listen()
	w.start()
	body := strings.Repeat("x", 6<<20)
	for path, c := range map[string]struct{ credential, want string }{
		"/v1/approvals":                     {"wrong", "/v1/problems/unauthorized"},
		"/v1/nothing":                       {agent.token, "/v1/problems/not-found"},
		"/v1/hooks/claude-code":             {"wrong", `"permissionDecision":"deny"`},
		"/v1/hooks/claude-code?hold=never":  {agent.token, `"permissionDecision":"deny"`},
		"/v1/hooks/claude-code?hold=1s":     {agent.token, "the question has more than"},
		"/v1/approvals/any/calls/any/claim": {agent.token, "/v1/problems/too-large"},
	} {
		t.Run(path, func(t *testing.T) {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(agent.url, "http://"))
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
				path, c.credential, len(body), body)
			require.NoError(t, err)
			got, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Contains(t, string(got), c.want)
		})
	}
}
