package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// A message that quotes a file or an argument shows as an escape what a terminal
// would not show, whichever command prints it.
func TestMessagesShowWhatATerminalWouldNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	config := file("config.yaml", "polic\u200by: p.yaml\nagents: [{name: ops, files: \"re\u202eports\"}]\n")
	wrong := file("p.yaml", "rules: [{name: \"a\\u200bb\"}]\n")
	odd := file("rules\u2066.yaml", "rul\u3164es: []\n")
	for name, args := range map[string][]string{
		"check":        {"check", "--config", config},
		"policy check": {"policy", "check", odd},
		"as JSON":      {"policy", "check", "--json", wrong},
		"of a config":  {"policy", "check", "--config", config},
		"serve":        {"serve", "--config", config},
		"init":         {"init", "--dir", filepath.Join(odd, "x")},
		"no such file": {"policy", "check", filepath.Join(dir, "none\u2028")},
		"no command":   {"serv\u200be"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), args, nil, &out, &out)
			require.Error(t, err)
			require.NotZero(t, exitCode(err, &out))
			require.Equal(t, approvals.Visible(out.String()), out.String())
			require.Regexp(t, `\\u[0-9a-f]{4}`, out.String())
		})
	}
}
