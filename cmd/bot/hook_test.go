package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const hookQuestion = `{"session_id":"s-1","cwd":"/srv/app","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make deploy"},"tool_use_id":"t1"}`

// A hooked program is the bot as a coding agent starts it.
type hooked struct {
	code           int
	stdout, stderr string
}

func startHook(t *testing.T, url, input string, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path, append([]string{"hook"}, args...)...)
	cmd.Env = []string{"COUNTERSIGN_TOKEN=secret-token"}
	if url != "" {
		cmd.Env = append(cmd.Env, "COUNTERSIGN_URL="+url)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	return cmd, &stdout, &stderr
}

func runHooked(t *testing.T, url, input string, args ...string) hooked {
	t.Helper()
	cmd, stdout, stderr := startHook(t, url, input, args...)
	_ = cmd.Run()
	return hooked{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// answers is an API that answers every request with the same.
func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const hookApproved = `{"id":"run-1","status":"settled","calls":[{"id":"t1","tool":"Bash","outcome":"approved","args_text":"{}"}]}`

// claims is an API that has approved the call, and answers the claim like this.
func claims(status int, claim string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/claim") {
			answers(status, claim)(w, r)
			return
		}
		answers(http.StatusOK, hookApproved)(w, r)
	}
}

const hookClaim = `{"call":"t1","tool":"Bash","args_text":"{\"command\":\"make deploy\"}"}`

func TestEveryFailureOfTheHookExitsWithTwo(t *testing.T) {
	t.Parallel()
	open := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(open, []byte("t"), 0o644))
	for name, c := range map[string]struct {
		api   http.HandlerFunc // nil for none
		url   string
		input string
		args  []string
		says  string
	}{
		"no input":                       {claims(200, hookClaim), "", "", nil, "no JSON object"},
		"no JSON":                        {claims(200, hookClaim), "", "rm -rf", nil, "no JSON object"},
		"null":                           {claims(200, hookClaim), "", "null", nil, "no JSON object"},
		"a question that is cut off":     {claims(200, hookClaim), "", hookQuestion[:60], nil, "no JSON object"},
		"no event":                       {claims(200, hookClaim), "", "{}", nil, "does not name its event"},
		"no session":                     {claims(200, hookClaim), "", strings.Replace(hookQuestion, "s-1", "", 1), nil, "names no session"},
		"input that is a list":           {claims(200, hookClaim), "", strings.Replace(hookQuestion, `{"command":"make deploy"}`, "[]", 1), nil, "no JSON object"},
		"no URL":                         {nil, "", hookQuestion, nil, "COUNTERSIGN_URL"},
		"a URL in plain text":            {nil, "http://countersign.example", hookQuestion, nil, "https://"},
		"no such flag":                   {claims(200, hookClaim), "", hookQuestion, []string{"--hodl", "9m"}, "hodl"},
		"no such kind":                   {claims(200, hookClaim), "", hookQuestion, []string{"--kind", "clippy"}, "no kind of agent"},
		"no such command":                {claims(200, hookClaim), "", hookQuestion, []string{"aks"}, "no command"},
		"a token file that is not there": {claims(200, hookClaim), "", hookQuestion, []string{"--token-file", "/nowhere"}, "read the token"},
		"a file that is called doctor":   {claims(200, hookClaim), "", hookQuestion, []string{"--token-file", "doctor"}, "read the token"},
		"a word after the flags":         {claims(200, hookClaim), "", hookQuestion, []string{"ask", "doctor"}, ""},
		"another kind of agent":          {claims(200, hookClaim), "", hookQuestion, []string{"--kind", "gemini"}, "--kind may be wrong"},
		"a token that others may read":   {claims(200, hookClaim), "", hookQuestion, []string{"--token-file", open}, "chmod 600"},
		"an API that is not there":       {nil, "http://127.0.0.1:1", hookQuestion, nil, "cannot be reached"},
		"a server error":                 {answers(500, `{"title":"Something is wrong"}`), "", hookQuestion, nil, "500: Something is wrong"},
		"a token that is refused":        {answers(401, ""), "", hookQuestion, nil, "401"},
		"too many requests":              {answers(429, ""), "", hookQuestion, nil, "429"},
		"an empty answer":                {answers(200, ""), "", hookQuestion, nil, "not what it should be"},
		"an answer that is HTML":         {answers(200, "<html>sign in</html>"), "", hookQuestion, nil, "not what it should be"},
		"an answer without a call":       {answers(200, `{"id":"run-1","status":"settled","calls":[]}`), "", hookQuestion, nil, "not what it should be"},
		"an outcome that is unknown":     {answers(200, strings.Replace(hookApproved, "approved", "yes", 1)), "", hookQuestion, nil, "not what it should be"},
		"a status that is unknown":       {answers(200, strings.Replace(hookApproved, "settled", "done", 1)), "", hookQuestion, nil, "not what it should be"},
		"pending without a request":      {answers(200, `{"status":"pending"}`), "", hookQuestion, nil, "not what it should be"},
		"a redirect":                     {http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect).ServeHTTP, "", hookQuestion, nil, "redirect"},
		"a claim that is refused":        {claims(409, `{"title":"The decision was claimed before"}`), "", hookQuestion, nil, "claimed before"},
		"a claim of another call":        {claims(200, strings.Replace(hookClaim, "t1", "t2", 1)), "", hookQuestion, nil, "not of this call"},
		"a claim of null":                {claims(200, strings.Replace(hookClaim, `{\"command\":\"make deploy\"}`, "null", 1)), "", hookQuestion, nil, "no JSON object"},
		"a claim of a list":              {claims(200, strings.Replace(hookClaim, `{\"command\":\"make deploy\"}`, "[1]", 1)), "", hookQuestion, nil, "no JSON object"},
		"a claim that another took":      {claims(409, `{"type":"https://countersign.dev/problems/already-claimed"}`), "", hookQuestion, nil, "another hook"},
		"a claim without arguments":      {claims(200, `{"call":"t1","tool":"Bash"}`), "", hookQuestion, nil, "not of this call"},
		"a connection that is cut":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "", hookQuestion, nil, "cannot be reached"},
		"an edit that the agent can't run": {
			claims(200, `{"call":"t1","tool":"mcp:Bash","args_text":"{\"x\":1}"}`), "",
			`{"hook_event_name":"beforeMCPExecution","conversation_id":"c","tool_name":"Bash","tool_use_id":"t1","tool_input":"{}"}`,
			[]string{"--kind", "cursor"},
			"cannot run",
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := c.url
			if c.api != nil {
				api := httptest.NewServer(c.api)
				defer api.Close()
				url = api.URL
			}
			got := runHooked(t, url, c.input, c.args...)
			require.Equal(t, 2, got.code, got.stderr)
			require.Contains(t, got.stderr, c.says)
			require.Equal(t, slices.Contains(c.args, "gemini"), got.stdout != "")
			require.NotContains(t, got.stdout+got.stderr, "secret-token")
		})
	}
}

// Gemini CLI runs the tool after an exit with 2 if nothing is on standard error, which its
// settings may send to a file.
func TestGeminiReadsAFailureOfTheHookOnStandardOutput(t *testing.T) {
	t.Parallel()
	asks := strings.Replace(hookQuestion, "PreToolUse", "BeforeTool", 1)
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"Countersign is away": {[]string{"--kind", "gemini"}, "cannot be reached"},
		"no token":            {[]string{"--kind", "gemini", "--token-file", "/nowhere"}, "read the token"},
		"a wrong flag":        {[]string{"--kind", "gemini", "--hold", "9"}, "hold"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runHooked(t, "http://127.0.0.1:1", asks, c.args...)
			require.Equal(t, 2, got.code)
			var answer struct{ Decision, Reason string }
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &answer))
			require.Equal(t, "deny", answer.Decision)
			require.Contains(t, answer.Reason, c.says)
			require.Contains(t, got.stderr, c.says)
		})
	}
}

func TestTheHookAnswersOnceItHasClaimed(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(claims(http.StatusOK, hookClaim))
	defer api.Close()
	for _, args := range [][]string{nil, {"ask"}, {"--kind", "claude-code"}} {
		got := runHooked(t, api.URL, hookQuestion, args...)
		require.Zero(t, got.code, got.stderr)
		require.JSONEq(t, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Approved through Countersign.","updatedInput":{"command":"make deploy"}}}`, got.stdout)
	}
}

// held starts the hook against an API where nobody decides, and returns once it
// waits there. Withdrawals are sent to the channel.
func held(t *testing.T, change func(*exec.Cmd)) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer, withdrawn chan string) {
	t.Helper()
	waits, withdrawn := make(chan struct{}, 1), make(chan string, 1)
	pending := strings.NewReplacer("settled", "pending", "approved", "pending").Replace(hookApproved)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "/withdraw"):
			withdrawn <- string(body)
		case r.Method == http.MethodGet:
			waits <- struct{}{}
			<-r.Context().Done()
			return
		}
		answers(http.StatusOK, pending)(w, r)
	}))
	t.Cleanup(api.Close)
	cmd, stdout, stderr = startHook(t, api.URL, hookQuestion)
	if change != nil {
		change(cmd)
	}
	require.NoError(t, cmd.Start())
	<-waits
	return cmd, stdout, stderr, withdrawn
}

func TestASignalIsNoPermission(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(s.String(), func(t *testing.T) {
			cmd, stdout, stderr, withdrawn := held(t, nil)
			require.NoError(t, cmd.Process.Signal(s))
			_ = cmd.Wait()
			require.Equal(t, 2, cmd.ProcessState.ExitCode(), cmd.ProcessState)
			require.Contains(t, stderr.String(), "the hook was stopped")
			require.Empty(t, stdout.String())
			require.JSONEq(t, `{"reason":"the agent stopped waiting"}`, <-withdrawn)
		})
	}
}

// An agent that takes down its process group, and a shell between, each send a signal.
func TestSignalsUntilTheHookHasEndedAreNoPermission(t *testing.T) {
	t.Parallel()
	for range 3 {
		cmd, _, _, withdrawn := held(t, nil)
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		<-withdrawn
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for cmd.Process.Signal(syscall.SIGTERM) == nil {
			}
		}()
		_ = cmd.Wait()
		<-sent
		require.Equal(t, 2, cmd.ProcessState.ExitCode(), cmd.ProcessState)
	}
}

func TestAnAnswerThatNobodyReadsIsNoPermission(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(claims(http.StatusOK, hookClaim))
	defer api.Close()
	cmd, _, stderr := startHook(t, api.URL, hookQuestion)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout = w
	require.NoError(t, r.Close())
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	_ = cmd.Wait()
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), cmd.ProcessState)
	require.Contains(t, stderr.String(), "write the answer")
}

func TestAHookWhoseHoldIsOverDeniesInWords(t *testing.T) {
	t.Parallel()
	pending := strings.NewReplacer("settled", "pending", "approved", "pending").Replace(hookApproved)
	api := httptest.NewServer(answers(http.StatusOK, pending))
	defer api.Close()
	got := runHooked(t, api.URL, hookQuestion, "--hold", "1s")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, `"deny"`)
	require.Contains(t, got.stdout, "Ask again with exactly the same call to keep waiting. Request run-1.")
}

func TestThePolicyOfTheClaudeCodeExampleHolds(t *testing.T) {
	t.Parallel()
	out, stderr, code := said(t, "policy", "test", "../../examples/claude-code/policy.yaml")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "7 of 7 examples hold")
}
