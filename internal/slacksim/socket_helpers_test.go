package slacksim_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// link is one connection of an app in Socket Mode, written by hand.
type link struct {
	conn  *websocket.Conn
	inbox chan map[string]any // closed at the end of the connection
	gone  error               // why it ended; read it after the inbox is closed
	pings chan struct{}
}

// socketWorkspace is a workspace whose app is set to Socket Mode; it also
// has URLs, at which nothing may arrive.
func socketWorkspace(t *testing.T, cfg slacksim.Config) *workspace {
	t.Helper()
	cfg.SocketMode = true
	if cfg.SocketPing == 0 {
		cfg.SocketPing = 5 * time.Second
	}
	w := newWorkspace(t, cfg)
	t.Cleanup(func() {
		for _, path := range []string{"/events", "/interactivity", "/commands"} {
			require.Empty(t, w.app.requests(path), "nothing goes over HTTP")
		}
	})
	return w
}

// ticket asks for the URL of a connection.
func (w *workspace) ticket(t *testing.T) string {
	t.Helper()
	answer := w.raw(t, "apps.connections.open", "", "Bearer "+w.AppToken(), "")
	require.Equal(t, true, answer["ok"], "%v", answer)
	return answer["url"].(string)
}

// dial opens a connection; it does not wait for hello.
func dial(t *testing.T, url string) *link {
	t.Helper()
	conn, resp, err := websocket.DefaultDialer.DialContext(soon(t), url, http.Header{"Origin": {"https://api.slack.com"}})
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	l := &link{conn: conn, inbox: make(chan map[string]any, 64), pings: make(chan struct{}, 64)}
	answer := conn.PingHandler()
	conn.SetPingHandler(func(data string) error {
		l.pings <- struct{}{}
		return answer(data)
	})
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(l.inbox)
		for {
			var m map[string]any
			if l.gone = conn.ReadJSON(&m); l.gone != nil {
				return
			}
			l.inbox <- m
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-read
	})
	return l
}

// connect opens a connection and reads hello.
func (w *workspace) connect(t *testing.T) *link {
	t.Helper()
	l := dial(t, w.ticket(t))
	require.Equal(t, "hello", l.next(t)["type"])
	return l
}

// next is the next message, which must come soon.
func (l *link) next(t *testing.T) map[string]any {
	t.Helper()
	select {
	case m, ok := <-l.inbox:
		if !ok {
			require.NoError(t, l.gone, "the connection ended")
		}
		return m
	case <-soon(t).Done():
		require.Fail(t, "no message came")
	}
	return nil
}

// ends waits for the end of the connection, with nothing said before.
func (l *link) ends(t *testing.T) error {
	t.Helper()
	select {
	case m, ok := <-l.inbox:
		require.False(t, ok, "said before the end: %v", m)
	case <-soon(t).Done():
		require.Fail(t, "the connection did not end")
	}
	return l.gone
}

func (l *link) ack(t *testing.T, envelope map[string]any, payload string) {
	t.Helper()
	message := `{"envelope_id":"` + envelope["envelope_id"].(string) + `"`
	if payload != "" {
		message += `,"payload":` + payload
	}
	require.NoError(t, l.conn.WriteMessage(websocket.TextMessage, []byte(message+"}")))
}

// while runs what a person does, which waits for the app's answer, beside
// what the app does.
func while[Out any](t *testing.T, person func() (Out, error), app func()) Out {
	t.Helper()
	type outcome struct {
		out Out
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		out, err := person()
		done <- outcome{out, err}
	}()
	app()
	select {
	case o := <-done:
		require.NoError(t, o.err)
		return o.out
	case <-soon(t).Done():
		require.Fail(t, "the person still waits")
	}
	panic("unreachable")
}

// says posts a mention and does not wait for the app.
func (w *workspace) says(t *testing.T) {
	t.Helper()
	_, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "@countersign go"})
	require.NoError(t, err)
}

// problems are those of the log, of one kind of entry.
func (w *workspace) problems(kind string) []string {
	var all []string
	for _, e := range w.Log() {
		if e.Kind == kind {
			all = append(all, e.Problem)
		}
	}
	return all
}

func (w *workspace) await(t *testing.T, cond func() bool) {
	t.Helper()
	require.NoError(t, w.Await(soon(t), cond))
}

func rawJSON(v string) json.RawMessage { return json.RawMessage(strings.TrimSpace(v)) }
