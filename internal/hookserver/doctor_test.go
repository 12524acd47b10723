package hookserver_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

func TestTheDoctorProvesARefusalWithoutAskingAnybody(t *testing.T) {
	w := newWorld(t)
	for secret, found := range map[string]string{token: "refuses a call that names no session", "wrong": "proves no agent", "api-token": "does not list the door"} {
		checks := hook.Doctor(t.Context(), hook.Config{URL: w.server.URL, Token: secret, Now: time.Now}, hook.Place{Home: t.TempDir(), Project: t.TempDir(), Managed: t.TempDir() + "/none"})
		text := ""
		for _, c := range checks {
			text += string(c.Level) + " " + c.Found + "\n"
		}
		require.Contains(t, text, found)
	}
	require.Empty(t, w.watch.asked)
}

// The doctor reads the version from the program itself, so that it is run against
// the real one too: with the hook over HTTP, and with the command hook.
func TestTheDoctorKnowsTheRealClaudeCode(t *testing.T) {
	if *realClaude == "" {
		t.Skip("needs the program of Claude Code (-claude FILE): `make soak` installs it and runs this test")
	}
	version, err := exec.CommandContext(t.Context(), *realClaude, "--version").Output()
	require.NoError(t, err)
	ignores := strings.HasPrefix(string(version), "2.1.197")
	w := newWorld(t)
	self := filepath.Join(t.TempDir(), "bot")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", self, "../../cmd/bot").CombinedOutput()
	require.NoError(t, err, string(out))
	for _, kind := range []string{"http", "command"} {
		dir := t.TempDir()
		p := hook.Place{Home: dir, Project: dir, Managed: filepath.Join(dir, "managed.json"), Claude: *realClaude, Self: self}
		if kind == "command" {
			require.NoError(t, os.WriteFile(p.Managed, []byte(`{"allowManagedHooksOnly":true,"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"`+self+` hook ask","timeout":600}]}]}}`), 0o600))
		} else {
			_, err := hook.Write(w.server.URL, p)
			require.NoError(t, err)
		}
		var found bytes.Buffer
		good, err := hook.Print(&found, hook.Doctor(t.Context(), hook.Config{URL: w.server.URL, Token: token, Now: time.Now}, p))
		require.NoError(t, err)
		require.Equal(t, !ignores || kind == "command", good, found.String())
		require.Equal(t, ignores, strings.Contains(found.String(), "ignores onFailure"), found.String())
		t.Logf("%s:\n%s", kind, strings.ReplaceAll(found.String(), dir, ""))
	}
}
