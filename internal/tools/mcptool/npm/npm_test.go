// Package npm_test runs MCP servers that people use, from their packages.
package npm_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// start accepts what the server lists, and returns a function that calls a tool.
func start(t *testing.T, name string, args ...string) func(tool, args string) (string, error) {
	t.Helper()
	program := filepath.Join("node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	program, err := filepath.Abs(program)
	require.NoError(t, err)
	require.FileExists(t, program, "run .ci/deps, which installs the packages")
	return startServer(t, mcptool.Server{Command: "node", Args: append([]string{program}, args...)})
}

func startServer(t *testing.T, s mcptool.Server) func(tool, args string) (string, error) {
	t.Helper()
	s.Agent, s.Name, s.Timeout = "ops", "npm", 20*time.Second
	listed, err := mcptool.List(t.Context(), s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	var pins mcptool.Pins
	var accepted []mcptool.Definition
	for _, l := range listed {
		require.NoError(t, l.Why, l.Name)
		accepted = append(accepted, l.Definition)
	}
	pins.Accept(mcptool.Place{Agent: "ops", Server: "npm"}, accepted)
	read, err := mcptool.ReadPins(pins.Bytes())
	require.NoError(t, err)
	set := mcptool.Open([]mcptool.Server{s}, read, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { set.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	all := set.Tools("ops")
	return func(tool, args string) (string, error) {
		t.Helper()
		i := slices.IndexFunc(all, func(o agentrun.Tool) bool { return o.Spec().Name == "npm."+tool })
		require.GreaterOrEqual(t, i, 0, "there is no tool %s", tool)
		c := agentrun.Call{ToolCall: approvals.ToolCall{ID: "c", Name: "npm." + tool, Args: json.RawMessage(args)}}
		if err := all[i].Validate(t.Context(), c); err != nil {
			return "", err
		}
		got, err := all[i].Execute(t.Context(), c)
		return string(got.Value), err
	}
}

// A server that writes to a real database: what a call changes is in the file.
func TestTheSQLiteServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.db")
	program, err := filepath.Abs(filepath.Join("node_modules", "mcp-server-sqlite", "dist", "cli.js"))
	require.NoError(t, err)
	require.FileExists(t, program, "run .ci/deps, which installs the packages")
	call := startServer(t, mcptool.Server{Command: "node", Args: []string{program}, Env: map[string]string{"SQLITE_DB_PATH": file}})
	_, err = call("execute", `{"sql":"create table orders (id integer primary key, note text)"}`)
	require.NoError(t, err)
	got, err := call("insert-record", `{"table":"orders","data":{"note":"hello <!channel>"}}`)
	require.NoError(t, err)
	require.Contains(t, got, "Record inserted successfully")
	got, err = call("query", `{"sql":"select note from orders"}`)
	require.NoError(t, err)
	require.Contains(t, got, "hello <!channel>")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(b), "hello <!channel>")
	_, err = call("query", `{"sql":"select * from nothing"}`)
	require.Error(t, err)
}

func TestTheFilesystemServer(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	call := start(t, "server-filesystem", folder)
	file := filepath.Join(folder, "a.txt")
	_, err = call("write_file", `{"path":"`+file+`","content":"hello <!channel>"}`)
	require.NoError(t, err)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "hello <!channel>", string(b))
	got, err := call("read_text_file", `{"path":"`+file+`"}`)
	require.NoError(t, err)
	require.Contains(t, got, "hello <!channel>")
	_, err = call("read_text_file", `{"path":"/etc/passwd"}`)
	require.ErrorContains(t, err, "tool failed: The tool reported an error: ")
	_, err = call("read_text_file", `{"path":7}`)
	require.ErrorContains(t, err, "/path: got number, want string")
}

func TestTheEverythingServer(t *testing.T) {
	call := start(t, "server-everything")
	got, err := call("echo", `{"message":"hi"}`)
	require.NoError(t, err)
	require.JSONEq(t, `"Echo: hi"`, got)
	got, err = call("get-tiny-image", `{}`)
	require.NoError(t, err)
	require.Contains(t, got, `"mime_type":"image/png"`)
	require.NotContains(t, got, "iVBOR", "the image is described")
	got, err = call("get-structured-content", `{"location":"Chicago"}`)
	require.NoError(t, err)
	require.Contains(t, got, `"structured_content":{`)
	got, err = call("get-resource-links", `{"count":2}`)
	require.NoError(t, err)
	require.Contains(t, got, "nothing was fetched from it")
}
