package hookserver_test

import (
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/hook"
	"github.com/countersign/countersign/internal/httpapi"
	"github.com/countersign/countersign/internal/intake"
)

// commands is the HTTP API on the store of the world, for the command hook.
func (w *world) commands() *httptest.Server {
	w.Helper()
	agents := []bearer.Agent{{Client: claude, Doors: []intake.Door{intake.DoorAPI}, Tokens: []bearer.Sum{bearer.SumOf(token)}}}
	api, err := httpapi.New(httpapi.Config{
		Intake: whole{w.intake, w.watch}, Now: time.Now, Log: w.logger(),
		Guard: bearer.New(bearer.Config{Agents: func() []bearer.Agent { return agents }, Now: time.Now, Log: w.logger()}),
	})
	require.NoError(w, err)
	server := httptest.NewServer(api)
	w.Cleanup(server.Close)
	w.Cleanup(api.Drain)
	return server
}

// The command hook speaks the HTTP API: here it speaks the real one.
func TestTheCommandHookKeepsToTheAPI(t *testing.T) {
	w := newWorld(t)
	api := w.commands()
	call := func(question string, hold time.Duration) string {
		var out bytes.Buffer
		err := hook.Run(t.Context(), hook.Config{URL: api.URL, Token: token, Kind: hook.ClaudeCode, Hold: hold, Now: time.Now}, strings.NewReader(question), &out)
		if err != nil {
			return err.Error()
		}
		return out.String()
	}
	later := func(question string) (intake.Request, <-chan string) {
		answer := make(chan string, 1)
		go func() { answer <- call(question, time.Minute) }()
		return <-w.watch.asked, answer
	}

	q, answer := later(bash("t1", "make deploy"))
	w.edit(q, `{"command":"make -n deploy"}`)
	w.decide(q, approvals.Approve, "")
	require.Contains(t, <-answer, `"updatedInput":{"command":"make -n deploy"}`)
	require.JSONEq(t, `{}`, call(body("PostToolUse", "t1", "Bash", `{"command":"make -n deploy"}`), 0))
	require.Equal(t, approvals.Ran, w.stands(q.ID).Report.State)

	q, answer = later(bash("t2", "make test"))
	w.decide(q, approvals.Deny, "not today")
	require.Contains(t, <-answer, "not today")

	require.Contains(t, call(bash("t3", "make install"), time.Second), "Pending")
	q = <-w.watch.asked
	require.JSONEq(t, `{}`, call(body("PostToolUse", "t4", "Bash", `{"command":"make install","description":"x"}`), 0), "another id, the same call")
	require.Equal(t, intake.OutcomeWithdrawn, w.stands(q.ID).Outcome)

	require.Contains(t, call(bash("t5", "make clean"), time.Second), "Pending")
	q = <-w.watch.asked
	require.JSONEq(t, `{}`, call(body("SessionEnd", "", "", "{}"), 0))
	require.Equal(t, intake.OutcomeWithdrawn, w.stands(q.ID).Outcome)

	require.Contains(t, call(body("PreToolUse", "t6", "Never", "{}"), 0), "not on Fridays")
	require.Contains(t, call(body("PreToolUse", "t7", "Read", "{}"), 0), `"allow"`)
}

func TestTheBridgeIsThePermissionPromptOverStandardInput(t *testing.T) {
	w := newWorld(t)
	c := hook.Config{URL: w.commands().URL, Token: token, Now: time.Now, Git: func(string) (string, string) { return "", "main" }}
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = hook.Bridge(t.Context(), c, "/srv/app", 10*time.Millisecond, in, out) // how its input ends is no matter
	}()
	p := &prompter{world: w, progress: make(chan mcp.ProgressNotificationParams, 10_000)}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { p.progress <- *r.Params },
	})
	var err error
	p.session, err = client.Connect(t.Context(), &mcp.IOTransport{Reader: fromBridge, Writer: toBridge}, nil)
	require.NoError(t, err)

	answer := p.prompt(t.Context(), prompted, "p-1")
	q := <-w.watch.asked
	first := <-p.progress
	require.Greater(t, (<-p.progress).Progress, first.Progress)
	b, err := w.store.Batch(t.Context(), q.Batch)
	require.NoError(t, err)
	require.Equal(t, approvals.Place{Cwd: "/srv/app", Branch: "main"}, b.Approvals[0].Place)
	w.decide(q, approvals.Approve, "")
	require.JSONEq(t, `{"behavior":"allow","updatedInput":{"command":"make deploy"}}`, <-answer)

	answer = p.prompt(t.Context(), prompted, "p-2")
	w.decide(<-w.watch.asked, approvals.Deny, "not today")
	require.Contains(t, <-answer, "not today")
	require.Contains(t, <-p.prompt(t.Context(), `{"tool_name":"Bash","input":[]}`, nil), `"behavior":"deny"`)

	p.prompt(t.Context(), `{"tool_name":"Bash","input":{"command":"sleep"}}`, nil)
	q = <-w.watch.asked
	require.NoError(t, toBridge.Close(), "the agent ends")
	<-ended
	require.Equal(t, q.ID, <-w.watch.gone)
	require.Equal(t, intake.OutcomeWithdrawn, w.stands(q.ID).Outcome)
}
