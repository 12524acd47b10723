package mcptool_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
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
	echoes         bool        // which has the id of the request also if the status is not 404
	relist         time.Duration
	lists          atomic.Int64 // that it was asked for
	opened         atomic.Int64 // sessions, of which the first is for the list that is accepted
	pings          atomic.Int64 // that it answered, if only with an error
	strange        atomic.Int64 // pings and calls in a session that it does not know
	noPing, kind   string       // with which it answers a ping, and its media type
	pinged         func(w http.ResponseWriter, answered int64) (done bool)
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
	case m.Method == "ping" && r.Header.Get("Mcp-Session-Id") == now && f.noPing != "":
		w.Header().Set("Content-Type", f.kind)
		_, _ = fmt.Fprintf(w, f.noPing, m.ID)
		return
	case m.Method == "ping" && r.Header.Get("Mcp-Session-Id") == now && f.pinged != nil && f.pinged(w, f.pings.Add(1)):
		return
	case m.Method != "initialize" && r.Header.Get("Mcp-Session-Id") != now, f.always && m.Method == "tools/call":
		if m.Method == "ping" || m.Method == "tools/call" {
			f.strange.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(cmp.Or(f.status, http.StatusNotFound))
		if f.tells {
			id := string(m.ID)
			if f.status != 0 && !f.echoes {
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
		f.opened.Add(1)
		w.Header().Set("Mcp-Session-Id", now)
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}`
	case "tools/list":
		f.lists.Add(1)
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

// always is how a server is configured that is pinged before each call.
const always = time.Nanosecond

func (f *forgetful) start(t *testing.T, quiet time.Duration) *running {
	t.Helper()
	page := httptest.NewServer(f)
	t.Cleanup(page.Close)
	return start(t, mcptool.Server{Agent: "ops", Name: "srv", URL: page.URL, Quiet: quiet, Relist: f.relist})
}

// A server that answers 400 may have begun the call, so a ping finds out before it is sent
// whether the server knows the session.
func TestACallIsMadeInANewSessionIfAPingIsRefusedBeforeIt(t *testing.T) {
	for _, f := range []*forgetful{
		{status: http.StatusBadRequest},
		{status: http.StatusBadRequest, tells: true},
		{status: http.StatusBadRequest, tells: true, echoes: true},
		{status: http.StatusNotFound},
		{status: http.StatusNotFound, tells: true},
	} {
		r := f.start(t, always)
		for calls := range 2 {
			got, err := r.call("srv.pay", `{}`)
			require.NoError(t, err)
			require.Contains(t, got, "paid")
			require.EqualValues(t, calls+1, f.calls.Load())
			require.EqualValues(t, calls, f.strange.Load(), "only the ping is refused")
			f.session.Add(1)
		}
	}
}

// Also in the new session the tool has to be as it was accepted.
func TestAToolThatIsAnotherInTheNewSessionIsNotCalled(t *testing.T) {
	f := &forgetful{status: http.StatusBadRequest}
	r := f.start(t, always)
	_, err := r.call("srv.pay", `{}`)
	require.NoError(t, err)
	f.changed.Store(true)
	f.session.Add(1)
	_, err = r.call("srv.pay", `{}`)
	require.ErrorContains(t, err, "nobody has accepted the change")
	require.EqualValues(t, 1, f.calls.Load())
}

// Calls at the same time do not ask one after the other, and none is lost.
func TestCallsAtTheSameTimeShareAPing(t *testing.T) {
	f := &forgetful{status: http.StatusBadRequest}
	r := f.start(t, always)
	_, err := r.call("srv.pay", `{}`)
	require.NoError(t, err)
	f.session.Add(1)
	made := make(chan error, 20)
	for range 20 {
		go func() {
			_, err := r.tools["srv.pay"].Execute(t.Context(), agentrun.Call{ToolCall: approvals.ToolCall{ID: "c", Name: "srv.pay", Args: json.RawMessage(`{}`)}})
			made <- err
		}()
	}
	for range 20 {
		require.NoError(t, <-made)
	}
	require.EqualValues(t, 21, f.calls.Load())
	require.EqualValues(t, 1, f.strange.Load())
	require.EqualValues(t, 3, f.opened.Load())
}

// A server that has just answered something knows the session.
func TestNoPingIsSentInABurst(t *testing.T) {
	f := &forgetful{pinged: func(http.ResponseWriter, int64) bool { return false }}
	r := f.start(t, time.Hour)
	for range 3 {
		_, err := r.call("srv.pay", `{}`)
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, f.pings.Load(), "when it was connected to")
}

// A server that refuses a ping in a session that it has just opened says nothing with that.
// One that fails at a ping is called too.
func TestAServerThatAnswersNoPingIsCalled(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusNotFound, http.StatusAccepted, http.StatusUnauthorized, http.StatusBadGateway} {
		for _, fails := range []int64{1, 2} {
			if fails == 2 && (status == http.StatusBadRequest || status == http.StatusNotFound) {
				continue
			}
			f := &forgetful{relist: 5 * time.Millisecond, pinged: func(w http.ResponseWriter, answered int64) bool {
				if answered >= fails {
					w.WriteHeader(status)
				}
				return answered >= fails
			}}
			r := f.start(t, always)
			for range 3 {
				_, err := r.call("srv.pay", `{}`)
				require.NoError(t, err)
			}
			require.EqualValues(t, 3, f.calls.Load())
			listed := f.lists.Load() // at which a session is kept
			require.Eventually(t, func() bool { return f.lists.Load() >= listed+20 }, 30*time.Second, 5*time.Millisecond)
			require.EqualValues(t, 2, f.opened.Load())
			require.Equal(t, fails == 1, f.pings.Load() == 1, "it is asked once, unless it answers")
		}
	}
}

// That a server has no ping is an answer, in JSON or as an event.
func TestAServerThatKnowsNoPingKnowsTheSession(t *testing.T) {
	for _, form := range []struct{ kind, message string }{
		{"application/json", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`},
		{"text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}\n\n"},
	} {
		f := &forgetful{status: http.StatusBadRequest, noPing: form.message, kind: form.kind}
		r := f.start(t, always)
		for calls := range 2 {
			_, err := r.call("srv.pay", `{}`)
			require.NoError(t, err)
			_, err = r.call("srv.pay", `{}`)
			require.NoError(t, err)
			require.EqualValues(t, calls+2, f.opened.Load())
			f.session.Add(1)
		}
		require.EqualValues(t, 4, f.calls.Load())
	}
}

// A call that is given up while it waits for the ping is not made.
func TestACallIsNotMadeIfItIsGivenUpBeforeThePingIsAnswered(t *testing.T) {
	asked := make(chan struct{})
	over := make(chan struct{})
	f := &forgetful{pinged: func(_ http.ResponseWriter, answered int64) bool {
		if answered == 2 {
			close(asked)
			<-over
		}
		return answered == 2
	}}
	r := f.start(t, always)
	t.Cleanup(func() { close(over) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.tools["srv.pay"].Execute(ctx, agentrun.Call{ToolCall: approvals.ToolCall{ID: "c", Name: "srv.pay", Args: json.RawMessage(`{}`)}})
		ended <- err
	}()
	select {
	case <-asked:
	case err := <-ended:
		require.NoError(t, err)
		require.Fail(t, "no ping was sent")
	}
	cancel()
	require.ErrorContains(t, <-ended, "was not called")
	require.Zero(t, f.calls.Load())
	_, err := r.call("srv.pay", `{}`)
	require.NoError(t, err)
}

// A server can forget the session after it has answered the ping. If it answers 400 then, it
// may have begun the call, which is not made again.
func TestACallAfterItsPingIsMadeAgainOnlyIfItsSessionIsNotFound(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusNotFound} {
		f := &forgetful{status: status}
		f.pinged = func(w http.ResponseWriter, answered int64) bool {
			if answered == 2 {
				f.session.Add(1)
			}
			return false
		}
		r := f.start(t, always)
		_, err := r.call("srv.pay", `{}`)
		if status == http.StatusNotFound {
			require.NoError(t, err)
			require.EqualValues(t, 1, f.calls.Load())
			continue
		}
		require.ErrorContains(t, err, "was not called: the server refused the request with the HTTP status 400")
		require.Zero(t, f.calls.Load())
		_, err = r.call("srv.pay", `{}`)
		require.NoError(t, err)
		require.EqualValues(t, 1, f.calls.Load())
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

// While a session is opened, calls are made in the one before. So its list does not count yet.
func TestNoCallIsJudgedByTheListOfASessionThatIsBeingOpened(t *testing.T) {
	var hangs atomic.Bool
	asked, over := make(chan struct{}), make(chan struct{})
	f := &forgetful{relist: 5 * time.Millisecond, pinged: func(http.ResponseWriter, int64) bool {
		if hangs.CompareAndSwap(true, false) {
			close(asked)
			<-over
		}
		return false
	}}
	r := f.start(t, time.Hour)
	f.changed.Store(true)
	f.session.Add(1)
	require.Eventually(t, func() bool {
		_, err := r.call("srv.pay", `{}`)
		return err != nil && strings.Contains(err.Error(), "nobody has accepted the change")
	}, 30*time.Second, 5*time.Millisecond)
	calls, strange := f.calls.Load(), f.strange.Load()
	hangs.Store(true)
	f.changed.Store(false)
	f.session.Add(1)
	<-asked
	_, err := r.call("srv.pay", `{}`)
	close(over)
	require.ErrorContains(t, err, "nobody has accepted the change")
	require.Equal(t, calls, f.calls.Load())
	require.Equal(t, strange, f.strange.Load(), "in the session before")
}

// A session whose ping was refused stays there until another one is opened, which no call
// waits for longer than it has to.
func TestNoCallIsLostWhereEverySecondPingIsRefused(t *testing.T) {
	f := &forgetful{pinged: func(w http.ResponseWriter, answered int64) bool {
		if answered%2 == 0 {
			w.WriteHeader(http.StatusBadRequest)
		}
		return answered%2 == 0
	}}
	r := f.start(t, always)
	for range 5 {
		_, err := r.call("srv.pay", `{}`)
		require.NoError(t, err)
	}
	require.EqualValues(t, 5, f.calls.Load())
}
