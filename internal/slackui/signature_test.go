package slackui

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
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// The worked example of Slack's documentation.
const (
	docSecret    = "8f742231b10e8888abcd99yyyzzz85a5"
	docTimestamp = 1531420618
	docSignature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	docBody      = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)

func TestSignatures(t *testing.T) {
	stamp := strconv.Itoa(docTimestamp)
	at := func(skew time.Duration) time.Time { return time.Unix(docTimestamp, 0).Add(skew) }
	for name, c := range map[string]struct {
		stamp, signature, body string
		now                    time.Time
		want                   error
	}{
		"Slack's own example":       {stamp, docSignature, docBody, at(0), nil},
		"300 s old":                 {stamp, docSignature, docBody, at(300 * time.Second), nil},
		"301 s old":                 {stamp, docSignature, docBody, at(301 * time.Second), errOldSignature},
		"300 s ahead":               {stamp, docSignature, docBody, at(-300 * time.Second), nil},
		"301 s ahead":               {stamp, docSignature, docBody, at(-301 * time.Second), errOldSignature},
		"a day ahead":               {stamp, docSignature, docBody, at(-24 * time.Hour), errOldSignature},
		"uppercase hex":             {stamp, "v0=" + strings.ToUpper(docSignature[3:]), docBody, at(0), errBadSignature},
		"one byte altered":          {stamp, docSignature, docBody[:len(docBody)-1] + "d", at(0), errBadSignature},
		"a newline more":            {stamp, docSignature, docBody + "\n", at(0), errBadSignature},
		"no body":                   {stamp, docSignature, "", at(0), errBadSignature},
		"short":                     {stamp, docSignature[:20], docBody, at(0), errBadSignature},
		"only the version":          {stamp, "v0=", docBody, at(0), errBadSignature},
		"another version":           {stamp, "v1=" + docSignature[3:], docBody, at(0), errBadSignature},
		"no version":                {stamp, docSignature[3:], docBody, at(0), errBadSignature},
		"no signature":              {stamp, "", docBody, at(0), errNoSignature},
		"no timestamp":              {"", docSignature, docBody, at(0), errNoSignature},
		"timestamp not a number":    {"yesterday", docSignature, docBody, at(0), errNoSignature},
		"timestamp with a sign":     {"+" + stamp, docSignature, docBody, at(0), errNoSignature},
		"timestamp too large":       {"99999999999999999999", docSignature, docBody, at(0), errNoSignature},
		"timestamp at the far end":  {"9223372036854775807", docSignature, docBody, at(0), errOldSignature},
		"timestamp before all time": {"-9223372036854775808", docSignature, docBody, at(0), errOldSignature},
		"timestamp of another time": {strconv.Itoa(docTimestamp + 1), docSignature, docBody, at(0), errBadSignature},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set("x-slack-request-timestamp", c.stamp)
			h.Set("X-SLACK-SIGNATURE", c.signature)
			require.ErrorIs(t, verify(docSecret, h, []byte(c.body), c.now), c.want)
		})
	}
}

// door is a server with nothing behind it but a log.
func door(t *testing.T) (*Server, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	c := Config{
		SigningSecret: func() string { return docSecret }, BotToken: func() string { return "xoxb-secret" }, Team: "T0COUNTER",
		Now: func() time.Time { return time.Unix(docTimestamp, 0) },
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	s := newServer(c, newAPI(c.BotToken, "http://127.0.0.1:1/"), &Cards{}, &directory{})
	t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
	return s, &log
}

// knock sends a signed body.
func knock(s *Server, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	mac := hmac.New(sha256.New, []byte(docSecret))
	mac.Write([]byte("v0:" + strconv.Itoa(docTimestamp) + ":" + body))
	r.Header.Set("X-Slack-Request-Timestamp", strconv.Itoa(docTimestamp))
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func form(payload string) string { return url.Values{"payload": {payload}}.Encode() }

func TestTheDoor(t *testing.T) {
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
		"an array":                   {"POST", "/slack/interactivity", form(`[1]`), 400, "", ""},
		"null":                       {"POST", "/slack/interactivity", form(`null`), 400, "", "without a type"},
		"an empty interaction":       {"POST", "/slack/interactivity", form(`{}`), 400, "", "without a type"},
		"unknown interaction":        {"POST", "/slack/interactivity", form(`{"type":"shortcut"}`), 200, "", "unknown type"},
		"unknown action":             {"POST", "/slack/interactivity", form(`{"type":"block_actions","actions":[{"action_id":"x"}]}`), 200, "", "unknown action"},
		"a click without workspace":  {"POST", "/slack/interactivity", form(`{"type":"block_actions","team":null,"user":{"id":"U1"},"actions":[{"action_id":"countersign.approve.0","value":"x"}]}`), 200, "", "no workspace"},
		"no action":                  {"POST", "/slack/interactivity", form(`{"type":"block_actions"}`), 400, "", ""},
		"unknown form":               {"POST", "/slack/interactivity", form(`{"type":"view_submission","view":{"callback_id":"x"}}`), 200, "another version", "unknown form"},
		"closed form":                {"POST", "/slack/interactivity", form(`{"type":"view_closed"}`), 200, "", ""},
		"not a command":              {"POST", "/slack/commands", "a=b", 400, "", ""},
		"wrong method":               {"GET", "/slack/events", "", 405, "", ""},
		"wrong path":                 {"POST", "/slack/other", "", 404, "", ""},
		"too large":                  {"POST", "/slack/events", strings.Repeat("a", 1_048_577), 413, "", "too large"},
		"as large as allowed":        {"POST", "/slack/events", strings.Repeat("a", 1_048_576), 400, "", "not understood"},
	} {
		t.Run(name, func(t *testing.T) {
			s, log := door(t)
			w := knock(s, c.method, c.path, c.body)
			require.Equal(t, c.status, w.Code, log.String())
			require.Contains(t, w.Body.String(), c.answer)
			require.Contains(t, log.String(), c.logged)
			require.NotContains(t, log.String(), "xoxb-secret")
		})
	}
}

func TestACallerWithoutASignatureIsToldNothing(t *testing.T) {
	s, log := door(t)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/slack/interactivity", strings.NewReader(form(`{}`))))
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Equal(t, "unauthorized\n", w.Body.String())
	require.Contains(t, log.String(), errNoSignature.Error())
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
		s, _ := door(t)
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
	s, _ := door(t)
	w := knock(s, http.MethodPost, "/slack/events", `{"type":"url_verification","challenge":"a&ssl_check=1&b"}`)
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "ssl_check=1")
	w = knock(s, http.MethodPost, "/slack/interactivity", "ssl_check=1")
	require.Equal(t, http.StatusBadRequest, w.Code, "an interaction without a payload")
}

func TestButtonsArePointersAndNothingElse(t *testing.T) {
	digest := approvals.DigestOf("batch-07-x", approvals.ToolCall{ID: "c", Name: "n"})
	for _, id := range []approvals.ToolCallID{"c1", "call_AbC-1.2:3", "a|b", "ü", "", approvals.ToolCallID(strings.Repeat("x", 5000)), "#"} {
		p := pointer{Batch: "batch-07-x", Call: id, Digest: digest}
		s, err := p.encode()
		require.NoError(t, err)
		require.LessOrEqual(t, len(s), 2000)
		back, err := parsePointer(s)
		require.NoError(t, err)
		require.Equal(t, p.Batch, back.Batch)
		require.Equal(t, p.Digest, back.Digest)
		b := approvals.Batch{Approvals: []approvals.Approval{{Call: approvals.CallRef{ID: "other"}}, {Call: approvals.CallRef{ID: id}}}}
		a, err := back.in(b)
		require.NoError(t, err)
		require.Equal(t, id, a.Call.ID)
	}
	good := "1|batch-07-x|" + digest.String() + "|c1"
	for _, s := range []string{
		"", "|||", "1|||", good + "|", "2" + good[1:], strings.ToUpper(good), " " + good, good + "\n",
		"1|batch-99-x|" + digest.String() + "|c1", "1|../x|" + digest.String() + "|c1", "1|batch-07-x:{a}|" + digest.String() + "|c1",
		"1|batch-07-x|" + strings.Repeat("0", 64) + "|c1", "1|batch-07-x|abc|c1", "1|batch-07-x|" + digest.String() + "|#zz",
		"1|batch-07-x|" + digest.String() + "|" + strings.Repeat("c", 201), strings.Repeat("1|", 5000),
	} {
		_, err := parsePointer(s)
		require.ErrorIs(t, err, errPointer, s)
	}
}

func FuzzPointer(f *testing.F) {
	f.Add("1|batch-07-x|" + strings.Repeat("ab", 32) + "|c1")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePointer(s)
		if err != nil {
			return
		}
		_, err = p.in(approvals.Batch{})
		require.ErrorIs(t, err, approvals.ErrNotFound)
	})
}
