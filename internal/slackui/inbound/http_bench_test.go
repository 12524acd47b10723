package inbound

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// signedAt is a request of Slack with this body.
func signedAt(tb testing.TB, at time.Time, path, body string) *http.Request {
	tb.Helper()
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(docSecret))
	mac.Write([]byte("v0:" + stamp + ":" + body))
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return r
}

// BenchmarkPress receives a press on a card: it reads the request, checks its signature
// and reads its payload.
func BenchmarkPress(b *testing.B) {
	at := time.Unix(docTimestamp, 0)
	h := &heard{}
	s := NewHTTP(Config{
		Workspace: Workspace{Team: "T0ACME"}, SigningSecret: func() string { return docSecret },
		Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler),
	}, h)
	body := "payload=" + url.QueryEscape(string(pressed(b)))
	r, text := signedAt(b, at, "/slack/interactivity", body), strings.NewReader(body)
	r.Body = io.NopCloser(text)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		text.Reset(body)
		s.ServeHTTP(httptest.NewRecorder(), r)
		n++
	}
	require.Equal(b, n, h.served)
}
