package hook_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

func TestTheDoctorFailsWhereARepositoryCanSwitchOffTheHooksOfCopilotCLI(t *testing.T) {
	const asks = `{"version":1,"hooks":{"PreToolUse":[{"type":"command","bash":"/usr/local/bin/bot hook ask --kind vscode","timeoutSec":60}]}}`
	for name, c := range map[string]struct {
		policy string
		first  string // a file before it
		mode   os.FileMode
		others bool // another user owns it
		good   bool
		says   string
	}{
		"no policy":                   {says: "switches off the hooks of the user"},
		"another event":               {policy: strings.Replace(asks, "PreToolUse", "PostToolUse", 1), mode: 0o644, says: "switches off the hooks of the user"},
		"another program":             {policy: strings.Replace(asks, "bot hook ask", "true", 1), mode: 0o644, says: "switches off the hooks of the user"},
		"no JSON":                     {policy: "{", mode: 0o644, says: "switches off the hooks of the user"},
		"one that everyone writes":    {policy: asks, mode: 0o646, says: "can be written by others"},
		"one that a group writes":     {policy: asks, mode: 0o664, says: "can be written by others"},
		"one with too little time":    {policy: strings.Replace(asks, "60", "20", 1), mode: 0o644, says: "Copilot CLI gives up first"},
		"one that holds for longer":   {policy: strings.Replace(asks, "vscode", "vscode --hold 9m", 1), mode: 0o644, says: "Copilot CLI gives up first"},
		"one whose exit code is lost": {policy: strings.Replace(asks, "vscode", "vscode || true", 1), mode: 0o644, says: "exit code"},
		"one for some tools":          {policy: strings.Replace(asks, `"bash"`, `"matcher":"bash","bash"`, 1), mode: 0o644, says: "leaves out other tools"},
		"one without a time":          {policy: strings.Replace(asks, `,"timeoutSec":60`, "", 1), mode: 0o644, good: true, says: "asks Countersign; after"},
		"one of the policy":           {policy: asks, mode: 0o644, good: true, says: "asks Countersign; after"},
		"one of another user":         {policy: asks, mode: 0o644, others: true, says: "root does not own it"},
		"one of no version":           {policy: strings.Replace(asks, `"version":1,`, "", 1), mode: 0o644, says: `"version" is not 1`},
		"one for another agent":       {policy: strings.Replace(asks, "vscode", "gemini", 1), mode: 0o644, says: `as the kind "gemini"`},
		"one for Claude Code":         {policy: strings.Replace(asks, " --kind vscode", "", 1), mode: 0o644, says: `as the kind "claude-code"`},
		"one with a hold after =":     {policy: strings.Replace(asks, "vscode", "vscode -hold=9m", 1), mode: 0o644, says: "a hold of 9m0s: Copilot CLI gives up first"},
		"one with its kind after =":   {policy: strings.Replace(asks, " vscode", "=vscode", 1), mode: 0o644, good: true, says: "asks Countersign; after"},
		"one with the other time-out": {policy: strings.Replace(asks, "timeoutSec\":60", "timeout\":10", 1), mode: 0o644, says: "time-out of 10s is too short"},
		"one for another system":      {policy: strings.Replace(asks, `"bash"`, `"powershell"`, 1), mode: 0o644, says: "switches off the hooks of the user"},
		"one of another type":         {policy: strings.Replace(asks, `"bash"`, `"type":"http","bash"`, 1), mode: 0o644, says: "switches off the hooks of the user"},
		"one for any shell":           {policy: strings.Replace(asks, `"bash"`, `"command"`, 1), mode: 0o644, good: true, says: "asks Countersign; after"},
		"one for any, lost":           {policy: strings.Replace(strings.Replace(asks, `"bash"`, `"command"`, 1), "vscode", "vscode; true", 1), mode: 0o644, says: "exit code"},
		"one behind a program":        {policy: strings.Replace(asks, "/usr/", "timeout 5 /usr/", 1), mode: 0o644, says: "begins with another program"},
		"one without a shell": {
			policy: strings.Replace(asks, `"bash":"/usr/local/bin/bot hook ask --kind vscode"`, `"exec":"/usr/local/bin/bot","args":["hook","ask","--kind","vscode","--token-file","/etc/a&b"]`, 1),
			mode:   0o644, good: true, says: "asks Countersign; after",
		},
		"one after one that is bad": {first: strings.Replace(asks, "60", "20", 1), policy: asks, mode: 0o644, good: true, says: "asks Countersign; after"},
		"two that are bad":          {first: strings.Replace(asks, "60", "20", 1), policy: strings.Replace(asks, "vscode", "gemini", 1), mode: 0o644, says: `as the kind "gemini"`},
	} {
		t.Run(name, func(t *testing.T) {
			url, dir := guarded(t), t.TempDir()
			p := hook.Place{Managed: filepath.Join(dir, "managed.json"), Home: dir, Project: dir, Self: script(t, "exit 2"), Copilot: dir, Owner: os.Getuid()}
			if c.others {
				p.Owner++
			}
			_, err := hook.Write(url, p)
			require.NoError(t, err)
			p.Copilot = filepath.Join(dir, "policy.d")
			require.NoError(t, os.MkdirAll(p.Copilot, 0o750))
			for file, policy := range map[string]string{"10-first.json": c.first, "countersign.json": c.policy} {
				if policy != "" {
					path := filepath.Join(p.Copilot, file)
					require.NoError(t, os.WriteFile(path, []byte(policy), 0o600))
					require.NoError(t, os.Chmod(path, c.mode))
				}
			}
			var out bytes.Buffer
			good, err := hook.Print(&out, hook.Doctor(t.Context(), hook.Config{URL: url, Token: "good", Now: time.Now}, p))
			require.NoError(t, err)
			require.Equal(t, c.good, good, out.String())
			require.Contains(t, out.String(), c.says)
		})
	}
}
