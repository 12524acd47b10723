package hook_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

// relayTo runs a relay to this handler and returns a client on its other side.
func relayTo(t *testing.T, h http.Handler, progress func(string)) *mcp.ClientSession {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	in, toRelay := io.Pipe()
	fromRelay, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- hook.Relay(context.WithoutCancel(t.Context()), hook.Config{URL: server.URL, Token: "secret"}, in, out)
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress(r.Params.Message) },
	})
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromRelay, Writer: toRelay}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = toRelay.Close()
		require.NoError(t, <-ended)
		_ = out.Close()
	})
	return session
}

// upstream is a gateway with one tool, and what requests said.
func upstream(tool mcp.ToolHandler, seen func(*http.Request)) http.Handler {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "gateway", Version: "1"}, nil)
		server.AddTool(&mcp.Tool{Name: "write", InputSchema: json.RawMessage(`{"type":"object"}`)}, tool)
		return server
	}, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r)
		if r.URL.Path != hook.GatewayPath || r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

func TestARelayPassesOnCallsProgressAndResults(t *testing.T) {
	said := make(chan string, 10)
	session := relayTo(t, upstream(func(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_ = q.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: q.Params.GetProgressToken(), Progress: 1, Message: "waiting for 2 of 3"})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "did\nit " + string(q.Params.Arguments)}}}, nil
	}, func(*http.Request) {}), func(text string) { said <- text })
	tools, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "write", tools.Tools[0].Name)
	params := &mcp.CallToolParams{Name: "write", Arguments: json.RawMessage(`{"n":1}`)}
	params.SetProgressToken("p")
	got, err := session.CallTool(t.Context(), params)
	require.NoError(t, err)
	require.Equal(t, "did\nit {\"n\":1}", got.Content[0].(*mcp.TextContent).Text)
	require.Equal(t, "waiting for 2 of 3", <-said)
}

func TestARelayLeavesACallThatItsClientCancels(t *testing.T) {
	began, gone := make(chan struct{}), make(chan struct{})
	session := relayTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upstream(func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			close(began)
			<-r.Context().Done()
			close(gone)
			return &mcp.CallToolResult{}, nil
		}, func(*http.Request) {}).ServeHTTP(w, r)
	}), func(string) {})
	ctx, leave := context.WithCancel(t.Context())
	go func() { _, _ = session.CallTool(ctx, &mcp.CallToolParams{Name: "write"}) }()
	<-began
	leave()
	<-gone
}

func TestARelaySaysWhyAGatewayDoesNotAnswer(t *testing.T) {
	status := http.StatusOK
	session := relayTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status != http.StatusOK {
			http.Error(w, "keys", status)
			return
		}
		upstream(nil, func(*http.Request) {}).ServeHTTP(w, r)
	}), func(string) {})
	for _, c := range []struct {
		status int
		want   string
	}{
		{http.StatusUnauthorized, "the gateway does not take the token: keys"},
		{http.StatusServiceUnavailable, "the gateway does not take the message: keys"},
	} {
		status = c.status
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "write"})
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "secret")
	}
	require.ErrorContains(t, hook.Relay(t.Context(), hook.Config{URL: "http://example.com", Token: "secret"}, nil, nil), "must begin with https://")
}

func TestARelayAnswersEveryRequestWhateverTheGatewaySends(t *testing.T) {
	var broken func(http.ResponseWriter)
	session := relayTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken != nil {
			_, _ = io.Copy(io.Discard, r.Body)
			broken(w)
			return
		}
		upstream(nil, func(*http.Request) {}).ServeHTTP(w, r)
	}), func(string) {})
	answers := func(status int, kind, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for _, test := range []struct {
		name, says string
		answer     func(http.ResponseWriter)
	}{
		{"JSON of a proxy", "HTTP status 503", answers(http.StatusServiceUnavailable, "application/json", `{"message":"Service Unavailable"}`)},
		{"JSON that is no message", "not a message", answers(http.StatusOK, "application/json", `{"ok":true}`)},
		{"a batch of nothing", "not a message", answers(http.StatusOK, "application/json", `[]`)},
		{"nothing", "HTTP status 202", answers(http.StatusAccepted, "", "")},
		{"a stream without an answer", "make the same call again", answers(http.StatusOK, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n")},
		{"the answer to another request", "make the same call again", answers(http.StatusOK, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n\n")},
		{"why the message is refused", "does not take the message: it is too large", answers(http.StatusBadRequest, "text/plain; charset=utf-8", "it is too large\n")},
		{"lines of a proxy", "HTTP status 400", answers(http.StatusBadRequest, "text/plain", "a\nb")},
		{"no gateway", "the URL of Countersign has no /v1/mcp/gateway (404): it must be the address of http.listen", answers(http.StatusNotFound, "text/plain", "404 page not found")},
		{"no gateway, in JSON", "the URL of Countersign has no /v1/mcp/gateway (404)", answers(http.StatusNotFound, "application/json", `{"detail":"Not Found"}`)},
		{"a page", "HTTP status 200", answers(http.StatusOK, "text/html", "<html>")},
	} {
		broken = test.answer
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "write"})
		cancel()
		require.ErrorContains(t, err, test.says, test.name)
	}
}

// Other clients of the gateway have its whole URL.
func TestTheURLOfCountersignIsNotThatOfItsGateway(t *testing.T) {
	for _, rest := range []string{hook.GatewayPath, hook.GatewayPath + "/"} {
		err := hook.Relay(t.Context(), hook.Config{URL: "https://bot.example.com/below" + rest, Token: "secret"}, nil, nil)
		require.EqualError(t, err, "the URL of Countersign is https://bot.example.com/below, without /v1/mcp/gateway")
	}
}

// A relay is a process of the agent: it imports nothing of the bot, and needs no
// program besides.
func TestARelayNeedsNothingButTheToken(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.NotContains(t, string(out), "countersign/internal/approvals")
	require.NotContains(t, string(out), "redis")
}
