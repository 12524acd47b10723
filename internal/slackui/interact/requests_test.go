package interact

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/bulk"
	"github.com/countersign/countersign/internal/slackui/command"
	"github.com/countersign/countersign/internal/slackui/delivery"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/home"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// testConfig is what a server of these tests is made of.
type testConfig struct {
	SigningSecret, BotToken func() string
	Team                    string
	Now                     func() time.Time
	Log                     *slog.Logger
}

const (
	testSecret = "8f742231b10e8888abcd99yyyzzz85a5"
	testTime   = 1531420618
)

// newServer returns a server with nothing behind it but a log.
func newServer(t *testing.T) (*inbound.HTTP, *Handler, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	c := testConfig{
		SigningSecret: func() string { return testSecret }, BotToken: func() string { return "xoxb-secret" }, Team: "T0COUNTER",
		Now: func() time.Time { return time.Unix(testTime, 0) },
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	api := slackapi.New(c.BotToken, "http://127.0.0.1:1/", nil)
	people := &directory.Directory{}
	h := New(Config{Team: c.Team, Now: c.Now, Log: c.Log}, command.Config{Team: c.Team, Now: c.Now, Log: c.Log},
		bulk.Config{Team: c.Team, Now: c.Now, Log: c.Log}, api, &delivery.Cards{Placements: &delivery.Placements{}}, people, &home.Homes{})
	s := inbound.NewHTTP(inbound.Config{Workspace: inbound.Workspace{Team: c.Team}, SigningSecret: c.SigningSecret, Now: c.Now, Log: c.Log}, h)
	t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
	return s, h, &log
}

// send sends a signed body.
func send(s *inbound.HTTP, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	mac := hmac.New(sha256.New, []byte(testSecret))
	mac.Write([]byte("v0:" + strconv.Itoa(testTime) + ":" + body))
	r.Header.Set("X-Slack-Request-Timestamp", strconv.Itoa(testTime))
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func payloadForm(payload string) string { return url.Values{"payload": {payload}}.Encode() }

func TestWhichRequestsAreTaken(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		answer, logged     string
	}{
		"url verification":           {"POST", "/slack/events", `{"type":"url_verification","challenge":"abc"}`, 200, `{"challenge":"abc"}`, ""},
		"unknown delivery":           {"POST", "/slack/events", `{"type":"app_rate_limited"}`, 200, "", "unknown type"},
		"unknown event":              {"POST", "/slack/events", `{"type":"event_callback","event":{"type":"pin_added","user":{"odd":1}}}`, 200, "", "not for us"},
		"uninteresting event":        {"POST", "/slack/events", `{"type":"event_callback","event":{"type":"pin_added"}}`, 200, "", "not for us"},
		"event of another workspace": {"POST", "/slack/events", `{"type":"event_callback","team_id":"T0OTHER","event":{"type":"app_mention","user":"U1"}}`, 200, "", "another workspace"},
		"a bot's mention":            {"POST", "/slack/events", `{"type":"event_callback","team_id":"T0COUNTER","event":{"type":"app_mention","user":"U1","bot_id":"B1"}}`, 200, "", ""},
		"a mention without id":       {"POST", "/slack/events", `{"type":"event_callback","team_id":"T0COUNTER","event":{"type":"app_mention","user":"U1"}}`, 400, "", "without id"},
		"an odd mention":             {"POST", "/slack/events", `{"type":"event_callback","team_id":"T0COUNTER","event":{"type":"app_mention","user":{"odd":1}}}`, 400, "", "not understood"},
		"garbage event":              {"POST", "/slack/events", `{{{`, 400, "bad request", "not understood"},
		"empty event":                {"POST", "/slack/events", ``, 400, "", ""},
		"garbage interaction":        {"POST", "/slack/interactivity", "payload=%7B", 400, "", ""},
		"no interaction":             {"POST", "/slack/interactivity", "a=b", 400, "", ""},
		"broken form":                {"POST", "/slack/interactivity", "%zz", 400, "", ""},
		"an array":                   {"POST", "/slack/interactivity", payloadForm(`[1]`), 400, "", ""},
		"null":                       {"POST", "/slack/interactivity", payloadForm(`null`), 400, "", "without a type"},
		"an empty interaction":       {"POST", "/slack/interactivity", payloadForm(`{}`), 400, "", "without a type"},
		"unknown interaction":        {"POST", "/slack/interactivity", payloadForm(`{"type":"shortcut","team":{"id":"T0COUNTER"}}`), 200, "", "unknown type"},
		"unknown action":             {"POST", "/slack/interactivity", payloadForm(`{"type":"block_actions","actions":[{"action_id":"x"}],"team":{"id":"T0COUNTER"}}`), 200, "", "unknown action"},
		"a click without workspace":  {"POST", "/slack/interactivity", payloadForm(`{"type":"block_actions","team":null,"user":{"id":"U1"},"actions":[{"action_id":"countersign.approve.0","value":"x"}]}`), 200, "", "no workspace"},
		"no action":                  {"POST", "/slack/interactivity", payloadForm(`{"type":"block_actions"}`), 400, "", ""},
		"unknown form":               {"POST", "/slack/interactivity", payloadForm(`{"type":"view_submission","view":{"callback_id":"x"},"team":{"id":"T0COUNTER"}}`), 200, "another version", "unknown form"},
		"closed form":                {"POST", "/slack/interactivity", payloadForm(`{"type":"view_closed"}`), 200, "", ""},
		"not a command":              {"POST", "/slack/commands", "a=b", 400, "", ""},
		"wrong method":               {"GET", "/slack/events", "", 405, "", ""},
		"wrong path":                 {"POST", "/slack/other", "", 404, "", ""},
		"too large":                  {"POST", "/slack/events", strings.Repeat("a", 1_048_577), 413, "", "too large"},
		"as large as allowed":        {"POST", "/slack/events", strings.Repeat("a", 1_048_576), 400, "", "not understood"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, log := newServer(t)
			w := send(s, c.method, c.path, c.body)
			require.Equal(t, c.status, w.Code, log.String())
			require.Contains(t, w.Body.String(), c.answer)
			require.Contains(t, log.String(), c.logged)
			require.NotContains(t, log.String(), "xoxb-secret")
		})
	}
}

func TestACallerWithoutASignatureIsToldNothing(t *testing.T) {
	s, _, log := newServer(t)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/slack/interactivity", strings.NewReader(payloadForm(`{}`))))
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Equal(t, "unauthorized\n", w.Body.String())
	require.Contains(t, log.String(), inbound.ErrNoSignature.Error())
}

// Slack probes the certificate of a command's URL with a form, which need not
// be signed. Nothing else is a probe, wherever ssl_check=1 is written in it.
func TestTheProbeOfACommandURLNeedsNoSignature(t *testing.T) {
	const forms, commands = "application/x-www-form-urlencoded", "/slack/commands"
	for name, c := range map[string]struct {
		path, kind, body string
		want             int
	}{
		"a probe":                  {commands, forms, "ssl_check=1&token=x", http.StatusOK},
		"a probe with a charset":   {commands, forms + "; charset=utf-8", "token=x&ssl_check=1", http.StatusOK},
		"a command":                {commands, forms, "ssl_check=1&command=%2Fx&token=x", http.StatusUnauthorized},
		"an interaction":           {commands, forms, "payload=%7B%7D&ssl_check=1", http.StatusUnauthorized},
		"another content type":     {commands, "application/json", "ssl_check=1&token=x", http.StatusUnauthorized},
		"no content type":          {commands, "", "ssl_check=1&token=x", http.StatusUnauthorized},
		"the URL of events":        {"/slack/events", forms, "ssl_check=1&token=x", http.StatusUnauthorized},
		"the URL of interactivity": {"/slack/interactivity", forms, "ssl_check=1&token=x", http.StatusUnauthorized},
	} {
		s, _, _ := newServer(t)
		r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body))
		if c.kind != "" {
			r.Header.Set("Content-Type", c.kind)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.Equal(t, c.want, w.Code, name)
		require.NotContains(t, w.Body.String(), "xoxb", name)
	}
}

// What people write may contain the parameter of the probe.
func TestAnEventThatLooksLikeAProbeIsHandled(t *testing.T) {
	s, _, _ := newServer(t)
	w := send(s, http.MethodPost, "/slack/events", `{"type":"url_verification","challenge":"a&ssl_check=1&b"}`)
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "ssl_check=1")
	w = send(s, http.MethodPost, "/slack/interactivity", "ssl_check=1")
	require.Equal(t, http.StatusBadRequest, w.Code, "an interaction without a payload")
}

func fill(p respond.Places) {
	for range cap(p) {
		p <- struct{}{}
	}
}

// While no place for follow-ups is free, the answer is as quick as ever, and nothing
// is acknowledged whose person would get no answer: Slack shows its warning, or
// delivers again.
func TestARequestWhoseFollowUpHasNoPlaceIsNotAcknowledged(t *testing.T) {
	click := payloadForm(`{"type":"block_actions","team":{"id":"T0COUNTER"},"user":{"id":"U1"},"container":{"channel_id":"C1"},"actions":[{"action_id":"x"}]}`)
	refused := payloadForm(`{"type":"block_actions","user":{"id":"U1"},"container":{"channel_id":"C1"},"actions":[{"action_id":"countersign.approve.0"}]}`)
	odd := payloadForm(`{"type":"shortcut","team":{"id":"T0COUNTER"},"user":{"id":"U1"},"channel":{"id":"C1"}}`)
	synctest.Test(t, func(t *testing.T) {
		s, h, log := newServer(t)
		fill(h.respond.Words)
		for _, body := range []string{click, refused, odd} {
			w := send(s, "POST", "/slack/interactivity", body)
			require.Equal(t, http.StatusInternalServerError, w.Code, body)
			require.Contains(t, log.String(), respond.ErrNoPlace.Error())
		}
		<-h.respond.Words
		require.Equal(t, http.StatusOK, send(s, "POST", "/slack/interactivity", click).Code)
	})
}

// oneMemo answers every question for a memo.
type oneMemo struct {
	raw []byte
	err error
}

func (m oneMemo) Memo(context.Context, string, string) ([]byte, int64, error) { return m.raw, 1, m.err }

func (m oneMemo) MemoVersion(context.Context, string, string) (int64, error) { return 1, m.err }

func (m oneMemo) CommitMemo(context.Context, string, string, []byte, int64, int64) error {
	return approvals.ErrConflict
}

func (m oneMemo) KeepMemo(context.Context, string, string, []byte, int64) error {
	return approvals.ErrConflict
}

func (m oneMemo) Redraw(context.Context, string, string, string, []byte, int64) error {
	return approvals.ErrConflict
}

func (oneMemo) Prefetch(ctx context.Context, _ approvals.Reads) context.Context { return ctx }

func (oneMemo) Time() time.Time { return time.Now() }

// A click on a known card adopts nothing. A copy is adopted before the answer where too
// much follows after answers already.
func TestOnlyAnUnknownCopyOfACardIsAdopted(t *testing.T) {
	for name, c := range map[string]struct {
		memo    oneMemo
		unknown bool
	}{
		"the card":                {oneMemo{raw: []byte(`{"body":{"anchors":[{"part":0,"channel":"C1","ts":"1.1"}]}}`)}, false},
		"a copy":                  {oneMemo{raw: []byte(`{"body":{"anchors":[{"part":0,"channel":"C1","ts":"2.2"}]}}`)}, true},
		"a memo that is not read": {oneMemo{err: approvals.ErrConflict}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, h, log := newServer(t)
			h.verdicts.placements.Memos = c.memo
			fill(h.respond.Copies)
			var p inbound.Interaction
			p.Channel, p.MessageTS = "C1", "1.1"
			p.Message.Metadata.Type, p.Message.Metadata.Payload = ref.MarkerType, []byte(`{"batch":"batch-07-x","part":0}`)
			b := approvals.Batch{ID: "batch-07-x", Approvals: []approvals.Approval{{Call: approvals.CallRef{ID: "c1"}}}}
			h.verdicts.adopt(t.Context(), p.Who(), p.On(), respond.Subject{Batch: b, Approval: b.Approvals[0]}, false)
			require.Equal(t, c.unknown, strings.Contains(log.String(), "ask whether"), log.String())
			require.NotContains(t, log.String(), respond.ErrNoPlace.Error())
		})
	}
}
