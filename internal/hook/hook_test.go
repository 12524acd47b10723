package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

// vectors are what agents ask and how they are answered.
type vectors []struct {
	Kind    hook.Kind
	Name    string
	Run     bool            // it was seen from the real program; else it is from its documentation
	Ask     json.RawMessage // what the program is given
	Call    json.RawMessage // what the API is asked; null if nothing
	Edited  string          // what people made of the input; empty if nothing
	Allowed json.RawMessage // the answer if it is approved
	Denied  json.RawMessage
}

// api is an API that decides at once.
type api struct {
	*httptest.Server
	asked json.RawMessage
}

func newAPI(t *testing.T, outcome, edited string) *api {
	t.Helper()
	a := &api{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var doc struct {
			Calls []struct {
				ID, Tool string
				Args     json.RawMessage
			}
		}
		if r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "/claim") {
			a.asked, _ = io.ReadAll(r.Body)
		}
		_ = json.Unmarshal(a.asked, &doc)
		args := edited
		if args == "" {
			args = string(doc.Calls[0].Args)
		}
		call := map[string]any{"id": doc.Calls[0].ID, "call": doc.Calls[0].ID, "tool": doc.Calls[0].Tool, "outcome": outcome, "args_text": args, "reason": "not today"}
		if !strings.HasSuffix(r.URL.Path, "/claim") {
			call = map[string]any{"id": "run-1", "status": "settled", "calls": []any{call}}
		}
		_ = json.NewEncoder(w).Encode(call)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *api) config(kind hook.Kind) hook.Config {
	return hook.Config{
		URL: a.URL, Token: "secret-token", Kind: kind, Now: time.Now,
		Git: func(string) (string, string) { return "https://example.com/app.git", "main" },
	}
}

func TestEachKindIsAskedAndAnsweredInItsOwnForm(t *testing.T) {
	raw, err := os.ReadFile("testdata/kinds.json")
	require.NoError(t, err)
	var all vectors
	require.NoError(t, json.Unmarshal(raw, &all))
	for _, v := range all {
		t.Run(string(v.Kind)+" "+v.Name, func(t *testing.T) {
			for outcome, want := range map[string]json.RawMessage{"approved": v.Allowed, "denied": v.Denied} {
				a := newAPI(t, outcome, v.Edited)
				var out bytes.Buffer
				require.NoError(t, hook.Run(t.Context(), a.config(v.Kind), bytes.NewReader(v.Ask), &out))
				require.JSONEq(t, string(want), out.String(), outcome)
				if string(v.Call) == "null" {
					require.Nil(t, a.asked)
					continue
				}
				var doc struct{ Calls []json.RawMessage }
				require.NoError(t, json.Unmarshal(a.asked, &doc))
				require.JSONEq(t, string(v.Call), string(doc.Calls[0]))
			}
		})
	}
}

func TestTheBytesThatPeopleSeeAreThoseOfTheAgent(t *testing.T) {
	a := newAPI(t, "approved", "")
	ask := `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"T","tool_use_id":"t","tool_input":{"n": 9007199254740993, "a":"<&>\u2028", "b":1.0}}`
	var out bytes.Buffer
	require.NoError(t, hook.Run(t.Context(), a.config(hook.ClaudeCode), strings.NewReader(ask), &out))
	require.Contains(t, string(a.asked), `{"n":9007199254740993,"a":"<&>\u2028","b":1.0}`)
	require.Contains(t, out.String(), `"updatedInput":{"n":9007199254740993,"a":"<&>\u2028","b":1.0}`, "and those that run")
}

func TestAnInputThatIsATextRunsOnlyAsAText(t *testing.T) {
	ask := `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":"a\u2028\u00e9"}`
	a := newAPI(t, "approved", "")
	var out bytes.Buffer
	require.NoError(t, hook.Run(t.Context(), a.config(hook.VSCode), strings.NewReader(ask), &out))
	require.Contains(t, string(a.asked), `{"input":"a\u2028\u00e9"}`, "the bytes that people see are those of the agent")
	for _, edited := range []string{`{"input":1}`, `{"input":"b","more":1}`, `{}`} {
		out.Reset()
		err := hook.Run(t.Context(), newAPI(t, "approved", edited).config(hook.VSCode), strings.NewReader(ask), &out)
		require.ErrorContains(t, err, "something other than one text", edited)
		require.Empty(t, out.String())
	}
}

// Another hook of the agent may change the input of a call while people decide. The
// answer names what they approved, except where it would be taken for an answer of the
// person at the terminal, and where the policy decided.
func TestTheAnswerNamesWhatPeopleApproved(t *testing.T) {
	for name, c := range map[string]struct {
		kind          hook.Kind
		outcome, tool string
		want          string
	}{
		"approved":                {hook.ClaudeCode, "approved", "Bash", `"updatedInput":{"a":1}`},
		"permitted by the policy": {hook.ClaudeCode, "allowed", "Bash", ""},
		"a question":              {hook.ClaudeCode, "approved", "AskUserQuestion", ""},
		"a plan":                  {hook.ClaudeCode, "approved", "ExitPlanMode", ""},
		"a tool of an MCP server": {hook.ClaudeCode, "approved", "mcp__db__drop", ""},
		"Codex":                   {hook.Codex, "approved", "Bash", `"updatedInput":{"a":1}`},
		"Codex, of an MCP server": {hook.Codex, "approved", "mcp__db__drop", `"updatedInput":{"a":1}`},
		"Codex, permitted, which it takes only without a decision": {hook.Codex, "allowed", "Bash", "{}"},
		"Gemini CLI":                          {hook.Gemini, "approved", "run_shell_command", `"tool_input":{"a":1}`},
		"Gemini CLI, permitted by the policy": {hook.Gemini, "allowed", "run_shell_command", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, c.outcome, "")
			event, allows, named := "PreToolUse", `"permissionDecision":"allow"`, "updatedInput"
			if c.kind == hook.Gemini {
				event, allows, named = "BeforeTool", `"decision":"allow"`, "tool_input"
			}
			ask := `{"session_id":"s","hook_event_name":"` + event + `","tool_name":"` + c.tool + `","tool_use_id":"t","tool_input":{"a":1}}`
			var out bytes.Buffer
			require.NoError(t, hook.Run(t.Context(), a.config(c.kind), strings.NewReader(ask), &out))
			if c.want == "{}" {
				require.JSONEq(t, c.want, out.String())
				return
			}
			require.Contains(t, out.String(), allows)
			require.Contains(t, out.String(), c.want)
			require.Equal(t, c.want != "", strings.Contains(out.String(), named))
		})
	}
}

func TestAPanicIsAnErrorWithoutAnAnswer(t *testing.T) {
	a := newAPI(t, "approved", "")
	c := a.config(hook.ClaudeCode)
	c.Git = func(string) (string, string) { panic("bug") }
	var out bytes.Buffer
	err := hook.Run(t.Context(), c, strings.NewReader(`{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"T","tool_input":{}}`), &out)
	require.ErrorContains(t, err, "a bug in the hook")
	require.Empty(t, out.String())
}

func TestAnAgentThatNeverClosesItsEndIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, end := io.Pipe()
	defer func() { _ = end.Close() }()
	failed := make(chan error, 1)
	go func() { failed <- hook.Run(ctx, hook.Config{Now: time.Now, Kind: hook.ClaudeCode}, in, io.Discard) }()
	_, err := io.WriteString(end, `{"session_id":"s"`)
	require.NoError(t, err)
	cancel()
	require.ErrorContains(t, <-failed, "stopped")
}

func TestAnAPIThatHangsIsATimeout(t *testing.T) {
	stuck := make(chan struct{})
	a := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	defer a.Close()
	defer close(stuck)
	c := hook.Config{URL: a.URL, Token: "t", Kind: hook.ClaudeCode, Now: time.Now, HTTP: &http.Client{Timeout: 50 * time.Millisecond}}
	var out bytes.Buffer
	err := hook.Run(t.Context(), c, strings.NewReader(`{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"T","tool_input":{}}`), &out)
	require.ErrorContains(t, err, "cannot be reached")
	require.Empty(t, out.String())
}
