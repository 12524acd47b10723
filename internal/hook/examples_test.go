package hook_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

func TestTheSettingsOfTheExamplesGateEveryTool(t *testing.T) {
	const dir, url = "../../examples/claude-code/", "https://countersign.your-company.com"
	for _, name := range []string{"settings.json", "settings-command.json"} {
		checks := hook.Doctor(t.Context(), hook.Config{URL: url, Now: time.Now}, hook.Place{Managed: dir + name, Home: t.TempDir(), Project: t.TempDir()})
		require.Contains(t, checks, hook.Check{Level: hook.OK, What: dir + name, Found: "asks Countersign before every tool"})
		for _, c := range checks {
			require.NotEqual(t, "settings", c.What)
			if strings.Contains(c.Found, "which MCP servers") {
				continue // a team has to name its own
			}
			require.False(t, c.What == dir+name && c.Level != hook.OK, c.Found)
		}
	}
	var shown, written struct {
		Hooks map[string]any `json:"hooks"`
	}
	raw, err := os.ReadFile(dir + "settings.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &shown))
	raw, err = hook.Settings(url, true)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &written))
	require.Equal(t, written.Hooks["PreToolUse"], shown.Hooks["PreToolUse"], "the doctor writes what the example shows")
}
