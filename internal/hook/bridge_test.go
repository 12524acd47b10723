package hook_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

func TestAPromptThatIsStoppedLeavesItsCallsWhileItsInputIsOpen(t *testing.T) {
	waits, withdrawn := make(chan struct{}, 1), make(chan struct{}, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet {
			waits <- struct{}{}
			<-r.Context().Done()
			return
		}
		if strings.HasSuffix(r.URL.Path, "/withdraw") {
			withdrawn <- struct{}{}
		}
		_, _ = io.WriteString(w, `{"id":"run-1","status":"pending","calls":[{"id":"t1","tool":"Bash","outcome":"pending"}]}`)
	}))
	t.Cleanup(api.Close)
	in, agent := io.Pipe()
	answers, out := io.Pipe()
	go func() { _, _ = io.Copy(io.Discard, answers) }()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- hook.Bridge(ctx, hook.Config{URL: api.URL, Token: "t", Now: time.Now}, t.TempDir(), time.Minute, in, out)
	}()
	_, err := io.WriteString(agent, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"approve","arguments":{"tool_name":"Bash","input":{},"tool_use_id":"t1"}}}
`)
	require.NoError(t, err)
	<-waits
	stop()
	<-withdrawn
	require.NoError(t, <-ended)
}
