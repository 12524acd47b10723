package mcptool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// What a server responds to one call, which the SDK cannot use, says nothing of the calls
// that are under way on the same connection, and another call is made on it.
func TestAResponseThatIsNoAnswerEndsNoOtherCall(t *testing.T) {
	refused := func(status int) string {
		return fmt.Sprintf("was not called: the server refused the request with the HTTP status %d", status)
	}
	for name, c := range map[string]struct {
		respond func(w http.ResponseWriter, id json.RawMessage)
		says    string
		unsure  bool
	}{
		"refused": {func(w http.ResponseWriter, _ json.RawMessage) { http.Error(w, "no", http.StatusForbidden) }, refused(403), false},
		"refused, in a stream": {func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusBadRequest)
		}, refused(400), false},
		"refused, with a result": {func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"paid"}]}}`, id)
		}, "paid", false},
		"failed":   {func(w http.ResponseWriter, _ json.RawMessage) { http.Error(w, "no", http.StatusInternalServerError) }, "the HTTP status 500", true},
		"accepted": {func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(http.StatusAccepted) }, "with the HTTP status 202, is no answer to the call", true},
		"a page": {func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		}, "with the HTTP status 200, is no answer to the call", true},
		"no JSON": {func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":`)
		}, "with the HTTP status 200, is no answer to the call", true},
		"the answer to another call": {func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":424242,"result":{"content":[]}}`)
		}, "with the HTTP status 200, is no answer to the call", true},
		"cut": {func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":`, id)
		}, "The connection to the server ended before it answered.", true},
		"too long": {func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			for chunk := make([]byte, 1<<20); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "The server sent a message of more than 8 MiB.", true},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := badCall(t, c.respond, nil)
			if err != nil {
				text += err.Error()
			}
			var unsure *agentrun.UnsureError
			require.Equal(t, c.unsure, errors.As(err, &unsure), "%v", err)
			require.Contains(t, text, c.says)
		})
	}
}

// badCall makes a call to which the server responds so, while another one is under way on
// the same connection, and requires that the other one is answered, and one after it. A GET
// is for stream, if it is not nil.
func badCall(t *testing.T, respond func(w http.ResponseWriter, id json.RawMessage), stream http.HandlerFunc) (string, error) {
	t.Helper()
	began, end := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(end) })
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments struct{ Which string } }
		}
		if r.Method == http.MethodGet && stream != nil {
			stream(w, r)
			return
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result := `{"tools":[{"name":"pay","inputSchema":{"type":"object"}}]}`
		switch {
		case len(m.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}`
		case m.Method == "tools/call" && m.Params.Arguments.Which == "bad":
			respond(w, m.ID)
			return
		case m.Method == "tools/call":
			if m.Params.Arguments.Which == "slow" {
				close(began)
				<-end
			}
			result = `{"content":[{"type":"text","text":"done"}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(page.Close)
	t.Cleanup(release)
	r := start(t, mcptool.Server{Agent: "ops", Name: "srv", URL: page.URL})
	type outcome struct {
		text string
		err  error
	}
	slow := make(chan outcome, 1)
	go func() {
		text, err := r.call("srv.pay", `{"which":"slow"}`)
		slow <- outcome{text, err}
	}()
	<-began
	text, err := r.call("srv.pay", `{"which":"bad"}`)
	next, failed := r.call("srv.pay", `{"which":"next"}`)
	require.NoError(t, failed)
	require.Equal(t, `"done"`, next)
	release()
	require.Equal(t, outcome{`"done"`, nil}, <-slow)
	return text, err
}
