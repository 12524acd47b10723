package hookserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/hookserver"
)

// The real client is too large for every run: `make soak` installs it.
var (
	realClaude = flag.String("claude", "", "the program of Claude Code to run against the door")
	realHold   = flag.Duration("hold", 0, "how long a call of the real Claude Code is held before it is approved; it is not held if left out")
)

// model is a scripted Anthropic API: it calls Bash with one command after the
// other, and then ends.
func model(commands ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Messages []struct{ Content json.RawMessage }
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&q) != nil {
			w.WriteHeader(http.StatusOK)
			return
		}
		results := 0
		for _, m := range q.Messages {
			results += bytes.Count(m.Content, []byte(`"tool_result"`))
		}
		w.Header().Set("Content-Type", "text/event-stream")
		event := func(kind string, doc map[string]any) {
			doc["type"] = kind
			raw, _ := json.Marshal(doc)
			_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, raw)
		}
		event("message_start", map[string]any{"message": map[string]any{
			"id": fmt.Sprintf("msg_%d", results), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []any{},
			"usage": map[string]int{"input_tokens": 1, "output_tokens": 1},
		}})
		stop := "end_turn"
		if results < len(commands) {
			stop = "tool_use"
			input, _ := json.Marshal(map[string]string{"command": commands[results], "description": "x"})
			event("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", results), "name": "Bash", "input": map[string]any{}}})
			event("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "input_json_delta", "partial_json": string(input)}})
		} else {
			event("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
			event("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": "done"}})
		}
		event("content_block_stop", map[string]any{"index": 0})
		event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop}, "usage": map[string]int{"output_tokens": 1}})
		event("message_stop", map[string]any{})
	}
}

// A session is one run of the real client.
type session struct {
	*world
	dir      string
	settings string
	args     []string
	api      *httptest.Server
	seen     string // by the model, as tool results
}

// session prepares a run in a mode: http, command or prompt.
func (w *world) session(mode, query, onFailure string) *session {
	w.Helper()
	s := &session{world: w, dir: w.TempDir()}
	s.api = w.commands()
	hook := map[string]any{"type": "http", "url": w.server.URL + hookserver.ClaudePath + query, "timeout": 600, "headers": map[string]string{"Authorization": "Bearer $COUNTERSIGN_TOKEN"}, "allowedEnvVars": []string{"COUNTERSIGN_TOKEN"}}
	switch mode {
	case "command":
		path := filepath.Join(s.dir, "bot")
		out, err := exec.CommandContext(w.Context(), "go", "build", "-o", path, "../../cmd/bot").CombinedOutput()
		require.NoError(w, err, string(out))
		hold := "9s"
		if query != "" {
			hold = strings.TrimPrefix(query, "?hold=")
		}
		hook = map[string]any{"type": "command", "command": path + " hook ask --hold " + hold + " --url " + s.api.URL, "timeout": 600}
	case "bridge":
		path := filepath.Join(s.dir, "bot")
		out, err := exec.CommandContext(w.Context(), "go", "build", "-o", path, "../../cmd/bot").CombinedOutput()
		require.NoError(w, err, string(out))
		hold := "9s"
		if query != "" {
			hold = strings.TrimPrefix(query, "?hold=")
		}
		s.args = []string{
			"--permission-prompt-tool", "mcp__countersign__approve", "--mcp-config",
			fmt.Sprintf(`{"mcpServers":{"countersign":{"type":"stdio","command":%q,"args":["hook","mcp","--hold",%q,"--url",%q]}}}`, path, hold, s.api.URL),
		}
	case "prompt":
		s.args = []string{
			"--permission-prompt-tool", "mcp__countersign__approve", "--mcp-config",
			fmt.Sprintf(`{"mcpServers":{"countersign":{"type":"http","url":%q,"headers":{"Authorization":"Bearer %s"}}}}`, w.server.URL+"/v1/mcp/permission"+query, token),
		}
	}
	if onFailure != "" {
		hook["onFailure"] = onFailure
	}
	hooks := []any{map[string]any{"matcher": "*", "hooks": []any{hook}}}
	doc := map[string]any{"permissions": map[string]any{"allow": []string{"Bash"}}, "hooks": map[string]any{"PreToolUse": hooks, "PostToolUse": hooks, "PostToolUseFailure": hooks, "SessionEnd": hooks}}
	if mode == "prompt" || mode == "bridge" {
		doc = map[string]any{"permissions": map[string]any{"ask": []string{"Bash"}}}
	}
	raw, err := json.Marshal(doc)
	require.NoError(w, err)
	s.settings = filepath.Join(s.dir, "settings.json")
	require.NoError(w, os.WriteFile(s.settings, raw, 0o600))
	return s
}

// rewrites adds a hook to the settings that makes this of each call of Bash. The file that
// it returns is there when the hook has answered: the last hook to answer decides what runs.
func (s *session) rewrites(command string) string {
	s.Helper()
	raw, err := os.ReadFile(s.settings)
	require.NoError(s, err)
	var doc map[string]any
	require.NoError(s, json.Unmarshal(raw, &doc))
	answer, answered := filepath.Join(s.dir, "rewritten.json"), filepath.Join(s.dir, "rewritten")
	made, err := json.Marshal(map[string]any{"hookSpecificOutput": map[string]any{
		"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": map[string]string{"command": command, "description": "x"},
	}})
	require.NoError(s, err)
	require.NoError(s, os.WriteFile(answer, made, 0o600))
	hooks := doc["hooks"].(map[string]any)
	hooks["PreToolUse"] = append(hooks["PreToolUse"].([]any), map[string]any{"matcher": "Bash", "hooks": []any{map[string]any{"type": "command", "command": "cat " + answer + " && touch " + answered}}})
	raw, err = json.Marshal(doc)
	require.NoError(s, err)
	require.NoError(s, os.WriteFile(s.settings, raw, 0o600))
	return answered
}

// run runs the client, which ends by itself.
func (s *session) run(commands ...string) <-chan string {
	s.Helper()
	var seen bytes.Buffer
	script := model(commands...)
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := new(bytes.Buffer)
		_, _ = body.ReadFrom(r.Body)
		if bytes.Contains(body.Bytes(), []byte(`"tool_result"`)) {
			seen.Reset()
			var q struct {
				Messages []struct{ Content json.RawMessage }
			}
			_ = json.Unmarshal(body.Bytes(), &q)
			for _, m := range q.Messages {
				if bytes.Contains(m.Content, []byte(`"tool_result"`)) {
					seen.Write(m.Content)
				}
			}
		}
		r.Body = http.MaxBytesReader(w, readCloser{bytes.NewReader(body.Bytes())}, 1<<30)
		script(w, r)
	}))
	s.Cleanup(stub.Close)
	work := filepath.Join(s.dir, "work")
	require.NoError(s, os.MkdirAll(work, 0o750))
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute+*realHold)
	cmd := exec.CommandContext(ctx, *realClaude, append([]string{"-p", "go", "--output-format", "json", "--settings", s.settings}, s.args...)...)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "ANTHROPIC_BASE_URL="+stub.URL, "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"COUNTERSIGN_TOKEN="+token, "no_proxy=*", "NO_PROXY=*", "DISABLE_AUTOUPDATER=1")
	done := make(chan string, 1)
	go func() {
		defer cancel()
		out, err := cmd.CombinedOutput()
		s.seen = seen.String()
		done <- fmt.Sprintf("%s %v", out, err)
	}()
	return done
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// ran is what the commands have written.
func (s *session) ran() string {
	raw, _ := os.ReadFile(filepath.Join(s.dir, "work", "out"))
	return string(raw)
}

func TestTheRealClaudeCode(t *testing.T) {
	if *realClaude == "" {
		t.Skip("needs the program of Claude Code (-claude FILE): `make soak` installs it and runs this test")
	}
	version, err := exec.CommandContext(t.Context(), *realClaude, "--version").Output()
	require.NoError(t, err)
	t.Logf("Claude Code %s", version)
	for _, mode := range []string{"http", "command", "prompt", "bridge"} {
		t.Run(mode, func(t *testing.T) {
			t.Run("allow", func(t *testing.T) {
				s := newWorld(t).session(mode, "", "block")
				done := s.run("echo asked >> out")
				q := <-s.watch.asked
				require.Empty(t, s.ran())
				s.decide(q, approvals.Approve, "")
				out := <-done
				require.Equal(t, "asked\n", s.ran(), out)
				if mode == "http" || mode == "command" {
					require.NotNil(t, s.stands(q.ID).Report, "the card knows that it ran")
					require.Equal(t, approvals.Ran, s.stands(q.ID).Report.State)
				}
			})
			t.Run("deny with a reason", func(t *testing.T) {
				s := newWorld(t).session(mode, "", "block")
				done := s.run("echo asked >> out")
				s.decide(<-s.watch.asked, approvals.Deny, "not before the freeze ends")
				out := <-done
				require.Empty(t, s.ran(), out)
				require.Contains(t, s.seen, "not before the freeze ends")
				t.Log(s.seen)
			})
			t.Run("edit", func(t *testing.T) {
				s := newWorld(t).session(mode, "", "block")
				done := s.run("echo asked >> out")
				q := <-s.watch.asked
				s.edit(q, `{"command":"echo edited >> out","description":"x"}`)
				s.decide(q, approvals.Approve, "")
				out := <-done
				require.Equal(t, "edited\n", s.ran(), out)
			})
			t.Run("another hook changes the call meanwhile", func(t *testing.T) {
				if mode == "prompt" || mode == "bridge" {
					t.Skip("it is asked about what the hook made of the call")
				}
				s := newWorld(t).session(mode, "", "block")
				answered := s.rewrites("echo rewritten >> out")
				done := s.run("echo asked >> out")
				q := <-s.watch.asked
				require.Eventually(t, func() bool { _, err := os.Stat(answered); return err == nil }, time.Minute, 100*time.Millisecond)
				s.decide(q, approvals.Approve, "")
				out := <-done
				require.Equal(t, "asked\n", s.ran(), out)
			})
			t.Run("approver down", func(t *testing.T) {
				s := newWorld(t).session(mode, "", "block")
				s.server.Close()
				s.api.Close()
				out := <-s.run("echo asked >> out")
				if mode == "http" && strings.HasPrefix(string(version), "2.1.197") {
					require.Equal(t, "asked\n", s.ran(), "this version ignores onFailure, as `bot hook doctor` says")
					return
				}
				require.Empty(t, s.ran(), out)
				t.Log(s.seen)
			})
			t.Run("approver late", func(t *testing.T) {
				s := newWorld(t).session(mode, "?hold=2s", "block")
				out := <-s.run("echo asked >> out")
				require.Empty(t, s.ran(), out)
				require.Contains(t, s.seen, "Ask again")
			})
			t.Run("asked twice", func(t *testing.T) {
				s := newWorld(t).session(mode, "?hold=4s", "block")
				done := s.run("echo asked >> out", "echo asked >> out", "echo asked >> out")
				first := <-s.watch.asked
				second := <-s.watch.asked
				require.Equal(t, first.ID, second.ID, "the same call waits on")
				s.decide(second, approvals.Approve, "")
				third := <-s.watch.asked
				require.NotEqual(t, first.ID, third.ID, "one decision, one execution")
				out := <-done
				require.Equal(t, "asked\n", s.ran(), out)
			})
		})
	}
}

// The client waits for as long as people take. Nobody watches this for minutes in
// every run: -hold says for how long.
func TestTheRealClaudeCodeWaitsForALateDecision(t *testing.T) {
	if *realClaude == "" || *realHold == 0 {
		t.Skip("needs the program of Claude Code (-claude FILE) and -hold TIME: `make soak` installs it and runs this test")
	}
	for _, mode := range []string{"http", "command", "prompt", "bridge"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newWorld(t).session(mode, "?hold=9m", "block")
			done := s.run("echo asked >> out")
			q := <-s.watch.asked
			begun := time.Now()
			select {
			case out := <-done:
				require.Fail(t, "the client gave up", "after %s: %s", time.Since(begun), out)
			case <-time.After(*realHold):
			}
			require.Empty(t, s.ran())
			s.decide(q, approvals.Approve, "")
			decided := time.Now()
			out := <-done
			require.Equal(t, "asked\n", s.ran(), out)
			t.Logf("held for %s; the client ended %s after the decision", decided.Sub(begun).Round(time.Second), time.Since(decided).Round(time.Millisecond))
		})
	}
}

// Without the setting that blocks, on a version that does not know it, what the
// door answers must be enough.
func TestTheRealClaudeCodeIsDeniedWithoutTheSetting(t *testing.T) {
	if *realClaude == "" {
		t.Skip("needs the program of Claude Code (-claude FILE): `make soak` installs it and runs this test")
	}
	s := newWorld(t, func(c *hookserver.Config) {
		c.Intake = &watched{Intake: c.Intake, fail: func() error { panic("bug") }}
	}).session("http", "", "")
	out := <-s.run("echo asked >> out")
	require.Empty(t, s.ran(), out)
	require.Contains(t, s.seen, "something is wrong with Countersign")
}
