package uistream_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/uistream"
)

// clients are the versions of the AI SDK that are tried, each with a dialect.
var clients = []struct{ name, pkg, dialect string }{
	{"5 latest, v5", "ai-5", "v5"},
	{"6.0.0, common", "ai-6-first", ""},
	{"6 latest, common", "ai-6", ""},
	{"7.0.0, common", "ai-7-first", ""},
	{"7 latest, common", "ai-7", ""},
	{"7.0.0, v7", "ai-7-first", "v7"},
	{"7 latest, v7.0.82", "ai-7", "v7.0.82"},
}

// What people do with the real clients of the AI SDK. MATRIX=file writes the
// versions and the scenarios as a table.
func TestTheClientsOfTheAISDK(t *testing.T) {
	node := nodeOfTheClients(t)
	w := newWorld(t)
	patient := newWorld(t, func(c *uistream.Config, _ *agentrun.Agent) { c.Hold = 300 * time.Millisecond })
	var mu sync.Mutex
	var rows []string
	cells := map[string]map[string]string{}
	note := func(row, client, says string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
			cells[row] = map[string]string{}
		}
		cells[row][client] = says
	}
	t.Cleanup(func() {
		if path := os.Getenv("MATRIX"); path != "" {
			require.NoError(t, os.WriteFile(path, []byte(matrix(rows, cells)), 0o600))
		}
	})
	for i, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), node, "scenarios.mjs")
			cmd.Dir = "npm"
			cmd.Env = append(os.Environ(), "AI="+c.pkg, "DIALECT="+c.dialect, "BASE="+w.http.URL, "PATIENT="+patient.http.URL, fmt.Sprint("RUN=", i))
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			seen := 0
			for lines := bufio.NewScanner(out); lines.Scan(); seen++ {
				var row struct{ Name, Note, Wrong string }
				if json.Unmarshal(lines.Bytes(), &row) != nil {
					continue
				}
				t.Run(row.Name, func(t *testing.T) {
					if row.Wrong != "" {
						note(row.Name, c.name, "NO")
						require.Fail(t, row.Wrong)
					}
					note(row.Name, c.name, cmp.Or(row.Note, "yes"))
				})
			}
			require.NoError(t, cmd.Wait())
			require.Positive(t, seen)
		})
	}
}

func matrix(rows []string, cells map[string]map[string]string) string {
	var b strings.Builder
	b.WriteString("| scenario |")
	for _, c := range clients {
		b.WriteString(" " + c.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(clients)) + "\n")
	for _, r := range rows {
		b.WriteString("| " + r + " |")
		for _, c := range clients {
			cell := cells[r][c.name]
			if cell == "" {
				cell = "-"
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// nodeOfTheClients is a Node that the newest clients declare: that of their
// packages, or of the machine.
func nodeOfTheClients(t *testing.T) string {
	t.Helper()
	require.DirExists(t, filepath.Join("npm", "node_modules", "ai-7"), "run .ci/deps, which installs the packages")
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	own, err := filepath.Abs(filepath.Join("npm", "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node"))
	require.NoError(t, err)
	if _, err := os.Stat(own); err == nil {
		return own
	}
	node, err := exec.LookPath("node")
	require.NoError(t, err)
	return node
}
