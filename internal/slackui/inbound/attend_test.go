package inbound

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// attending notes whether it is attended while it answers.
type attending struct {
	heard

	now, most int
}

func (a *attending) attend() (over func()) {
	a.now++
	a.most = max(a.most, a.now)
	return func() { a.now-- }
}

func (a *attending) Interaction(ctx context.Context, i Interaction) (Reply, error) {
	if a.now != 1 {
		return Reply{}, errBody
	}
	return a.heard.Interaction(ctx, i)
}

// What Slack has sent is attended while it is answered. Strangers cannot have anything
// make room for them.
func TestOnlyAuthenticRequestsAreAttended(t *testing.T) {
	at, h := time.Unix(docTimestamp, 0), &attending{}
	s := NewHTTP(Config{
		Workspace: Workspace{Team: "T0ACME"}, SigningSecret: func() string { return docSecret },
		Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler), Attend: h.attend,
	}, h)
	answer := func(forged bool) int {
		r := signedAt(t, at, "/slack/interactivity", "payload="+url.QueryEscape(string(pressed(t))))
		if forged {
			r.Header.Set("X-Slack-Signature", "v0=00")
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, http.StatusUnauthorized, answer(true))
	require.Zero(t, h.most)
	require.Equal(t, http.StatusOK, answer(false))
	require.Equal(t, 1, h.most)
	require.Zero(t, h.now)
	_, err := s.envelope(t.Context(), frame{Type: "interactive", Payload: pressed(t)})
	require.NoError(t, err)
	require.Equal(t, 2, h.served)
	require.Zero(t, h.now)
}
