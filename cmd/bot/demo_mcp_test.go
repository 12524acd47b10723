package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A visitor brings a server: what it lists is accepted, and nothing of it runs
// before people approve.
func TestTheDemoGatesTheToolsOfAVisitorsServer(t *testing.T) {
	t.Parallel()
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

// One agent has three servers that people use, one of which writes to a database. One
// request has a call of each; none takes effect before people approve it.
func TestTheDemoGatesThreeServersOfOneAgent(t *testing.T) {
	t.Parallel()
	modules, err := filepath.Abs("../../internal/tools/mcptool/npm/node_modules")
	require.NoError(t, err)
	theirs, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	file, db := filepath.Join(theirs, "a.txt"), filepath.Join(theirs, "a.db")
	rows := func() string {
		node := exec.CommandContext(t.Context(), "node", "-e", `
const { default: D } = require("better-sqlite3"); const db = new D(process.argv[1]);
console.log(JSON.stringify(db.prepare("select note from orders").all()))`, db)
		node.Dir = filepath.Dir(modules)
		out, err := node.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	s, _ := startDemo(t,
		"--mcp", "files=node "+modules+"/@modelcontextprotocol/server-filesystem/dist/index.js "+theirs,
		"--mcp", "all=node "+modules+"/@modelcontextprotocol/server-everything/dist/index.js",
		"--mcp", "db=env SQLITE_DB_PATH="+db+" node "+modules+"/mcp-server-sqlite/dist/cli.js")

	root := s.ask(`call db.execute {"sql": "create table orders (note text)"}`, "")
	card := s.await(bob, root, "the card", asked("db.execute"))
	require.NoFileExists(t, db)
	require.Empty(t, s.click(bob, card, "db.execute", "Approve").VisibleError)
	s.await(alice, root, "the answer", says("Statement executed successfully"))
	require.Equal(t, "[]", rows())

	root = s.ask("call files.write_file {\"path\": \""+file+"\", \"content\": \"hello\"}\n"+
		"call all.echo {\"message\": \"hi\"}\n"+
		"call db.insert-record {\"table\": \"orders\", \"data\": {\"note\": \"paid\"}}", "")
	card = s.await(bob, root, "one card with a call of each server", func(m message) bool {
		return len(m.buttons("files.write_file")) > 0 && len(m.buttons("all.echo")) > 0 && len(m.buttons("db.insert-record")) > 0
	})
	require.Equal(t, "[]", rows())
	require.NoFileExists(t, file)
	require.Empty(t, s.click(bob, card, "db.insert-record", "Deny").VisibleError)
	s.submit(bob, s.views(bob)[0], "Not today.")
	require.Empty(t, s.click(bob, card, "files.write_file", "Approve").VisibleError)
	require.Empty(t, s.click(bob, card, "all.echo", "Approve").VisibleError)
	s.await(alice, root, "the answer to each call", says("files_write_file returned: ", "all_echo returned: ", "db_insert-record returned: "))
	require.FileExists(t, file)
	require.Equal(t, "[]", rows(), "what was denied did not happen")

	root = s.ask(`call db.insert-record {"table": "orders", "data": {"note": "paid"}}`, "")
	card = s.await(bob, root, "the card", asked("db.insert-record"))
	require.Equal(t, "[]", rows())
	require.Empty(t, s.click(bob, card, "db.insert-record", "Approve").VisibleError)
	s.await(alice, root, "the answer", says("Record inserted successfully"))
	require.JSONEq(t, `[{"note":"paid"}]`, rows())
}
