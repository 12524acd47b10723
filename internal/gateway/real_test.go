package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/gateway"
)

// The real clients are too large for every run: `make soak` takes their programs.
var (
	realClaude   = flag.String("claude", "", "the program of Claude Code to run against the gateway")
	realOpencode = flag.String("opencode", "", "the program of opencode to run against the gateway")
)

// A script is a model with one route, POST /v1/messages: it calls a tool with one
// input after the other, and then ends.
type script struct {
	tool   string
	inputs []string

	mu   sync.Mutex
	seen string // the last results of the tool
}

func (s *script) results() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var q struct {
		Messages []struct{ Content json.RawMessage }
		Tools    []json.RawMessage
	}
	if r.Method != http.MethodPost || json.Unmarshal(raw, &q) != nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	results, seen := 0, ""
	for _, m := range q.Messages {
		if n := bytes.Count(m.Content, []byte(`"tool_result"`)); n > 0 {
			results, seen = results+n, string(m.Content)
		}
	}
	if seen != "" {
		s.mu.Lock()
		s.seen = seen
		s.mu.Unlock()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind string, doc map[string]any) {
		doc["type"] = kind
		raw, _ := json.Marshal(doc)
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, raw)
	}
	event("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_%d", results), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []any{},
		"stop_reason": nil, "usage": map[string]int{"input_tokens": 1, "output_tokens": 1},
	}})
	stop := "end_turn"
	if len(q.Tools) > 0 && results < len(s.inputs) {
		stop = "tool_use"
		event("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", results), "name": s.tool, "input": map[string]any{}}})
		event("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "input_json_delta", "partial_json": s.inputs[results]}})
	} else {
		event("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
		event("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": "done"}})
	}
	event("content_block_stop", map[string]any{"index": 0})
	event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop}, "usage": map[string]int{"output_tokens": 1}})
	event("message_stop", map[string]any{})
}

// An agent is a real client that works until its model ends.
type agent func(t *testing.T, gateway, model string) *exec.Cmd

func claudeCode(t *testing.T, url, model string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	servers := fmt.Sprintf(`{"mcpServers":{"desk":{"type":"http","url":%q,"headers":{"Authorization":"Bearer %s"}}}}`, url, token)
	cmd := exec.CommandContext(t.Context(), *realClaude, "-p", "go", "--output-format", "json", "--mcp-config", servers, "--strict-mcp-config", "--allowedTools", "mcp__desk__srv_write")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "HOME="+dir, "ANTHROPIC_BASE_URL="+model, "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"no_proxy=*", "NO_PROXY=*", "DISABLE_AUTOUPDATER=1")
	return cmd
}

func opencode(t *testing.T, url, model string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf(`{"$schema":"https://opencode.ai/config.json","autoupdate":false,"share":"disabled","model":"anthropic/claude-sonnet-4-5",
		"provider":{"anthropic":{"options":{"baseURL":"%s/v1","apiKey":"none"}}},
		"mcp":{"desk":{"type":"remote","url":%q,"oauth":false,"headers":{"Authorization":"Bearer %s"}}}}`, model, url, token)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "opencode.json"), []byte(config), 0o600))
	cmd := exec.CommandContext(t.Context(), *realOpencode, "run", "go")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CACHE_HOME="+dir, "XDG_STATE_HOME="+dir,
		"no_proxy=*", "NO_PROXY=*", "OPENCODE_DISABLE_AUTOUPDATE=1")
	return cmd
}

// run runs the client against a gateway; what its model read is in the script
// afterwards.
func (p *process) run(a agent, tool string, inputs ...string) (*script, <-chan string) {
	p.Helper()
	s := &script{tool: tool, inputs: inputs}
	model := httptest.NewServer(s)
	p.Cleanup(model.Close)
	done := make(chan string, 1)
	cmd := a(p.T, p.server.URL, model.URL)
	cmd.WaitDelay = time.Second
	go func() {
		out, err := cmd.CombinedOutput()
		done <- fmt.Sprintf("%s %v", out, err)
	}()
	return s, done
}

// The client is an agent that never heard of Countersign.
func TestRealAgentsAreGated(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		agent   agent
		tool    string
	}{
		"Claude Code": {*realClaude, claudeCode, "mcp__desk__srv_write"},
		"opencode":    {*realOpencode, opencode, "desk_srv_write"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.program == "" {
				t.Skipf("needs the program of %s (-claude FILE, -opencode FILE): `make soak` installs it and runs this test", name)
			}
			version, err := exec.CommandContext(t.Context(), c.program, "--version").Output()
			require.NoError(t, err)
			t.Logf("%s", version)
			const one = `{"n":1}`
			t.Run("allow", func(t *testing.T) {
				w := newWorld(t)
				p := w.start()
				s, done := p.run(c.agent, c.tool, one)
				p.decide(<-p.watch.asked, "bob", approvals.Approve, "")
				out := <-done
				require.Equal(t, []string{one}, w.tool("srv.write").executions(), out)
				require.Contains(t, s.results(), "did ")
			})
			t.Run("deny with a reason", func(t *testing.T) {
				w := newWorld(t)
				p := w.start()
				s, done := p.run(c.agent, c.tool, one)
				p.decide(<-p.watch.asked, "bob", approvals.Deny, "use the staging table")
				out := <-done
				require.Empty(t, w.tool("srv.write").executions(), out)
				require.Contains(t, s.results(), "use the staging table")
			})
			t.Run("edit", func(t *testing.T) {
				w := newWorld(t)
				p := w.start()
				s, done := p.run(c.agent, c.tool, one)
				q := <-p.watch.asked
				require.NoError(t, p.edit(q, `{"n":2}`))
				p.decide(q, "bob", approvals.Approve, "")
				out := <-done
				require.Equal(t, []string{`{"n":2}`}, w.tool("srv.write").executions(), out)
				require.Contains(t, s.results(), "were changed by a person")
			})
			t.Run("approver late", func(t *testing.T) {
				w := newWorld(t)
				p := w.start(func(g *gateway.Config) { g.Progress = 10 * time.Second })
				s, done := p.run(c.agent, c.tool, one)
				q := <-p.watch.asked
				late := 75 * time.Second // longer than any client waits in silence
				timer := time.NewTimer(late)
				<-timer.C
				p.decide(q, "bob", approvals.Approve, "")
				out := <-done
				require.Equal(t, []string{one}, w.tool("srv.write").executions(), out)
				require.Contains(t, s.results(), "did ")
			})
			t.Run("restarted while held", func(t *testing.T) {
				w := newWorld(t)
				p := w.start()
				s, done := p.run(c.agent, c.tool, one)
				q := <-p.watch.asked
				p.gateway.Drain()
				out := <-done
				require.Contains(t, s.results(), "Call again with exactly the same arguments", out)
				p.stop()
				next := w.start()
				next.decide(q, "bob", approvals.Approve, "")
				require.Empty(t, w.tool("srv.write").executions())
				s, done = next.run(c.agent, c.tool, one)
				out = <-done
				require.Equal(t, []string{one}, w.tool("srv.write").executions(), out)
				require.Contains(t, s.results(), "did ")
			})
			t.Run("asked twice", func(t *testing.T) {
				w := newWorld(t)
				p := w.start()
				first, doneFirst := p.run(c.agent, c.tool, one)
				q := <-p.watch.asked
				second, doneSecond := p.run(c.agent, c.tool, one)
				require.Equal(t, q.ID, (<-p.watch.asked).ID)
				p.decide(q, "bob", approvals.Approve, "")
				out := <-doneFirst + <-doneSecond
				require.Equal(t, []string{one}, w.tool("srv.write").executions(), out)
				require.Contains(t, first.results(), "did ")
				require.Contains(t, second.results(), "did ")
			})
			t.Run("client gone", func(t *testing.T) {
				w := newWorld(t)
				p := w.start()
				ctx, kill := context.WithCancel(t.Context())
				_, done := p.run(func(t *testing.T, url, model string) *exec.Cmd {
					t.Helper()
					cmd := c.agent(t, url, model)
					context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
					return cmd
				}, c.tool, one)
				q := <-p.watch.asked
				kill()
				<-done
				require.Equal(t, q.ID, <-p.watch.gone)
				require.Equal(t, approvals.Withdrawn, p.batch(q).Status)
				require.Empty(t, w.tool("srv.write").executions())
			})
		})
	}
}
