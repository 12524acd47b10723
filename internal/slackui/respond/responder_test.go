package respond

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// An answer is what a Slack says to one request: a status, with a Retry-After if it is
// 429, or a code of its own, or nothing.
type answer struct {
	status int
	retry  string
	code   string
}

// A mood is of a Slack that gives these answers, the last of them for ever.
type mood struct {
	answers []answer
	asked   []time.Duration // since it began
	began   time.Time
}

func (m *mood) RoundTrip(*http.Request) (*http.Response, error) {
	m.asked = append(m.asked, time.Since(m.began))
	a := m.answers[min(len(m.asked), len(m.answers))-1]
	if a == (answer{}) {
		return nil, errors.New("no connection")
	}
	body := `{"ok":true,"message_ts":"1.1"}`
	if a.code != "" {
		body = `{"ok":false,"error":"` + a.code + `"}`
	}
	h := http.Header{}
	if a.retry != "" {
		h.Set("Retry-After", a.retry)
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// A person who clicked and is refused learns it, although Slack does not take the words
// at once.
func TestWordsThatSlackDoesNotTakeAreSentAgain(t *testing.T) {
	const s = time.Second
	ok := answer{status: 200}
	for name, c := range map[string]struct {
		answers []answer
		asked   []time.Duration
	}{
		"taken":                   {[]answer{ok}, []time.Duration{0}},
		"limited":                 {[]answer{{status: 429, retry: "3"}, {status: 429, retry: "4"}, ok}, []time.Duration{0, 3 * s, 7 * s}},
		"limited for too long":    {[]answer{{status: 429, retry: "30"}}, []time.Duration{0}},
		"limited without a time":  {[]answer{{status: 429}, ok}, []time.Duration{0, 2 * s}},
		"out of order":            {[]answer{{status: 503}, {}, {status: 200, code: "internal_error"}, ok}, []time.Duration{0, 2 * s, 6 * s, 14 * s}},
		"out of order for longer": {[]answer{{status: 503}}, []time.Duration{0, 2 * s, 6 * s, 14 * s}},
		"refused":                 {[]answer{{status: 200, code: "no_text"}}, []time.Duration{0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slack := &mood{answers: c.answers, began: time.Now()}
				r := New(slackapi.New(func() string { return "xoxb" }, "http://slack/api", slack), slog.New(slog.DiscardHandler))
				require.NoError(t, r.Tell(t.Context(), inbound.Place{Channel: "C0OPS", User: "U0DAVE"}, blockkit.Ours("You can't approve this.")))
				require.NoError(t, r.Wait(t.Context()))
				require.Equal(t, c.asked, slack.asked)
				require.LessOrEqual(t, time.Since(slack.began), afterworkTime)
			})
		})
	}
}

// Words that neither Slack nor the response URL takes are in the log, with both reasons.
// A limit that does not end is no reason to tell the person nothing.
func TestALimitThatLastsLeavesNobodyUntold(t *testing.T) {
	for name, status := range map[string]int{"taken": 200, "refused": 404} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slack := &mood{answers: []answer{{status: 429, retry: "8"}}, began: time.Now()}
				log := &strings.Builder{}
				r := New(slackapi.New(func() string { return "xoxb" }, "http://slack/api", slack), slog.New(slog.NewTextHandler(log, nil)))
				url := &mood{answers: []answer{{status: status}}, began: time.Now()}
				before := http.DefaultTransport
				http.DefaultTransport = url
				defer func() { http.DefaultTransport = before }()
				require.NoError(t, r.Tell(t.Context(), inbound.Place{Channel: "C0OPS", User: "U0DAVE", ResponseURL: "http://slack/response"}, blockkit.Ours("You can't approve this.")))
				require.NoError(t, r.Wait(t.Context()))
				require.NotEmpty(t, url.asked)
				if status == 200 {
					require.Equal(t, []time.Duration{8 * time.Second}, url.asked)
					require.Empty(t, log.String())
					return
				}
				require.Contains(t, log.String(), "chat.postEphemeral")
				require.Contains(t, log.String(), "response_url")
			})
		})
	}
}

// Where Slack refuses the words, or does not answer in time, they go to the response URL of
// the click, which needs no token.
func TestWordsGoToTheResponseURLWhereSlackTakesThemNowhereElse(t *testing.T) {
	for name, c := range map[string]struct {
		answer answer
		used   bool
	}{
		"taken":                {answer{status: 200}, false},
		"limited for too long": {answer{status: 429, retry: "30"}, true},
		"a revoked token":      {answer{status: 200, code: "token_revoked"}, true},
		"a missing scope":      {answer{status: 200, code: "missing_scope"}, true},
		"no answer":            {answer{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var got atomic.Value
			url := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got.Store(string(body))
				w.Header().Set("Content-Type", "text/plain")
				_, _ = io.WriteString(w, "ok")
			}))
			t.Cleanup(url.Close)
			slack := &mood{answers: []answer{c.answer}, began: time.Now()}
			r := New(slackapi.New(func() string { return "xoxb" }, "http://slack/api", slack), slog.New(slog.DiscardHandler))
			require.NoError(t, r.Tell(t.Context(), inbound.Place{Channel: "C0OPS", User: "U0DAVE", ResponseURL: url.URL}, blockkit.Ours("You can't approve this.")))
			require.NoError(t, r.Wait(t.Context()))
			require.Len(t, slack.asked, 1)
			if !c.used {
				require.Nil(t, got.Load())
				return
			}
			require.Contains(t, got.Load(), "You can't approve this.")
			require.Contains(t, got.Load(), `"response_type":"ephemeral"`)
			require.Contains(t, got.Load(), `"replace_original":false`)
		})
	}
}
