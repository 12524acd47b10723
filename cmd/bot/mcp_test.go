package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/slacksim"
)

// withFiles is an installation whose agent has a server of npm.
func withFiles(t *testing.T) *installation {
	t.Helper()
	program, err := filepath.Abs("../../internal/tools/mcptool/npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
	require.NoError(t, err)
	require.FileExists(t, program, "run .ci/deps, which installs the packages")
	i := newInstallation(t, slacksim.Config{})
	i.replace("    channels:", "    mcp: {files: {command: node, args: ["+program+", "+t.TempDir()+"], include: [write_file, read_text_file]}}\n    channels:")
	i.o.Accepted, i.o.Rules = withAccepted, coverage
	return i
}

// writes the files and the environment of the installation.
func (i *installation) writes() {
	online := i.o.Online
	i.o.Online = false
	i.check()
	i.o.Online = online
}

func (i *installation) run(args ...string) (string, error) {
	i.t.Helper()
	i.writes()
	var out, errs bytes.Buffer
	err := run(i.t.Context(), args, i.o.Environ, &out, &errs)
	return out.String(), err
}

// What an agent has of a server is what an operator accepted, wherever it is kept.
func TestAnOperatorAcceptsTheToolsOfAServer(t *testing.T) {
	t.Parallel()
	for _, kept := range []string{"in Redis", "in the lock file"} {
		t.Run(kept, func(t *testing.T) {
			i := withFiles(t)
			if kept == "in the lock file" {
				i.text += "mcp_lock: mcp.lock\n"
			}
			pins := func(more ...string) (string, error) {
				return i.run(append([]string{"mcp", "pins", "--config", filepath.Join(i.dir, configName)}, more...)...)
			}
			if kept == "in Redis" {
				require.Contains(t, i.check(), "nobody has accepted its tools")
			} else {
				i.o.Online = false
				require.Contains(t, i.check(), "bot mcp pins accept writes it")
				i.o.Online = true
				_, err := pins("export")
				require.ErrorContains(t, err, "bot mcp pins accept writes it", "there is nothing to print")
			}
			said, err := pins()
			require.ErrorContains(t, err, "not everything is as it was accepted", "an operator reads the tools before accepting them")
			require.Contains(t, said, "files of ops: 2 tools; none was accepted yet\n\n  read_text_file: new\n")
			require.Contains(t, said, `    +  "name": "write_file",`)
			said, err = pins("accept")
			require.NoError(t, err)
			require.Contains(t, said, "Accepted; it is in ")
			said, err = pins()
			require.NoError(t, err)
			require.Equal(t, "files of ops: 2 tools, all as they were accepted\n", said)
			if kept == "in Redis" {
				require.Contains(t, i.check(), "ops has MCP servers and no owners, so nobody can accept in Slack what a server changes")
			}

			lock, err := pins("export")
			require.NoError(t, err)
			path := filepath.Join(i.dir, "mcp.lock")
			if kept == "in Redis" {
				require.NoFileExists(t, path)
				require.NoError(t, os.WriteFile(path, []byte(lock), 0o600))
				i.text += "mcp_lock: mcp.lock\n"
				_, err = pins()
				require.NoError(t, err, "what is exported is a lock file")
			}
			require.FileExists(t, path)
			found := i.check()
			require.Contains(t, found, "files.read_text_file: ask agents[0].mcp.files")
			require.NotContains(t, found, "has MCP servers and no owners", "with a lock file nobody accepts in Slack")
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(lock, `"readOnlyHint": true`, `"readOnlyHint": false`, 1)), 0o600))
			i.o.Online = false
			require.Contains(t, i.check(), "does not have the name or the digest beside it")
		})
	}
}

// A server says that a tool only reads; without a rule it needs approval all the
// same, and a rule may permit it.
func TestToolsOfServersAreGatedUnlessTheyArePermitted(t *testing.T) {
	t.Parallel()
	i := withFiles(t)
	config := filepath.Join(i.dir, configName)
	_, err := i.run("mcp", "pins", "--config", config, "accept")
	require.NoError(t, err)
	explain := func() string {
		said, err := i.run("policy", "explain", "--config", config, "--tool", "files.read_text_file", "--args", `{"path":"a"}`, "--requester", alice)
		require.NoError(t, err)
		return said
	}
	require.Contains(t, explain(), "agents[0].mcp.files")
	i.rules += "  - name: reading\n    tools: [files.read_text_file]\n    allow: true\n"
	require.Contains(t, explain(), "reading")

	b := i.bot()
	var names []string
	for _, tool := range b.servers.Tools("ops") {
		names = append(names, agentrun.CallableName(tool.Spec().Name))
	}
	require.Equal(t, []string{"files_read_text_file", "files_write_file"}, names)
}
