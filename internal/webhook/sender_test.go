package webhook_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/plainhttp/plainhttptest"
	"github.com/countersign/countersign/internal/webhook"
)

var settled = webhook.Message{
	ID: "msg_1", Type: "approval.settled", Timestamp: time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC),
	Data: json.RawMessage(`{"id": "apr_1", "n": 9007199254740993, "text": "<ünal>"}`),
}

// A receiver records what it gets and answers as it is told.
type receiver struct {
	*httptest.Server
	mu          sync.Mutex
	got         []*http.Request
	bodies      [][]byte
	connections int
}

func receive(t *testing.T, answer http.HandlerFunc, secure bool) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.got, r.bodies = append(r.got, q), append(r.bodies, body)
		r.mu.Unlock()
		answer(w, q)
	}))
	r.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			r.mu.Lock()
			r.connections++
			r.mu.Unlock()
		}
	}
	r.Config.ErrorLog = nil
	if secure {
		r.StartTLS()
	} else {
		r.Start()
	}
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) counts() (requests, connections int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got), r.connections
}

func (r *receiver) port(t *testing.T) int {
	t.Helper()
	u, err := url.Parse(r.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	return port
}

// reaching is a configuration that reaches a plain receiver on loopback.
func reaching(t *testing.T, all ...*receiver) webhook.Config {
	t.Helper()
	cfg := webhook.Config{Allow: prefixes("127.0.0.1/32"), PlainHosts: []string{"127.0.0.1"}, Now: time.Now}
	for _, r := range all {
		cfg.Ports = append(cfg.Ports, r.port(t))
	}
	return cfg
}

func to(t *testing.T, address string, secrets ...string) webhook.Endpoint {
	t.Helper()
	e := webhook.Endpoint{URL: address}
	for _, s := range append(secrets, secretText)[:max(1, len(secrets))] {
		e.Secrets = append(e.Secrets, secret(t, s))
	}
	return e
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func TestAMessageIsSignedAndSentAsTheStandardSays(t *testing.T) {
	r := receive(t, status(204), true)
	cfg := reaching(t, r)
	cfg.RootCAs = r.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	got := sender(t, cfg).Send(t.Context(), to(t, r.URL+"/hooks?a=b"), settled)
	require.Equal(t, webhook.Outcome{Kind: webhook.Delivered, Status: 204}, got)

	require.JSONEq(t, `{"type":"approval.settled","timestamp":"2026-11-22T07:00:00Z","data":{"id":"apr_1","n":9007199254740993,"text":"<ünal>"}}`, string(r.bodies[0]))
	require.Contains(t, string(r.bodies[0]), string(settled.Data), "byte for byte")
	require.Equal(t, "POST", r.got[0].Method)
	require.Equal(t, "/hooks?a=b", r.got[0].RequestURI)
	require.Equal(t, "application/json", r.got[0].Header.Get("Content-Type"))
	require.Equal(t, "msg_1", r.got[0].Header.Get("webhook-id"))
	key, err := standardwebhooks.NewWebhook(secretText)
	require.NoError(t, err)
	require.NoError(t, key.Verify(r.bodies[0], r.got[0].Header))
	require.Error(t, key.Verify(append(bytes.Clone(r.bodies[0]), ' '), r.got[0].Header))
}

// While a secret is replaced, receivers that know either of them take the message.
func TestEverySecretSigns(t *testing.T) {
	r := receive(t, status(200), false)
	next := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 24))
	require.Equal(t, webhook.Delivered, sender(t, reaching(t, r)).Send(t.Context(), to(t, r.URL, next, secretText), settled).Kind)
	require.Len(t, strings.Fields(r.got[0].Header.Get("webhook-signature")), 2)
	for _, text := range []string{next, secretText} {
		key, err := standardwebhooks.NewWebhook(text)
		require.NoError(t, err)
		require.NoError(t, key.Verify(r.bodies[0], r.got[0].Header))
	}
	other, err := standardwebhooks.NewWebhookRaw(bytes.Repeat([]byte{8}, 24))
	require.NoError(t, err)
	require.Error(t, other.Verify(r.bodies[0], r.got[0].Header))
}

func TestARetryHasTheSameIDAndBodyAndANewTime(t *testing.T) {
	r := receive(t, status(500), false)
	cfg, now := reaching(t, r), time.Now()
	cfg.Now = func() time.Time { now = now.Add(time.Hour); return now }
	s := sender(t, cfg)
	for range 2 {
		require.Equal(t, webhook.Retry, s.Send(t.Context(), to(t, r.URL), settled).Kind)
	}
	require.Equal(t, r.bodies[0], r.bodies[1])
	require.Equal(t, r.got[0].Header.Get("webhook-id"), r.got[1].Header.Get("webhook-id"))
	first, second := r.got[0].Header.Get("webhook-timestamp"), r.got[1].Header.Get("webhook-timestamp")
	require.NotEqual(t, first, second)
	require.Equal(t, strconv.FormatInt(now.Unix(), 10), second)
}

func TestOnlyTwoHundredsAreSuccess(t *testing.T) {
	date := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		status int
		after  string
		want   webhook.Outcome
	}{
		{200, "60", webhook.Outcome{Kind: webhook.Delivered}},
		{202, "", webhook.Outcome{Kind: webhook.Delivered}},
		{299, "", webhook.Outcome{Kind: webhook.Delivered}},
		{301, "", webhook.Outcome{Kind: webhook.Retry, Reason: "The receiver answered 301. Redirects are not followed."}},
		{304, "", webhook.Outcome{Kind: webhook.Retry, Reason: "The receiver answered 304. Redirects are not followed."}},
		{400, "", webhook.Outcome{Kind: webhook.Retry, Reason: "The receiver answered 400."}},
		{404, "", webhook.Outcome{Kind: webhook.Retry, Reason: "The receiver answered 404."}},
		{410, "60", webhook.Outcome{Kind: webhook.Gone, Reason: "The receiver answered 410: it wants no more messages."}},
		{429, "", webhook.Outcome{Kind: webhook.Retry, Slow: true, After: time.Minute, Reason: "The receiver answered 429."}},
		{429, "7", webhook.Outcome{Kind: webhook.Retry, Slow: true, After: 7 * time.Second, Reason: "The receiver answered 429."}},
		{502, "", webhook.Outcome{Kind: webhook.Retry, Slow: true, After: time.Minute, Reason: "The receiver answered 502."}},
		{504, "nonsense", webhook.Outcome{Kind: webhook.Retry, Slow: true, After: time.Minute, Reason: "The receiver answered 504."}},
		{503, "", webhook.Outcome{Kind: webhook.Retry, Reason: "The receiver answered 503."}},
		{503, "120", webhook.Outcome{Kind: webhook.Retry, After: 2 * time.Minute, Reason: "The receiver answered 503."}},
		{503, "-5", webhook.Outcome{Kind: webhook.Retry, Reason: "The receiver answered 503."}},
		{503, "Sun, 22 Nov 2026 08:10:00 GMT", webhook.Outcome{Kind: webhook.Retry, After: 10 * time.Minute, Reason: "The receiver answered 503."}},
		{503, "Sun, 22 Nov 2020 08:10:00 GMT", webhook.Outcome{Kind: webhook.Retry, Reason: "The receiver answered 503."}},
		{503, "Sun, 22 Nov 2099 08:10:00 GMT", webhook.Outcome{Kind: webhook.Retry, After: time.Hour, Reason: "The receiver answered 503."}},
		{503, "86400", webhook.Outcome{Kind: webhook.Retry, After: time.Hour, Reason: "The receiver answered 503."}},
		{503, "99999999999999999999999", webhook.Outcome{Kind: webhook.Retry, After: time.Hour, Reason: "The receiver answered 503."}},
	} {
		r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			w.WriteHeader(c.status)
		}, false)
		cfg := reaching(t, r)
		cfg.Now = func() time.Time { return date }
		c.want.Status = c.status
		require.Equal(t, c.want, sender(t, cfg).Send(t.Context(), to(t, r.URL), settled), "%d %s", c.status, c.after)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	inside := receive(t, status(200), false)
	for _, code := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{inside.URL, "http://169.254.169.254/", "::not a url::", ""} {
			r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", location)
				w.WriteHeader(code)
			}, false)
			got := sender(t, reaching(t, r, inside)).Send(t.Context(), to(t, r.URL), settled)
			require.Equal(t, webhook.Outcome{Kind: webhook.Retry, Status: code, Reason: fmt.Sprintf("The receiver answered %d. Redirects are not followed.", code)}, got)
		}
	}
	requests, _ := inside.counts()
	require.Zero(t, requests)
}

func TestEveryMessageHasItsOwnConnection(t *testing.T) {
	r := receive(t, status(200), false)
	s := sender(t, reaching(t, r))
	for range 3 {
		require.Equal(t, webhook.Delivered, s.Send(t.Context(), to(t, r.URL), settled).Kind)
	}
	requests, connections := r.counts()
	require.Equal(t, 3, requests)
	require.Equal(t, 3, connections)
}

// An answer without an end costs what the buffers of the network hold: its beginning
// is read, then the connection is closed.
func TestALongAnswerIsNotRead(t *testing.T) {
	written := make(chan int, 1)
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		total := 0
		defer func() { written <- total }()
		for block := bytes.Repeat([]byte("x"), 1<<16); ; {
			n, err := w.Write(block)
			if total += n; err != nil {
				return
			}
		}
	}, false)
	require.Equal(t, webhook.Delivered, sender(t, reaching(t, r)).Send(t.Context(), to(t, r.URL), settled).Kind)
	require.Less(t, <-written, 64<<20)
}

func TestAnAnswerWithAHugeHeaderIsAFailure(t *testing.T) {
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Huge", strings.Repeat("x", 1<<20))
	}, false)
	require.Equal(t, webhook.Outcome{Kind: webhook.Retry, Reason: "The connection to the receiver failed."}, sender(t, reaching(t, r)).Send(t.Context(), to(t, r.URL), settled))
}

func TestASilentReceiverIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	silent := receive(t, func(http.ResponseWriter, *http.Request) { <-release }, false)
	cfg := reaching(t, silent)
	cfg.Timeout = 50 * time.Millisecond
	require.Equal(t, webhook.Outcome{Kind: webhook.Retry, Reason: "The receiver did not answer within 50ms."}, sender(t, cfg).Send(t.Context(), to(t, silent.URL), settled))

	cfg.Timeout = 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, webhook.Interrupted, sender(t, cfg).Send(ctx, to(t, silent.URL), settled).Kind, "our own end is no failure of theirs")
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.Equal(t, webhook.Retry, sender(t, cfg).Send(ctx, to(t, silent.URL), settled).Kind, "a deadline that is always too short must not repeat for ever")

	for _, timeout := range []time.Duration{-1, 31 * time.Second} {
		_, err := webhook.New(webhook.Config{Now: time.Now, Timeout: timeout})
		require.ErrorContains(t, err, "timeout: must be at most 30s")
	}
}

// A receiver that takes the connection over and then says nothing would hold the attempt
// forever: no time limit ends a read of such a connection.
func TestAReceiverThatSwitchesProtocolsHoldsNobody(t *testing.T) {
	upgraded := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = plainhttptest.Switch(w) // what the client makes of it is tested
	}, false)
	s := sender(t, reaching(t, upgraded))
	require.Equal(t, webhook.Outcome{Kind: webhook.Retry, Reason: "The receiver answered 101, which is for another protocol."}, s.Send(t.Context(), to(t, upgraded.URL), settled))
	_, o := s.Ask(t.Context(), to(t, upgraded.URL), settled, time.Minute)
	require.Equal(t, webhook.Retry, o.Kind)
}

// What went wrong is told in our words: errors of the network hold the URL, whose
// path can be a secret, and what the receiver sent.
func TestAReasonHoldsNothingOfTheURLOrTheReceiver(t *testing.T) {
	closed := receive(t, status(200), false)
	closed.Close()
	secure := receive(t, status(200), true)
	raw, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = raw.Close() })
	go func() {
		for {
			c, err := raw.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 INJECTED\r\n\r\n")
			_ = c.Close()
		}
	}()
	cfg := reaching(t, closed, secure)
	cfg.Ports = append(cfg.Ports, raw.Addr().(*net.TCPAddr).Port)
	s := sender(t, cfg)
	for address, want := range map[string]string{
		closed.URL:                           "The receiver refused the connection.",
		secure.URL:                           "The certificate of the receiver is not trusted.",
		"https://" + raw.Addr().String():     "The receiver and the bot could not agree on TLS.",
		"http://" + raw.Addr().String():      "The connection to the receiver failed.",
		"http://user:hunter2@127.0.0.1/":     "The receiver is not usable: the URL must not contain a name or a password.",
		"https://10.0.0.1/hunter2":           "The receiver is not usable: the host has an address that is not allowed: 10.0.0.0/8 (private).",
		"https://\x00/hunter2":               "The receiver is not usable: expected a URL such as https://example.com/hooks.",
		"https://nothing.invalid:1/hunter2/": "The receiver is not usable: the port is not allowed: list it in webhooks.ports.",
	} {
		got := s.Send(t.Context(), to(t, strings.TrimSuffix(address, "/")+"/hunter2"), settled)
		require.Equal(t, webhook.Outcome{Kind: webhook.Retry, Reason: want}, got, address)
	}
}

// A receiver continues the trace of whoever asked; what is no traceparent is not sent.
func TestAMessageHasTheTraceOfWhoAsked(t *testing.T) {
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for trace, want := range map[string]string{caller: caller, "": "", "00-x": "", caller + "\r\nX-Forged: 1": ""} {
		r := receive(t, status(200), false)
		m := settled
		m.Trace = trace
		require.Equal(t, webhook.Delivered, sender(t, reaching(t, r)).Send(t.Context(), to(t, r.URL), m).Kind)
		require.Equal(t, want, r.got[0].Header.Get("traceparent"))
	}
}
