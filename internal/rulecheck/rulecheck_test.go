package rulecheck_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/rulecheck"
	"github.com/countersign/countersign/internal/webhook"
)

const secretText = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var refund = policy.Question{
	Check: "fraud", Rule: "small@0a1b2c3d", Would: policy.KindAllow, Severity: approvals.SeverityHigh,
	Call: approvals.Proposal{
		Call:  approvals.ToolCall{ID: "call_1", Name: "refund", Args: json.RawMessage(`{"cents": 9007199254740993}`)},
		Agent: "billing", Requester: "U0ALICE001", Channel: "C0WARROOM1", Place: approvals.Place{Cwd: "/srv"},
	},
}

// A service is what answers a check, and what asks it.
type service struct {
	*httptest.Server
	checks *rulecheck.Checks
	log    bytes.Buffer
	counts []string

	mu     sync.Mutex
	got    []*http.Request
	bodies [][]byte
}

func serve(t *testing.T, c rulecheck.Check, answer http.HandlerFunc, o ...func(*webhook.Config)) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.got, s.bodies = append(s.got, r), append(s.bodies, body)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	cfg := webhook.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, PlainHosts: []string{"127.0.0.1"}, Ports: []int{port}, Now: time.Now}
	for _, set := range o {
		set(&cfg)
	}
	sender, err := webhook.New(cfg)
	require.NoError(t, err)
	secret, err := webhook.ParseSecret(secretText)
	require.NoError(t, err)
	c.Endpoint = webhook.Endpoint{URL: s.URL + "/fraud", Secrets: []webhook.Secret{secret}}
	s.checks = rulecheck.New(rulecheck.Config{
		Checks: map[string]rulecheck.Check{"fraud": c}, Sender: sender, Now: time.Now, Log: slog.New(slog.NewJSONHandler(&s.log, nil)),
		Count: func(check, answer string) { s.counts = append(s.counts, check+" "+answer) },
	})
	return s
}

// asked is how often it was asked.
func (s *service) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func TestAQuestionIsSignedAndSaysWhatTheCallIs(t *testing.T) {
	s := serve(t, rulecheck.Check{Arguments: true}, says(`{"answer":"ok"}`))
	a, err := s.checks.Ask(t.Context(), refund)
	require.NoError(t, err)
	require.Equal(t, policy.Answer{Answer: approvals.CheckOK}, a)

	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secretText, "whsec_"))
	require.NoError(t, err)
	mac, sent := hmac.New(sha256.New, key), s.got[0].Header
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", sent.Get("webhook-id"), sent.Get("webhook-timestamp"), s.bodies[0])
	require.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), sent.Get("webhook-signature"))
	require.True(t, strings.HasPrefix(s.got[0].Header.Get("webhook-id"), "check_"))
	var m struct {
		Type      string          `json:"type"`
		Timestamp time.Time       `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}
	require.NoError(t, json.Unmarshal(s.bodies[0], &m))
	require.Equal(t, "policy.check", m.Type)
	require.JSONEq(t, `{
		"check":"fraud", "rule":"small@0a1b2c3d", "would":"allow", "agent":"billing", "requester":"U0ALICE001", "channel":"C0WARROOM1",
		"call":"call_1", "tool":"refund", "severity":"high", "cwd":"/srv", "arguments":"{\"cents\": 9007199254740993}", "arguments_size":27,
		"arguments_sha256":"207a115a5148023916a658dc5179fd13bcf348abc163a5f68154e592af71d001"}`, string(m.Data))
	require.Equal(t, []string{"fraud ok"}, s.counts)

	_, err = s.checks.Ask(t.Context(), refund)
	require.NoError(t, err)
	require.NotEqual(t, s.got[0].Header.Get("webhook-id"), s.got[1].Header.Get("webhook-id"), "no answer is kept for another ruling")
}

func TestArgumentsAreSentOnlyIfTheConfigurationSaysSo(t *testing.T) {
	s := serve(t, rulecheck.Check{}, says(`{"answer":"ok"}`))
	_, err := s.checks.Ask(t.Context(), refund)
	require.NoError(t, err)
	require.NotContains(t, string(s.bodies[0]), "cents")
	require.Contains(t, string(s.bodies[0]), "arguments_sha256")
}

func TestAnAnswerIsOneOfThree(t *testing.T) {
	for text, want := range map[string]policy.Answer{
		`{"answer":"ok"}`: {Answer: "ok"},
		` {"reason":"New <b>.","answer":"ask"} ` + "\n": {Answer: "ask", Reason: "New <b>."},
		`{"answer":"deny","reason":""}`:                 {Answer: "deny"},
	} {
		s := serve(t, rulecheck.Check{}, says(text))
		got, err := s.checks.Ask(t.Context(), refund)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
}

func TestWhateverElseComesBackIsAnError(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"nothing":             says(""),
		"a page":              says("<html>ok</html>"),
		"another answer":      says(`{"answer":"allow"}`),
		"what only we say":    says(`{"answer":"failed"}`),
		"no answer":           says(`{"reason":"fine"}`),
		"no text":             says(`{"answer":true}`),
		"null":                says(`null`),
		"a list":              says(`[{"answer":"ok"}]`),
		"two answers":         says(`{"answer":"deny","answer":"ok"}`),
		"two spellings":       says(`{"answer":"deny","Answer":"ok"}`),
		"another spelling":    says(`{"ANSWER":"ok"}`),
		"more than an answer": says(`{"answer":"ok","until":"tomorrow"}`),
		"two values":          says(`{"answer":"ok"}{"answer":"deny"}`),
		"too long":            says(`{"answer":"ok","reason":"` + strings.Repeat("x", webhook.MaxReply) + `"}`),
		"a redirect":          func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect) },
		"another status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"answer":"ok"}`)
		},
		"an error with an ok": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"answer":"ok"}`)
		},
		"a connection that ends": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"an answer that ends": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"answer":"ok"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, rulecheck.Check{Arguments: true}, answer)
			got, err := s.checks.Ask(t.Context(), refund)
			require.Error(t, err)
			require.Empty(t, got)
			require.Equal(t, 1, s.asked(), "it is asked once")
			require.Equal(t, []string{"fraud failed"}, s.counts)
			require.Contains(t, s.log.String(), `"answer":"failed"`)
			require.NotContains(t, s.log.String(), "cents", "no arguments")
			require.NotContains(t, s.log.String(), "/fraud", "a URL may be a secret")
		})
	}
}

func TestASilentServiceIsWaitedForAsLongAsItsTimeoutSays(t *testing.T) {
	released := make(chan struct{})
	defer close(released)
	s := serve(t, rulecheck.Check{Timeout: 50 * time.Millisecond}, func(http.ResponseWriter, *http.Request) { <-released })
	_, err := s.checks.Ask(t.Context(), refund)
	require.EqualError(t, err, "The receiver did not answer within 50ms.")
}

// An edit has to be stored before Slack stops waiting.
func TestACheckLeavesItsCallerTimeToStoreWhatComesOfIt(t *testing.T) {
	s := serve(t, rulecheck.Check{}, says(`{"answer":"ok"}`))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := s.checks.Ask(ctx, refund)
	require.EqualError(t, err, "there was no time left to ask it")
	require.Zero(t, s.asked())
}

func TestAnInternalAddressIsNotAskedUnlessItIsAllowed(t *testing.T) {
	s := serve(t, rulecheck.Check{}, says(`{"answer":"ok"}`), func(c *webhook.Config) { c.Allow = nil })
	_, err := s.checks.Ask(t.Context(), refund)
	require.ErrorContains(t, err, "the host has an address that is not allowed")
	require.Zero(t, s.asked())
}

// Padding a call does not get it past its check.
func TestArgumentsThatAreTooLargeForAQuestionAreNotLeftOut(t *testing.T) {
	s := serve(t, rulecheck.Check{Arguments: true}, says(`{"answer":"ok"}`))
	q := refund
	q.Call.Call.Args = json.RawMessage(`{"cents":1,"pad":"` + strings.Repeat("<", webhook.MaxQuestion/6) + `"}`)
	_, err := s.checks.Ask(t.Context(), q)
	require.ErrorContains(t, err, "The question has more than 1048576 bytes")
	require.Zero(t, s.asked())
}

func TestNothingAnswersForACheckThatIsNotThere(t *testing.T) {
	s := serve(t, rulecheck.Check{}, says(`{"answer":"ok"}`))
	s.Close()
	_, err := s.checks.Ask(t.Context(), refund)
	require.EqualError(t, err, "The receiver refused the connection.")
	q := refund
	q.Check = "other"
	_, err = s.checks.Ask(t.Context(), q)
	require.EqualError(t, err, "the configuration has no check of this name")
}
