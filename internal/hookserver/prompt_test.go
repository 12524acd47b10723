package hookserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/hookserver"
	"github.com/countersign/countersign/internal/intake"
)

// carrying sends the token with each request.
type carrying string

func (c carrying) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(c))
	return http.DefaultTransport.RoundTrip(r)
}

// A prompter is a client of MCP that asks with the permission prompt.
type prompter struct {
	*world
	session  *mcp.ClientSession
	progress chan mcp.ProgressNotificationParams
}

func (w *world) prompter(query string) *prompter {
	w.Helper()
	p := &prompter{world: w, progress: make(chan mcp.ProgressNotificationParams, 1000)}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { p.progress <- *r.Params },
	})
	var err error
	p.session, err = client.Connect(w.Context(), &mcp.StreamableClientTransport{
		Endpoint: w.server.URL + hookserver.PromptPath + query, HTTPClient: &http.Client{Transport: carrying(token)}, MaxRetries: -1,
	}, nil)
	require.NoError(w, err)
	w.Cleanup(func() { _ = p.session.Close() })
	return p
}

// prompt asks, and returns the only text block of the answer.
func (p *prompter) prompt(ctx context.Context, args string, token any) <-chan string {
	answers := make(chan string, 1)
	params := &mcp.CallToolParams{Name: hookserver.PromptTool, Arguments: json.RawMessage(args)}
	if token != nil {
		params.SetProgressToken(token)
	}
	go func() {
		got, err := p.session.CallTool(ctx, params)
		switch {
		case err != nil:
			answers <- err.Error()
		case len(got.Content) != 1 || got.IsError:
			answers <- "not one block"
		default:
			text, _ := got.Content[0].(*mcp.TextContent)
			answers <- text.Text
		}
	}()
	return answers
}

const prompted = `{"tool_name":"Bash","input":{"command":"make deploy"},"tool_use_id":"t1"}`

// What is told of the request has the trace in which the prompt was asked.
func TestAPermissionPromptGivesTheTraceOfItsMeta(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for sent, want := range map[string]string{trace: trace, "00-XYZ": ""} {
		w := newWorld(t)
		p := w.prompter("")
		ctx, gone := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = p.session.CallTool(ctx, &mcp.CallToolParams{Meta: mcp.Meta{"traceparent": sent}, Name: hookserver.PromptTool, Arguments: json.RawMessage(prompted)})
		}()
		require.Equal(t, want, (<-w.watch.asked).Trace)
		gone()
		<-done
	}
}

func TestAPermissionPromptWaitsForPeople(t *testing.T) {
	w := newWorld(t, func(c *hookserver.Config) { c.Progress = 20 * time.Millisecond })
	p := w.prompter("")
	answer := p.prompt(t.Context(), prompted, "p-1")
	q := <-w.watch.asked
	last := 0.0
	for range 5 {
		said := <-p.progress
		require.Greater(t, said.Progress, last, "values rise")
		last = said.Progress
		require.Contains(t, []string{"asking", "waiting for an approval in Slack, request " + string(q.ID)}, said.Message)
	}
	w.decide(q, approvals.Approve, "")
	require.JSONEq(t, `{"behavior":"allow","updatedInput":{"command":"make deploy"}}`, <-answer)
	require.False(t, w.stands(q.ID).ClaimedAt.IsZero())

	answer = p.prompt(t.Context(), prompted, "p-2")
	q = <-w.watch.asked
	w.edit(q, `{"command":"make -n deploy"}`)
	w.decide(q, approvals.Approve, "")
	require.JSONEq(t, `{"behavior":"allow","updatedInput":{"command":"make -n deploy"}}`, <-answer)

	answer = p.prompt(t.Context(), prompted, "p-3")
	w.decide(<-w.watch.asked, approvals.Deny, "not today")
	said := <-answer
	require.Contains(t, said, `"behavior":"deny"`)
	require.Contains(t, said, "not today")
}

func TestAPermissionPromptThatFailsDenies(t *testing.T) {
	for name, c := range map[string]struct{ args, says string }{
		"no tool":                     {`{"input":{}}`, "no tool or no input"},
		"no input":                    {`{"tool_name":"Bash"}`, "no tool or no input"},
		"input that is a list":        {`{"tool_name":"Bash","input":[]}`, "cannot be asked about"},
		"a tool that is a number":     {`{"tool_name":1,"input":{}}`, "tool_name"},
		"a policy that refuses":       {`{"tool_name":"Never","input":{}}`, "not on Fridays"},
		"nobody decides in the hold":  {prompted, "Ask again with exactly the same call"},
		"something that breaks here":  {`{"tool_name":"Panic","input":{}}`, "something is wrong"},
		"a key twice in the question": {`{"tool_name":"Bash","tool_name":"Read","input":{}}`, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(cfg *hookserver.Config) {
				if name == "something that breaks here" {
					cfg.Intake = &watched{Intake: cfg.Intake, fail: func() error { panic("bug") }}
				}
			})
			said := <-w.prompter("?hold=1s").prompt(t.Context(), c.args, "p")
			require.Contains(t, said, `{"behavior":"deny","message":"`)
			require.Contains(t, said, c.says)
		})
	}
}

func TestAPermissionPromptWhoseCallerIsGoneIsWithdrawn(t *testing.T) {
	w := newWorld(t)
	ctx, leave := context.WithCancel(t.Context())
	p := w.prompter("")
	p.prompt(ctx, prompted, "p")
	q := <-w.watch.asked
	leave()
	_ = p.session.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections() //nolint:forcetypeassert // it is one
	require.Equal(t, q.ID, <-w.watch.gone)
	require.Equal(t, intake.OutcomeWithdrawn, w.stands(q.ID).Outcome)
}

// A client that gives up says so in another request, and leaves the connection open.
func TestAPermissionPromptThatItsClientCancelsIsWithdrawn(t *testing.T) {
	w := newWorld(t)
	post := func(session, body string) (string, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+hookserver.PromptPath, strings.NewReader(body))
		require.NoError(t, err)
		for key, value := range map[string]string{
			"Authorization": "Bearer " + token, "Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25",
		} {
			r.Header.Set(key, value)
		}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		said, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.Header.Get("Mcp-Session-Id"), string(said)
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	one, _ := post("", hello)
	other, _ := post("", hello)
	answer := make(chan string, 1)
	go func() {
		_, said := post(one, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"approve","arguments":`+prompted+`}}`)
		answer <- said
	}()
	q := <-w.watch.asked
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}` //nolint:misspell // the word of MCP
	post(other, cancel)
	require.Equal(t, intake.OutcomePending, w.stands(q.ID).Outcome, "another client has a message with this id as well")
	post(one, cancel)
	require.Contains(t, <-answer, `\"behavior\":\"deny\"`)
	require.Equal(t, q.ID, <-w.watch.gone)
	require.Equal(t, intake.OutcomeWithdrawn, w.stands(q.ID).Outcome)
}

func TestAPermissionPromptNeedsItsDoor(t *testing.T) {
	w := newWorld(t)
	for _, secret := range []string{"", "wrong", "api-token"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+hookserver.PromptPath, http.NoBody)
		require.NoError(t, err)
		if secret != "" {
			r.Header.Set("Authorization", "Bearer "+secret)
		}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	}
}

// An answer whose id is rounded may be the answer to another prompt, and a call of a batch
// could not be canceled. What stands behind a message hides neither.
func TestAPermissionPromptIsOneMessageWithAnExactID(t *testing.T) {
	w := newWorld(t)
	const list, call = `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}`, `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"approve"}}]`
	for body, want := range map[string]int{
		list: http.StatusBadRequest, list + " x": http.StatusBadRequest, strings.Replace(list, "993", "991", 1): http.StatusOK,
		call: http.StatusBadRequest, call + " x": http.StatusBadRequest,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+hookserver.PromptPath, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("MCP-Protocol-Version", "2025-03-26") // the last one with batches
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, want, answer.StatusCode, body)
	}
}
