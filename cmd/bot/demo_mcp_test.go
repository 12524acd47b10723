package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A visitor brings a server: what it lists is accepted, and nothing of it runs
// before people approve.
func TestTheDemoGatesTheToolsOfAVisitorsServer(t *testing.T) {
	program, err := filepath.Abs("../../internal/tools/mcptool/npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
	require.NoError(t, err)
	require.FileExists(t, program, "run .ci/deps, which installs the packages")
	theirs, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	file := filepath.Join(theirs, "a.txt")
	s, _ := startDemo(t, "--mcp", "node "+program+" "+theirs)

	root := s.ask(`call mcp.write_file {"path": "`+file+`", "content": "hello"}`, "")
	card := s.await(bob, root, "the card", func(m message) bool { return len(m.buttons("mcp.write_file")) > 0 && says("hello")(m) })
	require.NoFileExists(t, file)
	require.Empty(t, s.click(bob, card, "mcp.write_file", "Approve").VisibleError)
	s.await(alice, root, "the answer", says("Successfully wrote"))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "hello", string(b))

	root = s.ask(`call mcp.read_text_file {"path": "`+file+`"}`, "")
	s.await(bob, root, "a card for a tool that says it only reads", func(m message) bool { return len(m.buttons("mcp.read_text_file")) > 0 })
}
