package mcptool_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
)

func answerOf(id json.RawMessage) string {
	return fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"paid\"}]}}\n\n", id)
}

// What is wrong with the stream of events that the answer to one call comes in says
// nothing of the other calls.
func TestAStreamThatIsNoAnswerEndsNoOtherCall(t *testing.T) {
	const (
		ended   = "The connection to the server ended before it answered, and could not be resumed (HTTP status %d)."
		noEvent = "The server sent an event that cannot be read, and no answer after it."
		first   = "id: 1\nretry: 1\n\n"
	)
	says := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text)
		}
	}
	status := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for name, c := range map[string]struct {
		stream string // "ANSWER" is where the answer is
		resume http.HandlerFunc
		says   string // of the call; "paid" if it was answered
	}{
		"no JSON":                            {"data: {\"jsonrpc\":\n\n", nil, noEvent},
		"no JSON, in a stream to be resumed": {first + "id: 2\ndata: {\"jsonrpc\":\n\n", says(first), noEvent},
		"no JSON, and then the answer":       {"data: {\"jsonrpc\":\n\nANSWER", nil, "paid"},
		"no field, and then the answer":      {"nothing\n\nANSWER", nil, "paid"},
		"another event, and then the answer": {"event: hint\ndata: {}\n\nANSWER", nil, "paid"},
		"the answer in several lines":        {"data: {\"jsonrpc\":\"2.0\",\r\ndata:\"id\":ID,\r\ndata:\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"paid\"}]}}", nil, "paid"},
		"too long":                           {"data: " + strings.Repeat("x", 9<<20) + "\n\nANSWER", nil, "The server sent a message of more than 8 MiB."},
		"cut":                                {"", nil, "The connection to the server ended before it answered."},
		"cut, and not found":                 {first, status(http.StatusNotFound), fmt.Sprintf(ended, 404)},
		"cut in an event, and not available": {first + "id: 2\ndata: {\"jsonrpc\":", status(http.StatusServiceUnavailable), fmt.Sprintf(ended, 503)},
		"cut, and a page":                    {first, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, fmt.Sprintf(ended, 200)},
		"cut, and cut without another event": {first, says(first), fmt.Sprintf(ended, 200)},
		"cut, and answered":                  {first, nil, "paid"},
		"cut after the id of the answer":     {first + "id: 2\n", nil, "paid"},
	} {
		t.Run(name, func(t *testing.T) {
			var answer string
			text, err := badCall(t, func(w http.ResponseWriter, id json.RawMessage) {
				answer = answerOf(id)
				r := strings.NewReplacer("ANSWER", answer, "ID", string(id))
				says(r.Replace(c.stream))(w, nil)
			}, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Header.Get("Last-Event-Id") == "":
					w.WriteHeader(http.StatusMethodNotAllowed)
				case r.Header.Get("Last-Event-Id") != "1": // nothing came after the first event
					w.WriteHeader(http.StatusNotFound)
				case c.resume == nil:
					says(answer)(w, r)
				default:
					c.resume(w, r)
				}
			})
			if c.says == "paid" {
				require.NoError(t, err)
				require.Equal(t, `"paid"`, text)
				return
			}
			var unsure *agentrun.UnsureError
			require.ErrorAs(t, err, &unsure)
			require.EqualError(t, err, "outcome not known: "+c.says)
		})
	}
}

// When the stream ends on which a server says what has changed, as it does at a proxy that
// lets no response take long, and cannot be resumed, the calls go on. Another connection
// takes the place of this one.
func TestAStreamOfChangesThatIsOverEndsNoCall(t *testing.T) {
	for name, c := range map[string]struct {
		first    string
		resumed  int // how often the SDK asks for the rest
		response http.HandlerFunc
	}{
		"not found":         {"retry: 1\n\n", 1, http.NotFound},
		"after a bad event": {"retry: 1\ndata: {\n\n", 1, http.NotFound},
		"cut every time": {"retry: 1\n\n", 5, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "retry: 1\n\n")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var streams atomic.Int64
			waits, renewed := make(chan struct{}), make(chan struct{})
			text, err := badCall(t, func(w http.ResponseWriter, id json.RawMessage) {
				close(waits)
				select {
				case <-renewed:
				case <-t.Context().Done():
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, answerOf(id))
			}, func(w http.ResponseWriter, r *http.Request) {
				switch n := int(streams.Add(1)) - 1; { // the first is of the connection for the pins
				case n == 1:
					w.Header().Set("Content-Type", "text/event-stream")
					w.WriteHeader(http.StatusOK)
					_ = http.NewResponseController(w).Flush()
					select {
					case <-waits:
						_, _ = io.WriteString(w, c.first)
					case <-r.Context().Done():
					}
				case 0 < n && n <= 1+c.resumed:
					c.response(w, r)
				case n == 2+c.resumed:
					close(renewed)
					fallthrough
				default:
					w.WriteHeader(http.StatusMethodNotAllowed)
				}
			})
			require.NoError(t, err)
			require.Equal(t, `"paid"`, text)
		})
	}
}
