package plainhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/plainhttp"
	"github.com/countersign/countersign/internal/plainhttp/plainhttptest"
)

// A server that switches protocols and then sends nothing holds nobody, and its
// connection is closed.
func TestASwitchOfProtocolsIsAnError(t *testing.T) {
	closed := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		closed <- plainhttptest.Switch(w)
	}))
	defer server.Close()
	client := http.Client{Transport: plainhttp.Transport(nil)}
	resp, err := client.Get(server.URL)
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
	}
	require.ErrorIs(t, err, plainhttp.ErrSwitched)
	require.NoError(t, <-closed)
}

func TestEveryOtherAnswerIsReturned(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints) // not the answer yet
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short")
	}))
	defer server.Close()
	client := http.Client{Transport: plainhttp.Transport(nil)}
	defer client.CloseIdleConnections()
	resp, err := client.Get(server.URL)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusTeapot, resp.StatusCode)
	require.Equal(t, "short", string(body))
}
