package hookserver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/hookserver"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/plainhttp/plainhttptest"
)

// revocable makes the token one that can be taken away.
func revocable(revoked *atomic.Bool) func(*hookserver.Config) {
	return func(c *hookserver.Config) {
		c.Guard = bearer.New(bearer.Config{Now: time.Now, Log: c.Log, Agents: func() []bearer.Agent {
			if revoked.Load() {
				return nil
			}
			return []bearer.Agent{{Client: claude, Doors: []intake.Door{intake.DoorHooks, intake.DoorMCP}, Tokens: []bearer.Sum{bearer.SumOf(token)}}}
		}})
	}
}

func TestATokenThatIsTakenAwayWhileACallIsHeldGetsNoPermission(t *testing.T) {
	var revoked atomic.Bool
	w := newWorld(t, revocable(&revoked))
	q, answer := w.later(bash("t1", "make deploy"))
	revoked.Store(true)
	w.decide(q, approvals.Approve, "")
	got := <-answer
	require.Equal(t, "deny", got.Decision)
	require.Contains(t, got.Reason, "does not prove the agent any more")
	require.True(t, w.stands(q.ID).ClaimedAt.IsZero(), "the decision is not used")
}

func TestATokenThatIsTakenAwayWhileAPromptIsHeldGetsNoPermission(t *testing.T) {
	var revoked atomic.Bool
	w := newWorld(t, revocable(&revoked))
	answer := w.prompter("").prompt(t.Context(), prompted, "p")
	q := <-w.watch.asked
	revoked.Store(true)
	w.decide(q, approvals.Approve, "")
	got := <-answer
	require.Contains(t, got, `"behavior":"deny"`)
	require.True(t, w.stands(q.ID).ClaimedAt.IsZero())
}

// What the policy permits is claimed with the question.
func TestATokenThatIsTakenAwayWhileTheQuestionArrivesGetsNoPermission(t *testing.T) {
	for path, asks := range map[string]string{
		hookserver.ClaudePath: body("PreToolUse", "t1", "Read", `{"file_path":"a"}`),
		hookserver.PromptPath: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"approve","arguments":{"tool_name":"Read","input":{"file_path":"a"}}}}`,
	} {
		var revoked atomic.Bool
		w := newWorld(t, revocable(&revoked))
		send := func(first func()) string {
			return plainhttptest.PostLate(w.server.Config.Handler, path, token, asks, first).Body.String()
		}
		require.Contains(t, send(func() {}), "allow", path)
		got := send(func() { revoked.Store(true) })
		require.NotContains(t, got, "allow", path)
		require.Contains(t, got, "does not prove the agent any more", path)
	}
}

func TestAnEventThatIsNotKnownAndNamesAToolIsDenied(t *testing.T) {
	w := newWorld(t)
	for _, event := range []string{"BeforeTool", "pretooluse", "PreToolUse ", "PreToolUseV2", "beforeShellExecution"} {
		got := w.now("", body(event, "t1", "Bash", deploy))
		require.Equal(t, "deny", got.Decision, event)
		require.Contains(t, got.Reason, "event is not known")
	}
	require.Empty(t, w.now("", `{"hook_event_name":"Notification","session_id":"s-1"}`))
	require.Empty(t, w.now("", body("PostToolUseV2", "t1", "Bash", deploy+`,"tool_response":{"stdout":""}`)))
}

// An approval is for the call that its card showed, whether or not the hook that asks
// for it names the id of a call.
func TestAPermissionRequestForAnotherCallFindsNoDecision(t *testing.T) {
	w := newWorld(t)
	require.Contains(t, w.now("?hold=1s&late=keep", bash("t1", "make deploy")).Reason, "Pending")
	q := <-w.watch.asked
	w.decide(q, approvals.Approve, "")
	request := func(more string) string {
		return `{"session_id":"s-1","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":` + deploy + more + `}`
	}
	require.Empty(t, w.now("", request(`,"cwd":"/srv/prod"`)))
	require.Empty(t, w.now("", request("")))
	require.Empty(t, w.now("", request(`,"cwd":"/srv/app","mcp_server":{"name":"x"}`)))
	require.Empty(t, w.now("", request(`,"cwd":"/srv/prod","tool_use_id":"t1"`)), "also with the id of the call")
	require.Empty(t, w.now("", strings.Replace(request(`,"cwd":"/srv/app","tool_use_id":"t1"`), "make deploy", "make destroy", 1)))
	require.Empty(t, w.now("", strings.Replace(request(`,"cwd":"/srv/app","tool_use_id":"t1"`), "Bash", "Shell", 1)))
	w.now("", request(`,"cwd":"/srv/prod","tool_response":"x"`))
	require.True(t, w.stands(q.ID).ClaimedAt.IsZero())
	allowed := w.now("", request(`,"cwd":"/srv/app","tool_use_id":"t2"`)).Request
	require.Equal(t, "allow", allowed.Behavior)
	require.Nil(t, allowed.UpdatedInput, "it is about exactly this call")
}

// What another call of the session came to says nothing about an open request of
// the same command elsewhere.
func TestTheEndOfACallInAnotherDirectoryWithdrawsNothing(t *testing.T) {
	w := newWorld(t)
	q, _ := w.later(bash("t1", "make deploy"))
	w.now("", strings.Replace(body("PostToolUse", "t2", "Bash", deploy), "/srv/app", "/srv/other", 1))
	require.Equal(t, intake.OutcomePending, w.stands(q.ID).Outcome)
}

func TestAPathThatIsAlmostThatOfAHookIsAnsweredByTheHooks(t *testing.T) {
	for path, is := range map[string]bool{
		"/v1/hooks/claude-code": true, "//v1/hooks/claude-code": true, "/v1/hooks//claude-code": true, "/v1/hooks": true, "/v1//hooks/": true,
		"/x/../v1/hooks/claude-code": true, "/v1/hooks/claude-code/": true, "/V1/Hooks/claude-code": true, "": false, "/v1/approvals": false, "/v1/hooksx": false,
	} {
		require.Equal(t, is, hookserver.Answers(path), path)
	}
}

func TestAnEmptyAnswerIsADenial(t *testing.T) {
	for _, empty := range [][]byte{nil, {}} {
		out := httptest.NewRecorder()
		hookserver.Send(out, empty)
		require.Equal(t, http.StatusOK, out.Code)
		require.Contains(t, out.Body.String(), `"permissionDecision":"deny"`)
	}
}

// A sender that proves no agent cannot make the server keep a large body.
func TestLittleIsReadOfWhoProvesNoAgent(t *testing.T) {
	w := newWorld(t)
	sent := &counted{Reader: strings.NewReader(bash("t1", strings.Repeat("x", 3<<20)))}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, hookserver.ClaudePath, sent)
	out := httptest.NewRecorder()
	w.hooks.Hooks().ServeHTTP(out, r)
	require.Contains(t, out.Body.String(), "no bearer token")
	require.Less(t, sent.n, 1<<20)

	got := w.now("?hold=1s", bash("t1", strings.Repeat("x", 100_000)))
	require.Equal(t, "deny", got.Decision)
	require.NotContains(t, got.Reason, "bytes", "who proves an agent may send more")
}

type counted struct {
	*strings.Reader
	n int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}

func TestAGuardThatPanicsIsADenial(t *testing.T) {
	w := newWorld(t, func(c *hookserver.Config) { c.Refuses = func(*http.Request) string { panic("bug") } })
	out := httptest.NewRecorder()
	w.hooks.Hooks().ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, hookserver.ClaudePath, bytes.NewBufferString(bash("t1", "make"))))
	require.Equal(t, http.StatusOK, out.Code)
	require.Contains(t, out.Body.String(), "something is wrong")
}

// failing fails at one step after the request was made.
type failing struct {
	hookserver.Intake

	wait, claim error
}

// Ask leaves the claim to [failing.Claim].
func (f failing) Ask(ctx context.Context, c intake.Client, a intake.Ask) (intake.Request, error) {
	a.Claim = false
	return f.Intake.Ask(ctx, c, a)
}

func (f failing) Wait(ctx context.Context, c intake.Client, id approvals.RunID, version string) (intake.Request, error) {
	if f.wait != nil {
		return intake.Request{}, f.wait
	}
	return f.Intake.Wait(ctx, c, id, version)
}

func (f failing) Claim(ctx context.Context, c intake.Client, id approvals.RunID, call approvals.ToolCallID) (intake.Claim, error) {
	if f.claim != nil {
		return intake.Claim{}, f.claim
	}
	return f.Intake.Claim(ctx, c, id, call)
}

func TestAStoreThatFailsDeniesAPromptAtEveryStep(t *testing.T) {
	away := errors.New("redis: dial 10.0.0.1")
	read := `{"tool_name":"Read","input":{"file_path":"/a"}}`
	for name, c := range map[string]struct {
		args   string
		change func(*hookserver.Config)
		says   string
	}{
		"asking":                 {prompted, func(c *hookserver.Config) { c.Intake = &watched{Intake: c.Intake, fail: func() error { return away }} }, "cannot answer now"},
		"waiting":                {prompted, func(c *hookserver.Config) { c.Intake = failing{Intake: c.Intake, wait: away} }, "cannot answer now"},
		"claiming":               {read, func(c *hookserver.Config) { c.Intake = failing{Intake: c.Intake, claim: away} }, "cannot answer now"},
		"claiming what was used": {read, func(c *hookserver.Config) { c.Intake = failing{Intake: c.Intake, claim: &intake.ClaimedError{}} }, "used already"},
		"a conflict":             {read, func(c *hookserver.Config) { c.Intake = failing{Intake: c.Intake, claim: approvals.ErrConflict} }, "cannot answer now"},
		"what is not durable":    {read, func(c *hookserver.Config) { c.Intake = failing{Intake: c.Intake, claim: approvals.ErrNotDurable} }, "cannot answer now"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.change)
			said := <-w.prompter("?hold=1s").prompt(t.Context(), c.args, "p")
			require.Contains(t, said, `{"behavior":"deny","message":"`)
			require.Contains(t, said, c.says)
			require.NotContains(t, said, "redis")
		})
	}
}

// lazy is an intake that does not hear that its time is over until it is let go.
type lazy struct {
	hookserver.Intake

	until chan struct{}
}

func (l lazy) Wait(_ context.Context, c intake.Client, id approvals.RunID, version string) (intake.Request, error) {
	<-l.until
	return l.Intake.Wait(context.Background(), c, id, version) //nolint:contextcheck // that is its fault
}

// The answer of a hook leaves before the client gives up, whatever the store does:
// the client would run the tool.
func TestAHookAnswersWithinItsHold(t *testing.T) {
	until := make(chan struct{})
	w := newWorld(t, func(c *hookserver.Config) {
		c.Intake, c.Handling = lazy{c.Intake, until}, 100*time.Millisecond
	})
	defer close(until)
	got := w.now("?hold=1s", bash("t1", "make deploy"))
	require.Equal(t, "deny", got.Decision)
	require.Contains(t, got.Reason, "took too long")
}

// A network that breaks in the middle of a question must not leave the agent without an
// answer, because some agents run the tool then: the server waits for the rest no longer
// than for a question.
func TestAQuestionWhoseRestNeverComesIsAnswered(t *testing.T) {
	w := newWorld(t, func(c *hookserver.Config) { c.Handling = 50 * time.Millisecond })
	for path, want := range map[string]string{
		hookserver.ClaudePath:                 `"permissionDecision":"deny"`,
		hookserver.PromptPath:                 "did not arrive as a whole",
		hookserver.ClaudePath + "?hold=never": `"permissionDecision":"deny"`,
	} {
		for _, credential := range []string{token, "wrong"} {
			for _, sent := range []string{"{", strings.Repeat(" ", 80<<10)} { // more than is read for a wrong credential
				if path == hookserver.PromptPath && credential == "wrong" {
					want = "401 Unauthorized"
				}
				got := cutOff(t, w.server.Listener.Addr().String(), path, credential, sent)
				require.Contains(t, got, want, path)
			}
		}
	}
}

// cutOff sends a part of a request, and returns all that comes before the server closes
// the connection.
func cutOff(t *testing.T, address, path, credential, sent string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: 200000\r\n\r\n%s", path, credential, sent)
	require.NoError(t, err)
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(got)
}
