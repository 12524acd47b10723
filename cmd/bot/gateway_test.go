package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state/statetest"
)

// serverFiles is the MCP server of npm that works on a folder.
func serverFiles(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs("../../internal/tools/mcptool/npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
	require.NoError(t, err)
	require.FileExists(t, program, "run .ci/deps, which installs the packages")
	return program
}

// gateway adds a gateway to the configuration of the world, in front of a server
// that works on the folder, and returns its address.
func (w *world) gateway(folder string) string {
	w.t.Helper()
	addr := statetest.FreeAddr(w.t)
	node, err := exec.LookPath("node")
	require.NoError(w.t, err)
	old, err := os.ReadFile(w.config)
	require.NoError(w.t, err)
	w.config = write(w.t, string(old)+fmt.Sprintf(`
mcp_lock: %q
http: {listen: %q}
gateways:
  - name: desk
    channel: %s
    mcp: {files: {command: %q, args: [%q, %q], include: [write_file, list_allowed_directories]}}
    clients: [{owner: %s, tokens: ["sha256:%x"]}]
    tools: {files.list_allowed_directories: {approval: false}}
`, filepath.Join(w.t.TempDir(), "mcp.lock"), addr, ops, node, serverFiles(w.t), folder, alice, sha256.Sum256([]byte("desk-token"))))
	var out, errs bytes.Buffer
	require.NoError(w.t, run(w.t.Context(), []string{"mcp", "pins", "--config", w.config, "accept"}, w.env, &out, &errs), errs.String())
	return "http://" + addr + "/v1/mcp/gateway"
}

type withToken struct{}

func (withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer desk-token")
	return http.DefaultTransport.RoundTrip(r)
}

func connect(ctx context.Context, t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withToken{}}, DisableStandaloneSSE: true}, nil)
	require.NoError(t, err)
	return session
}

// A client that knows nothing of Countersign calls a tool of a real server; a person
// clicks in Slack, and the call runs, also after the bot was killed meanwhile.
func TestAClickLetsACallOfAGatewayRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := t.TempDir()
	url := w.gateway(folder)
	p := w.start()
	session := connect(t.Context(), t, url)
	tools, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, tools.Tools, 2)
	got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "files_list_allowed_directories"})
	require.NoError(t, err)
	require.False(t, got.IsError, "the configuration lets it run: %v", texts(got))

	path := filepath.Join(folder, "note.txt")
	args, err := json.Marshal(map[string]string{"path": path, "content": "hello"})
	require.NoError(t, err)
	params := &mcp.CallToolParams{Name: "files_write_file", Arguments: json.RawMessage(args)}
	params.SetProgressToken("p")
	held := make(chan error, 1)
	go func() {
		_, err := session.CallTool(t.Context(), params)
		held <- err
	}()
	card := w.sim.await(bob, "", "the card", says("desk", "note.txt"))
	p.kill()
	require.Error(t, <-held)
	require.NoFileExists(t, path)

	w.start()
	require.Empty(t, w.sim.click(bob, card, "note.txt", "Approve").VisibleError)
	w.sim.await(bob, "", "the approval", says("desk", "Approved"))
	require.NoFileExists(t, path, "nobody waits for it")
	got, err = connect(t.Context(), t, url).CallTool(t.Context(), params)
	require.NoError(t, err)
	require.False(t, got.IsError)
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "hello", string(written))
	w.sim.await(bob, "", "what became of it", says("desk", "note.txt", "Ran"))

	// Its story is the same, whether an operator asks for the request or for the run that
	// executed it.
	runs, err := w.redis.Keys(t.Context(), "*:run:*").Result()
	require.NoError(t, err)
	var stories, ended []string
	for _, key := range runs {
		id := key[strings.LastIndex(key, ":")+1:]
		story, err := w.admin("run", id)
		require.NoError(t, err)
		if strings.Contains(story, "write_file") {
			stories = append(stories, story)
			_, err := w.admin("abandon", id)
			require.Error(t, err)
			ended = append(ended, err.Error())
		}
	}
	require.Regexp(t, "continues it, and is completed", ended, "the request leads to the run that executed it")
	require.Len(t, stories, 2)
	require.Equal(t, stories[0], stories[1])
	require.Contains(t, stories[0], "approved")
	require.Contains(t, stories[0], "is completed")
}

// texts is what a result says.
func texts(r *mcp.CallToolResult) (all []string) {
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return all
}
