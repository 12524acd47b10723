// Package plainhttptest has what clients and servers of HTTP are tested against.
package plainhttptest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
)

// Switch answers that the connection is for another protocol from now on, and then says
// nothing until the client closes it. No time limit of net/http ends a read of such a
// connection. It returns an error if the connection could not be taken over, or did not
// end well.
func Switch(w http.ResponseWriter) error {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the client has closed it
	if _, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"); err == nil {
		_, err = io.Copy(io.Discard, conn)
	}
	return err
}

// PostLate posts JSON with a bearer token, and returns the answer. The body arrives after
// before has been called, and that is called when the server begins to read the body.
func PostLate(h http.Handler, path, token, body string, before func()) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, &late{strings.NewReader(body), before})
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A late body calls before at each read.
type late struct {
	io.Reader

	before func()
}

func (l *late) Read(p []byte) (int, error) {
	l.before()
	return l.Reader.Read(p)
}
