package slacksim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// The control API refuses what it does not know, so that a test is never told
// that something happened which did not.
func TestTheControlAPIRefusesWhatItDoesNotKnow(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for path, want := range map[string]int{
		"messages?user=bob&channel=ops&thread=1.1": 400, // thread_ts
		"state?user=bob":       400,
		"views?user=nobody":    404,
		"views":                404,
		"views?user=bob":       200,
		"messages?user=nobody": 404,
	} {
		status, answer := w.sim(t, path, nil)
		require.Equal(t, want, status, "%s: %v", path, answer)
		if want != http.StatusOK {
			require.NotEmpty(t, answer["error"], path)
		}
	}
	for _, c := range []struct {
		path, in string
		want     int
	}{
		{"home", `{"user":"gone"}`, 403},
		{"home", `{"user":"countersign"}`, 403},
		{"clock", `{"advance_ms":-1}`, 400},
		{"clock", `{"advance_ms":9223372036855}`, 400}, // as a time.Duration it is negative
		{"clock", `{"advance_ms":9223372036854775807}`, 400},
		{"clock", `{"advance_ms":31622400000}`, 200},
		{"clock?advance_ms=60000", `{}`, 400},
		{"faults", `{"next":[{"status":42}]}`, 400},
		{"faults", `{"next":[{"method":"chat.post","status":429}]}`, 400},
		{"faults", `{"next":[{"status":429,"retry_after":-1}]}`, 400},
		{"faults", `{"bad_signatures":-1}`, 400},
		{"faults", `{"duplicate_deliveries":-1}`, 400},
		{"faults", `{"envelope_delay_ms":-1}`, 400},
		{"faults", `{"outage_ms":-1}`, 400},
		{"faults", `{"outage_ms":9223372036854775807}`, 400},
		{"faults", `{"chaos":{"limited":20}}`, 400}, // a share, and no percentage
		{"faults", `{"chaos":{"lost_reply":-0.1}}`, 400},
		{"faults", `{"chaos":{"limited":0.5,"failed":0.5,"lost_reply":0.1}}`, 400},
		{"faults", `{"chaos":{"duplicated":1.1}}`, 400},
		{"faults", `{"chaos":{"event_delay_ms":-1}}`, 400},
		{"faults", `{"skew_seconds":-600,"outage_ms":1,"chaos":{"limited":0.7,"failed":0.2,"lost_reply":0.1,"duplicated":1}}`, 200},
		{"faults", `{}`, 200},
		{"faults", `{"next":[{"method":"response_url","status":503},{"status":429}]}`, 200},
	} {
		status, answer := w.sim(t, c.path, json.RawMessage(c.in))
		require.Equal(t, c.want, status, "%s %s: %v", c.path, c.in, answer)
	}
	require.NoError(t, w.Archive("alice", "ops", true))
	status, answer := w.sim(t, "join", json.RawMessage(`{"user":"gita","channel":"ops"}`))
	require.Equal(t, 403, status, "nobody comes into an archived channel")
	require.Contains(t, answer["error"], "C0OPS is archived")
	resp, err := http.Post(w.url+"/sim/reload", "application/json", strings.NewReader(`{"user":"bob"} {"user":"alice"}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 400, resp.StatusCode, "one request is one JSON value")
}

// Where the app listens is an http or https URL, or nothing; otherwise nothing is set.
func TestTheControlAPIRefusesURLsThatAreNone(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	good := w.app.URL + "/other"
	for _, field := range []string{"events", "interactivity", "commands", "options"} {
		for _, wrong := range []string{"nonsense", "localhost:3000", "/slack/events", "ftp://127.0.0.1/", "http://", "http://127.0.0.1:port/"} {
			in := map[string]string{"events": good, "interactivity": good, "commands": good}
			in[field] = wrong
			status, answer := w.sim(t, "urls", in)
			require.Equal(t, http.StatusBadRequest, status, "%s: %s", field, wrong)
			require.Equal(t, map[string]any{
				"error": fmt.Sprintf("the input makes no sense: %s: %q is not an http or https URL", field, wrong),
			}, answer)
		}
	}
	require.NoError(t, w.OpenHome("bob"))
	w.idle(t)
	require.Len(t, w.app.requests("/events"), 1, "the URLs are those from before")

	status, _ := w.sim(t, "urls", map[string]string{"events": good, "interactivity": "", "commands": "https://localhost"})
	require.Equal(t, http.StatusOK, status)
}

// A program that uses a wrong path or method reads why, as after every other mistake.
func TestTheControlAPINamesAWrongPathOrMethod(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for _, c := range []struct {
		path   string
		in     any
		status int
		says   string
	}{
		{"nowhere", nil, 404, "there is no /sim/nowhere; docs/slacksim.md has all routes"},
		{"", nil, 404, "there is no /sim/; docs/slacksim.md has all routes"},
		{"post", nil, 405, "/sim/post takes POST, not GET"},
		{"messages", map[string]string{"user": "bob"}, 405, "/sim/messages takes GET, not POST"},
	} {
		status, answer := w.sim(t, c.path, c.in)
		require.Equal(t, c.status, status, c.path)
		require.Equal(t, map[string]any{"error": c.says}, answer)
	}
	resp, err := http.Get(w.url + "/sim/post")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "POST", resp.Header.Get("Allow"))
}
