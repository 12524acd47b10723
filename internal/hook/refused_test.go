package hook_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

// A hook that is set up with the kind of another agent knows none of its events.
// An answer that decides nothing would run every tool.
func TestAQuestionOfAnotherKindOfAgentIsAnError(t *testing.T) {
	claude := `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"T","tool_input":{"a":1}}`
	cursor := `{"conversation_id":"s","hook_event_name":"beforeShellExecution","command":"make"}`
	gemini := `{"session_id":"s","hook_event_name":"BeforeTool","tool_name":"T","tool_input":{"a":1}}`
	for kind, questions := range map[hook.Kind][]string{
		hook.ClaudeCode: {cursor, gemini, strings.Replace(claude, "PreToolUse", "pretooluse", 1), strings.Replace(claude, "PreToolUse", "PreToolUse2", 1)},
		hook.Codex:      {cursor, gemini},
		hook.VSCode:     {cursor, gemini},
		hook.Cursor:     {claude, gemini, `{"conversation_id":"s","hook_event_name":"beforeReadFile","file_path":"/x"}`},
		hook.Gemini:     {claude, cursor},
	} {
		for _, q := range questions {
			a := newAPI(t, "approved", "")
			var out bytes.Buffer
			require.Error(t, hook.Run(t.Context(), a.config(kind), strings.NewReader(q), &out), "%s %s", kind, q)
			require.Empty(t, out.String())
			require.Nil(t, a.asked)
		}
	}
}

func TestAnEventAfterACallDecidesNothing(t *testing.T) {
	for kind, q := range map[hook.Kind]string{
		hook.Cursor: `{"conversation_id":"s","hook_event_name":"afterShellExecution","command":"make","output":"x"}`,
		hook.Gemini: `{"session_id":"s","hook_event_name":"AfterTool","tool_name":"T","tool_input":{},"tool_response":{}}`,
		hook.Codex:  `{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"x"}`,
		hook.VSCode: `{"session_id":"s","hook_event_name":"PermissionRequest","tool_name":"T","tool_input":{}}`,
	} {
		a := newAPI(t, "approved", "")
		var out bytes.Buffer
		require.NoError(t, hook.Run(t.Context(), a.config(kind), strings.NewReader(q), &out), "%s %s", kind, q)
		require.JSONEq(t, `{}`, out.String())
	}
}

// Claude Code shows the model the error of a hook also after a call. A model that reads
// that its call did not run makes it again.
func TestAnErrorAfterACallDoesNotSayThatTheCallDidNotRun(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	after := `{"session_id":"s","hook_event_name":%q,"tool_name":"T","tool_use_id":"t","tool_input":{},"error":"x"}`
	for event, says := range map[string]string{
		"PostToolUse": "the tool ran, ", "PostToolUseFailure": "the tool ran and failed, ", "PermissionDenied": "the tool did not run, ",
		"SessionEnd": "the session ended, ", "PreToolUse": "not run: ",
	} {
		for name, url := range map[string]string{"cannot be reached": gone.URL, "URL of Countersign is missing": ""} {
			c := hook.Config{URL: url, Token: "t", Kind: hook.ClaudeCode, Now: time.Now}
			err := hook.Run(t.Context(), c, strings.NewReader(fmt.Sprintf(after, event)), io.Discard)
			require.ErrorContains(t, err, name)
			require.True(t, strings.HasPrefix(err.Error(), says), err)
		}
	}
	for size, says := range map[int]string{
		8 << 20:  "the tool ran, ", // its result is in the question
		64 << 20: "not answered: the question has more than 67108864 bytes",
	} {
		large := fmt.Sprintf(after, "PostToolUse") + strings.Repeat(" ", size)
		err := hook.Run(t.Context(), hook.Config{URL: gone.URL, Token: "t", Kind: hook.ClaudeCode, Now: time.Now}, strings.NewReader(large), io.Discard)
		require.ErrorContains(t, err, says)
	}
}

// The client runs the tool when its hook takes too long, so the hook ends first,
// whatever it waits for.
func TestTheHookEndsBeforeItsAgentGivesUp(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	ask := `{"session_id":"s","cwd":"/srv","hook_event_name":"PreToolUse","tool_name":"T","tool_input":{}}`
	silent, _ := io.Pipe()
	_, unread := io.Pipe()
	for name, change := range map[string]func(c *hook.Config) (io.Reader, io.Writer){
		"its input does not end": func(*hook.Config) (io.Reader, io.Writer) {
			return io.MultiReader(strings.NewReader(ask), silent), io.Discard
		},
		"the API does not answer": func(c *hook.Config) (io.Reader, io.Writer) {
			a := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
			c.URL = a.URL
			return strings.NewReader(ask), io.Discard
		},
		"a file cannot be read": func(c *hook.Config) (io.Reader, io.Writer) {
			c.Git = func(string) (string, string) { <-stuck; return "", "" }
			return strings.NewReader(ask), io.Discard
		},
		"nobody reads its answer": func(*hook.Config) (io.Reader, io.Writer) {
			return strings.NewReader(ask), unread
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newAPI(t, "approved", "").config(hook.ClaudeCode)
			c.Hold, c.Grace = time.Millisecond, 50*time.Millisecond
			in, out := change(&c)
			require.ErrorContains(t, hook.Run(t.Context(), c, in, out), "took too long")
		})
	}
}

// A denial that is thrown away would leave the agent with a hook that says nothing, and
// the tool could run.
func TestNobodyIsAskedForAnAnswerThatIsThrownAway(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = null.Close() }()
	a := newAPI(t, "denied", "")
	before := `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"T","tool_input":{"a":1}}`
	require.EqualError(t, hook.Run(t.Context(), a.config(hook.ClaudeCode), strings.NewReader(before), null),
		"not run: standard output is closed or leads to /dev/null, so the agent would not read the answer. Nobody denied this call")
	require.Nil(t, a.asked)
	after := `{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"x"}`
	require.NoError(t, hook.Run(t.Context(), a.config(hook.ClaudeCode), strings.NewReader(after), null), "this decides nothing")
}

func TestAKeyThatIsThereTwiceIsAnError(t *testing.T) {
	for _, q := range []string{
		`{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"T","tool_input":{"command":"ls"},"tool_input":{"command":"rm"}}`,
		`{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"T","tool_input":{}} {}`,
		"{\"session_id\":\"s\xff\",\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"T\",\"tool_input\":{}}",
	} {
		a := newAPI(t, "approved", "")
		require.Error(t, hook.Run(t.Context(), a.config(hook.ClaudeCode), strings.NewReader(q), io.Discard))
		require.Nil(t, a.asked)
	}
}

func TestTheDoctorFindsATokenThatIsSentInPlainText(t *testing.T) {
	dir := tree(t, map[string]string{"managed.json": `{"hooks":{"PreToolUse":[{"hooks":[{"type":"http","url":"http://127.0.0.1:1/v1/hooks/claude-code","onFailure":"block"}]}]}}`})
	var out bytes.Buffer
	good, err := hook.Print(&out, hook.Doctor(t.Context(), hook.Config{URL: "https://127.0.0.1:1", Token: "t", Now: time.Now}, hook.Place{Managed: filepath.Join(dir, "managed.json"), Home: dir, Project: dir, Self: script(t, "exit 2")}))
	require.NoError(t, err)
	require.False(t, good)
	require.Contains(t, out.String(), "in plain text")
}
