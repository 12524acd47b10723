package hook_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

// script writes a program that a machine could have.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return path
}

// guarded is Countersign as far as the doctor asks it.
func guarded(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reason := "the token proves no agent"
		if r.Header.Get("Authorization") == "Bearer good" {
			reason = "the question names no session"
		}
		_, _ = w.Write([]byte(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"` + reason + `"}}`))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestTheDoctorFindsWhatLetsAToolRunUnasked(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no pwsh is installed
	const fine = `{"allowManagedHooksOnly":true,"disableSkillShellExecution":true,"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"http","url":"URL/v1/hooks/claude-code?hold=9m","timeout":600,"onFailure":"block"}]}]}}`
	command := func(hook string) string {
		return `{"allowManagedHooksOnly":true,"hooks":{"PreToolUse":[{"hooks":[{"type":"command",` + hook + `}]}]}}`
	}
	change := func(oldnew ...string) string { return strings.NewReplacer(oldnew...).Replace(fine) }
	for name, c := range map[string]struct {
		version, managed, user, project, token string
		more                                   string // a file beside the managed settings
		codex                                  string // its hooks.json
		gemini, pwsh                           bool
		self                                   string
		bad                                    bool
		says                                   string
	}{
		"nothing is wrong":                            {says: "asks Countersign before every tool"},
		"a version that ignores the setting":          {version: "2.1.197 (Claude Code)", bad: true, says: "2.1.197 ignores onFailure"},
		"a version of another time":                   {version: "3.0.1", says: "3.0.1 understands"},
		"a program without a version":                 {version: "hello", bad: true, says: "does not say its version"},
		"a failure that does not block":               {managed: change(`,"onFailure":"block"`, ""), bad: true, says: "tools run whenever Countersign is away"},
		"a matcher that leaves tools out":             {managed: change(`"matcher":"*"`, `"matcher":"Bash"`), bad: true, says: `"Bash" leaves out`},
		"a client that gives up first":                {managed: change("hold=9m", "hold=10m"), bad: true, says: "gives up first"},
		"a hold that its default cuts off":            {managed: change(`,"timeout":600`, "", "hold=9m", "hold=20m"), bad: true, says: "gives up first"},
		"a command whose exit code is lost":           {managed: `{"allowManagedHooksOnly":true,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"BOT hook ask || true","timeout":600}]}]}}`, bad: true, says: "exit code"},
		"a command that only prints its help":         {managed: command(`"command":"BOT hook ask --help"`), bad: true, says: "prints its help"},
		"a command that only prints another":          {managed: command(`"command":"echo BOT hook ask"`), bad: true, says: "begins with another program"},
		"a command that is a comment":                 {managed: command(`"command":": # BOT hook ask"`), bad: true, says: "begins with another program"},
		"a program that ends the command first":       {managed: command(`"command":"timeout 5 BOT hook ask"`), bad: true, says: "begins with another program"},
		"a program that ends it, words apart":         {managed: command(`"command":"timeout","args":["5","BOT","hook","ask"]`), bad: true, says: "begins with another program"},
		"a command that is turned around":             {managed: command(`"command":"! BOT hook ask"`), bad: true, says: "not one program alone"},
		"a command whose answer goes to a file":       {managed: command(`"command":"BOT hook ask > /tmp/x"`), bad: true, says: "sends its output elsewhere"},
		"a command in a shell of its own":             {managed: command(`"command":"( BOT hook ask )"`), bad: true, says: "not one program alone"},
		"a command whose errors go to a file":         {managed: command(`"command":"BOT hook ask 2>> /nowhere/x"`), bad: true, says: "sends its output elsewhere"},
		"a command whose errors go nowhere":           {managed: command(`"command":"BOT hook ask 2>/dev/null"`), says: "asks Countersign before every tool"},
		"a command that is commented out":             {managed: command(`"command":"#BOT hook ask"`), bad: true, says: "not one program alone"},
		"a command that prints its help for a value":  {managed: command(`"command":"BOT hook ask --help=true"`), bad: true, says: "prints its help"},
		"a command that prints its help in quotes":    {managed: command(`"command":"BOT hook ask '--he'\\lp"`), bad: true, says: "prints its help"},
		"a command with a word of another command":    {managed: command(`"command":"BOT hook ask $(echo --help)"`), bad: true, says: "not one program alone"},
		"a command with a default of another command": {managed: command(`"command":"BOT hook ask ${X:-$(echo --help)}"`), bad: true, says: "not one program alone"},
		"a command with signs of the shell in quotes": {managed: command(`"command":"'SPACED' hook ask --token-file '/a & b (c)'"`), says: "asks Countersign before every tool"},
		"a variable with a space in it":               {managed: command(`"command":"X='a b' BOT hook ask"`), says: "asks Countersign before every tool"},
		"another server with a variable in its path":  {managed: command(`"command":"BOT hook ask --url https://else.example/$X"`), bad: true, says: "asks https://else.example"},
		"a server that only the shell knows":          {managed: command(`"command":"BOT hook ask --url \"$COUNTERSIGN_URL\""`), says: "asks Countersign before every tool"},
		"a command with a variable before it":         {managed: command(`"command":"SSL_CERT_FILE=/x BOT hook ask"`), says: "asks Countersign before every tool"},
		"a command that asks another server":          {managed: command(`"command":"BOT hook ask --url https://else.example"`), bad: true, says: "asks https://else.example"},
		"a variable that names another server":        {managed: command(`"command":"COUNTERSIGN_\u0055RL=https://else.example BOT hook ask"`), bad: true, says: "asks https://else.example"},
		"a command that asks this server":             {managed: command(`"command":"BOT hook ask --url URL"`), says: "asks Countersign before every tool"},
		"a command in quotes":                         {managed: command(`"command":"'SPACED' hook ask"`), says: "asks Countersign before every tool"},
		"another command that names this one":         {managed: command(`"command":"BOT hook mcp ask"`), bad: true, says: "is bot hook mcp"},
		"a command with its hold after =":             {managed: command(`"command":"BOT hook ask --hold=20m"`), bad: true, says: "gives up first"},
		"a condition that leaves calls out":           {managed: change(`"type":"http"`, `"type":"http","if":"Bash(rm *)"`), bad: true, says: `"Bash(rm *)" leaves out`},
		"a command that nobody waits for":             {managed: command(`"async":true,"command":"BOT hook ask"`), bad: true, says: "without waiting"},
		"a command that only claude -p waits for":     {managed: command(`"asyncRewake":true,"command":"BOT hook ask"`), bad: true, says: "without waiting"},
		"a command for a shell that is not there":     {managed: command(`"shell":"powershell","command":"BOT hook ask"`), bad: true, says: "every tool runs"},
		"a command for a shell that is there":         {managed: command(`"shell":"powershell","command":"BOT hook ask"`), pwsh: true, says: "asks Countersign before every tool"},
		"a command that its shell does not find":      {managed: command(`"shell":"powershell","command":"/nowhere/bot hook ask"`), pwsh: true, bad: true, says: "every tool runs"},
		"a key in letters of the wrong case":          {managed: change("onFailure", "onfailure"), bad: true, says: "tools run whenever Countersign is away"},
		"a hook that is of no known type":             {managed: change(`{"matcher"`, `{"hooks":[{"type":"webhook"}]},{"matcher"`), bad: true, says: `ignores all of its hooks: the type "webhook"`},
		"a hook without a command":                    {managed: change(`{"PreToolUse"`, `{"PermissionRequest":[{"hooks":[{"type":"command"}]}],"PreToolUse"`), bad: true, says: "does not say what it calls"},
		"a matcher without hooks":                     {managed: change(`{"matcher"`, `{"type":"command"},{"matcher"`), bad: true, says: "has no list of hooks"},
		"no time at all":                              {managed: change(`"timeout":600`, `"timeout":0`), bad: true, says: "not more than 0"},
		"a command that is not there":                 {managed: command(`"command":"/nowhere/bot hook ask"`), bad: true, says: "every tool runs"},
		"a command that is not there, and blocks":     {managed: command(`"command":"/nowhere/bot hook ask","onFailure":"block"`), says: "asks Countersign before every tool"},
		"a command with its words apart":              {managed: command(`"command":"BOT","args":["hook","ask"]`), says: "asks Countersign before every tool"},
		"a program with a space in its path":          {managed: command(`"command":"SPACED","args":["hook","ask"]`), says: "asks Countersign before every tool"},
		"another command of this program":             {managed: command(`"command":"BOT hook doctor"`), bad: true, says: "no PreToolUse hook that asks"},
		"a shell that becomes the program":            {managed: command(`"command":"exec BOT hook ask"`), says: "asks Countersign before every tool"},
		"a shell that becomes what is not there":      {managed: command(`"command":"exec /nowhere/bot hook ask"`), bad: true, says: "every tool runs"},
		"a hook of another server":                    {managed: change("URL", "https://else.example"), bad: true, says: "no PreToolUse hook"},
		"skills whose commands nobody sees":           {managed: change(`"disableSkillShellExecution":true,`, ""), says: "commands that are written in a skill run"},
		"hooks that others may add to":                {managed: change(`"allowManagedHooksOnly":true,`, ""), says: "allowManagedHooksOnly is not true"},
		"managed settings that are no JSON":           {managed: "{", bad: true, says: "is not JSON"},
		"hooks that managed settings switch off":      {managed: change(`{"allow`, `{"disableAllHooks":true,"allow`), bad: true, says: "disableAllHooks"},
		"hooks that another file switches off":        {more: `{"disableAllHooks":true}`, bad: true, says: "disableAllHooks"},
		"a hook in another file":                      {managed: `{"hooks":{"PreToolUse":[]}}`, more: fine, says: "asks Countersign before every tool"},
		"another file without hooks":                  {more: `{"hooks":null}`, says: "asks Countersign before every tool"},
		"another file that is no JSON":                {more: "{", bad: true, says: "10-more.json is not JSON"},
		"no settings at all":                          {managed: "-", bad: true, says: "no settings ask Countersign"},
		"settings that the agent can edit":            {managed: "-", user: fine, says: "can edit the settings of its user"},
		"a project that switches hooks off":           {managed: "-", user: fine, project: `{"disableAllHooks":true}`, bad: true, says: "disableAllHooks"},
		"a project that may not switch them off":      {project: `{"disableAllHooks":true}`, says: "disableAllHooks"},
		"a project whose settings are no JSON":        {managed: "-", user: fine, project: `{"disableAllHooks":true,}`, bad: true, says: "may switch hooks off"},
		"a large project that switches hooks off":     {managed: "-", user: fine, project: `{"disableAllHooks":true,"x":"` + strings.Repeat("x", 70<<10) + `"}`, bad: true, says: "disableAllHooks"},
		"a project that is not read, and managed":     {project: "{", says: "is not JSON"},
		"a hook of one project only":                  {managed: "-", project: fine, says: "asks in this project only"},
		"a hook of the user besides":                  {managed: change(`"allowManagedHooksOnly":true,`, ""), user: strings.Replace(fine, "9m", "8m", 1), says: "2 different hooks ask"},
		"a project with another token":                {project: `{"env":{"COUNTERSIGN_TOKEN":"x"}}`, says: "sets COUNTERSIGN_TOKEN"},
		"a project with hooks of its own":             {managed: "-", user: fine, project: `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"x"}]}]}}`, says: "1 other PreToolUse hooks"},
		"a project that bypasses permissions":         {project: `{"permissions":{"defaultMode":"bypassPermissions"}}`, says: "only hooks are left"},
		"the command hook":                            {managed: `{"allowManagedHooksOnly":true,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"BOT hook ask --hold 2m","timeout":180}]}]}}`, says: "asks Countersign before every tool"},
		"the command hook on an old version":          {version: "2.1.197", managed: `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"BOT hook ask","timeout":600}]}]}}`, says: "does without it"},
		"the command hook with too little time":       {managed: `{"allowManagedHooksOnly":true,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"BOT hook ask","timeout":60}]}]}}`, bad: true, says: "gives up first"},
		"a token that is refused":                     {token: "worse", bad: true, says: "proves no agent"},
		"a token that is missing":                     {token: "-", bad: true, says: "COUNTERSIGN_TOKEN"},
		"a program that exits with another code":      {self: "exit 1", bad: true, says: "does not exit with 2"},
		"Codex, which cannot fail closed":             {codex: "{}", bad: true, says: "CANNOT FAIL CLOSED"},
		"Gemini CLI, which asks no hook with --acp":   {gemini: true, bad: true, says: "hooksConfig in the settings of a project"},
		"servers of MCP that an agent may name":       {managed: change(`"disable`, `"allowedMcpServers":[],"disable`), says: "does not say which MCP servers"},
		"Codex with a hook that breaks all hooks":     {codex: `{"hooks":[{"type": "http"}]}`, bad: true, says: "no hook in it is called"},
	} {
		t.Run(name, func(t *testing.T) {
			url, bot := guarded(t), filepath.Join(t.TempDir(), "bot")
			spaced := filepath.Join(t.TempDir(), "with space", "bot")
			require.NoError(t, os.Mkdir(filepath.Dir(spaced), 0o700))
			for _, program := range []string{bot, spaced} {
				require.NoError(t, os.WriteFile(program, nil, 0o700))
			}
			if c.pwsh {
				path := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(path, "pwsh"), nil, 0o700))
				t.Setenv("PATH", path)
			}
			or := func(v, other string) string {
				if v == "" {
					return other
				}
				return strings.TrimPrefix(strings.NewReplacer("URL", url, "BOT", bot, "SPACED", spaced).Replace(v), "-")
			}
			dir := tree(t, map[string]string{"project/.git/HEAD": ""})
			for path, content := range map[string]string{
				"managed.json": or(c.managed, or(fine, "")), "home/.claude/settings.json": or(c.user, ""),
				"managed-settings.d/10-more.json": or(c.more, ""), "project/.claude/settings.local.json": or(c.project, ""), "home/.codex/hooks.json": c.codex,
			} {
				if content != "" {
					require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o750))
					require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600))
				}
			}
			checks := hook.Doctor(t.Context(), hook.Config{URL: url, Token: or(c.token, "good"), Now: time.Now}, hook.Place{
				Managed: filepath.Join(dir, "managed.json"), Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project"),
				Claude: script(t, "echo '"+or(c.version, "2.1.330 (Claude Code)")+"'"), Codex: c.codex != "", Gemini: c.gemini, Self: script(t, or(c.self, "exit 2")),
			})
			var out bytes.Buffer
			good, err := hook.Print(&out, checks)
			require.NoError(t, err)
			require.Equal(t, !c.bad, good, out.String())
			require.Contains(t, out.String(), c.says)
		})
	}
}

func TestTheDoctorKnowsSettingsThatLeaveOutTheServersOfAnAgent(t *testing.T) {
	for settings, named := range map[string]bool{
		`{}`:                                  false,
		`{"allowedMcpServers":[]}`:            false, // those of the user are added
		`{"allowManagedMcpServersOnly":true}`: false,
		`{"allowManagedMcpServersOnly":true,"allowedMcpServers":null}`:                    false,
		`{"allowManagedMcpServersOnly":true,"allowedMcpServers":[]}`:                      true,
		`{"allowManagedMcpServersOnly":true,"allowedMcpServers":[{"serverName":"desk"}]}`: true,
		`{"strictPluginOnlyCustomization":["agents","mcp"]}`:                              true,
		`{"strictPluginOnlyCustomization":true}`:                                          true,
		`{"strictPluginOnlyCustomization":["hooks"]}`:                                     false,
	} {
		path := filepath.Join(t.TempDir(), "managed.json")
		require.NoError(t, os.WriteFile(path, []byte(settings), 0o600))
		var out bytes.Buffer
		_, err := hook.Print(&out, hook.Doctor(t.Context(), hook.Config{URL: guarded(t), Token: "good", Now: time.Now}, hook.Place{Managed: path, Self: script(t, "exit 2")}))
		require.NoError(t, err)
		require.Equal(t, !named, strings.Contains(out.String(), "does not say which MCP servers"), settings)
	}
}

func TestTheSettingsThatAreWrittenSatisfyTheDoctor(t *testing.T) {
	url, dir := guarded(t), t.TempDir()
	p := hook.Place{Managed: filepath.Join(dir, "etc", "managed.json"), Home: dir, Project: dir, Self: script(t, "exit 2")}
	path, err := hook.Write(url, p)
	require.NoError(t, err)
	require.Equal(t, p.Managed, path)
	var out bytes.Buffer
	good, err := hook.Print(&out, hook.Doctor(t.Context(), hook.Config{URL: url, Token: "good", Now: time.Now}, p))
	require.NoError(t, err)
	require.True(t, good, out.String())
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "good", "the token stays in the environment")
	require.NotContains(t, out.String(), "is not true", "they have what takes nothing from people")
	_, err = hook.Write(url, p)
	require.ErrorContains(t, err, "is not overwritten")

	p.Managed = filepath.Join(dir, "etc", "managed.json", "below") // where nothing can be written
	path, err = hook.Write(url, p)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, ".claude", "settings.json"), path)
}

func TestTheDoctorReadsTheSettingsOfTheUserWhereClaudeCodeDoes(t *testing.T) {
	url, dir := guarded(t), t.TempDir()
	nowhere := filepath.Join(dir, "managed.json", "below")
	require.NoError(t, os.WriteFile(filepath.Dir(nowhere), nil, 0o600))
	p := hook.Place{Managed: nowhere, Home: dir, Project: dir, Self: script(t, "exit 2")}
	_, err := hook.Write(url, p)
	require.NoError(t, err)
	p.Managed = filepath.Join(dir, "none")
	for config, want := range map[string]bool{"": true, filepath.Join(dir, "else"): false} {
		p.Config, p.Project = config, t.TempDir()
		good, err := hook.Print(new(bytes.Buffer), hook.Doctor(t.Context(), hook.Config{URL: url, Token: "good", Now: time.Now}, p))
		require.NoError(t, err)
		require.Equal(t, want, good)
	}
}
