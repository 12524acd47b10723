package mcptool_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/tools/mcptool"
)

// forgetful is a server whose sessions end, as they do when it is deployed again or nobody
// used them for a while. The client has no stream on which it would notice.
type forgetful struct {
	session, calls atomic.Int64
	changed        atomic.Bool // the description of its tool
	fails          atomic.Bool // its list
	always         bool        // no session lives until a call
	status         int         // with which it says so, 404 if zero
	refuses        bool        // calls, though it knows the session
	fails400       bool        // it runs calls, and answers them and a ping with errors under HTTP 400
	tells          bool        // and it says so in an error of JSON-RPC, at which the SDK keeps the session
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	now := fmt.Sprint("session-", f.session.Load())
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case json.NewDecoder(r.Body).Decode(&m) != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	case f.fails400 && (m.Method == "tools/call" || m.Method == "ping"):
		if m.Method == "tools/call" {
			f.calls.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"paid, but there is no receipt"}}`, m.ID)
		return
	case f.refuses && m.Method == "tools/call":
		f.calls.Add(1)
		w.WriteHeader(http.StatusBadRequest)
		return
	case m.Method != "initialize" && r.Header.Get("Mcp-Session-Id") != now, f.always && m.Method == "tools/call":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(cmp.Or(f.status, http.StatusNotFound))
		if f.tells {
			id := string(m.ID)
			if f.status != 0 {
				id = "null" // it has not read the request
			}
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Session not found"}}`, id)
		}
		return
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	result := "{}"
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", now)
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}`
	case "tools/list":
		if f.fails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		result = fmt.Sprintf(`{"tools":[{"name":"pay","description":"changed: %t","inputSchema":{"type":"object"}}]}`, f.changed.Load())
	case "tools/call":
		f.calls.Add(1)
		result = `{"content":[{"type":"text","text":"paid"}]}`
	}
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// A server that has forgotten the session did nothing with the call, so an approval of
// hours later is not spent on finding that out: the call is made in a new session.
func TestACallIsMadeInANewSessionIfTheServerForgotTheOldOne(t *testing.T) {
	for _, f := range []*forgetful{{}, {tells: true}} {
		page := httptest.NewServer(f)
		t.Cleanup(page.Close)
		r := start(t, mcptool.Server{Agent: "ops", Name: "srv", URL: page.URL})
		for calls := range 2 {
			got, err := r.call("srv.pay", `{}`)
			require.NoError(t, err)
			require.Contains(t, got, "paid")
			require.EqualValues(t, calls+1, f.calls.Load())
			f.session.Add(1)
		}
	}
}

// It is made twice at most.
func TestACallIsNotMadeIfTheServerForgetsEverySession(t *testing.T) {
	f := &forgetful{always: true}
	page := httptest.NewServer(f)
	t.Cleanup(page.Close)
	r := start(t, mcptool.Server{Agent: "ops", Name: "srv", URL: page.URL})
	_, err := r.call("srv.pay", `{}`)
	require.ErrorContains(t, err, "was not called: the server refused the request with the HTTP status 404")
}

// A server that answers 400 may have begun the call. So it is not made again, and later
// ones are made in a new session.
func TestCallsAfterOneInAForgottenSessionAreMadeInANewOne(t *testing.T) {
	for _, tells := range []bool{false, true} {
		f := &forgetful{status: http.StatusBadRequest, tells: tells}
		page := httptest.NewServer(f)
		t.Cleanup(page.Close)
		r := start(t, mcptool.Server{Agent: "ops", Name: "srv", URL: page.URL})
		_, err := r.call("srv.pay", `{}`)
		require.NoError(t, err)
		f.session.Add(1)
		_, err = r.call("srv.pay", `{}`)
		require.ErrorContains(t, err, "was not called: the server refused the request with the HTTP status 400")
		require.EqualValues(t, 1, f.calls.Load())
		require.Eventually(t, func() bool {
			_, err := r.call("srv.pay", `{}`)
			return err == nil
		}, 30*time.Second, 5*time.Millisecond)
		require.EqualValues(t, 2, f.calls.Load())
	}
}

// A call that a server refuses in a session that it knows is not made again.
func TestACallThatIsRefusedIsNotMadeInANewSession(t *testing.T) {
	f := &forgetful{refuses: true}
	page := httptest.NewServer(f)
	t.Cleanup(page.Close)
	r := start(t, mcptool.Server{Agent: "ops", Name: "srv", URL: page.URL})
	for calls := range 2 {
		_, err := r.call("srv.pay", `{}`)
		require.ErrorContains(t, err, "was not called: the server refused the request with the HTTP status 400")
		require.EqualValues(t, calls+1, f.calls.Load())
	}
}

// A server can answer a call that it ran with an error under HTTP 400, and know no ping.
func TestACallThatWasAnsweredWithAnErrorIsNotMadeAgain(t *testing.T) {
	f := &forgetful{fails400: true}
	page := httptest.NewServer(f)
	t.Cleanup(page.Close)
	r := start(t, mcptool.Server{Agent: "ops", Name: "srv", URL: page.URL})
	_, err := r.call("srv.pay", `{}`)
	require.ErrorContains(t, err, "paid, but there is no receipt")
	require.EqualValues(t, 1, f.calls.Load())
}

// The client has no stream that would end when another program takes the place of the
// server, so it asks now and then what the server lists.
func TestAServerWithoutAStreamIsListedAgain(t *testing.T) {
	f := &forgetful{}
	page := httptest.NewServer(f)
	t.Cleanup(page.Close)
	r := start(t, mcptool.Server{Agent: "ops", Name: "srv", URL: page.URL, Relist: 5 * time.Millisecond})
	_, err := r.call("srv.pay", `{}`)
	require.NoError(t, err)
	changes := func(to bool) {
		f.changed.Store(to)
		require.Eventually(t, func() bool {
			_, err := r.call("srv.pay", `{}`)
			return (err != nil) == to
		}, 30*time.Second, 5*time.Millisecond)
	}
	changes(true)
	changes(false)

	f.fails.Store(true) // what was known of it stays true
	_, err = r.call("srv.pay", `{}`)
	require.NoError(t, err)
	f.fails.Store(false)
	changes(true)
}
