package inbound

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// keeping is a handler that keeps what reaches it.
type keeping struct {
	heard

	all []Interaction
}

func (k *keeping) Interaction(_ context.Context, i Interaction) (Reply, error) {
	k.all = append(k.all, i)
	return Reply{}, nil
}

// Requests are read into the same memory one after the other.
func TestWhatWasReadOutlivesItsRequest(t *testing.T) {
	at := time.Unix(docTimestamp, 0)
	k := &keeping{}
	s := NewHTTP(Config{
		Workspace: Workspace{Team: "T0ACME"}, SigningSecret: func() string { return docSecret },
		Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler),
	}, k)
	payload := string(pressed(t))
	var want []Interaction
	for n := range 20 {
		text := strings.NewReplacer("U0BOB", fmt.Sprintf("U%04d", n), "batch-07-one", fmt.Sprintf("batch-07-%03d", n)).Replace(payload)
		p, err := read(t, []byte(text))
		require.NoError(t, err)
		want = append(want, p.interaction())
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, signedAt(t, at, "/slack/interactivity", "payload="+url.QueryEscape(text)))
		require.Equal(t, http.StatusOK, answer.Code)
	}
	require.Equal(t, want, k.all)
}
