package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/regular"
)

// ManagedPath is the file of the settings of Claude Code that its agent cannot
// change, unless it runs as root.
func ManagedPath() string {
	switch runtime.GOOS {
	case "darwin":
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	case "windows":
		return `C:\Program Files\ClaudeCode\managed-settings.json`
	}
	return "/etc/claude-code/managed-settings.json"
}

// clientTimeout is how long Claude Code is told to wait for a hook, and waits
// without a setting.
const clientTimeout = 600

// margin is how much longer than the hold Claude Code has to wait at least: the
// answer leaves within it, here and at /v1/hooks/.
const margin = 15 * time.Second

// maxSettings is how many bytes a settings file may have. Claude Code has no limit, and
// lists of permissions grow.
const maxSettings = 16 << 20

// A setting is what of a settings file matters here.
type setting struct {
	ManagedOnly bool `json:"allowManagedHooksOnly,omitempty"`
	NoShell     bool `json:"disableSkillShellExecution,omitempty"`

	ManagedServers bool            `json:"allowManagedMcpServersOnly,omitempty"`
	Servers        json.RawMessage `json:"allowedMcpServers,omitempty"`
	PluginOnly     any             `json:"strictPluginOnlyCustomization,omitempty"` // true, or a list such as ["mcp"]

	Disabled    bool                     `json:"disableAllHooks,omitempty"`
	Hooks       map[string][]hookMatcher `json:"hooks,omitempty"`
	Env         map[string]any           `json:"env,omitempty"`
	Permissions struct {
		Mode string `json:"defaultMode"`
	} `json:"permissions,omitzero"`
}

type hookMatcher struct {
	Matcher string      `json:"matcher"`
	Hooks   []hookEntry `json:"hooks"`
}

type hookEntry struct {
	Type      string            `json:"type"`
	URL       string            `json:"url,omitempty"`
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	If        string            `json:"if,omitempty"`
	Async     bool              `json:"async,omitempty"`
	Rewakes   bool              `json:"asyncRewake,omitempty"` // implies async, unless the session is one of claude -p
	Shell     string            `json:"shell,omitempty"`
	Timeout   *float64          `json:"timeout,omitempty"`
	OnFailure string            `json:"onFailure,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	AllowEnv  []string          `json:"allowedEnvVars,omitempty"`
	Prompt    string            `json:"prompt,omitempty"`
	Server    string            `json:"server,omitempty"`
	Tool      string            `json:"tool,omitempty"`
}

// Settings are the settings of Claude Code that gate every tool through the hook
// over HTTP. The token stays in the environment.
func Settings(base string, managed bool) ([]byte, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return nil, errors.New("the URL of Countersign is missing or is no URL")
	}
	u = u.JoinPath("/v1/hooks/claude-code")
	u.RawQuery = "hold=9m"
	entry := hookEntry{
		Type: "http", URL: u.String(), Timeout: new(float64(clientTimeout)), OnFailure: "block",
		Headers: map[string]string{"Authorization": "Bearer $COUNTERSIGN_TOKEN"}, AllowEnv: []string{"COUNTERSIGN_TOKEN"},
	}
	s := setting{ManagedOnly: managed, NoShell: true, Hooks: map[string][]hookMatcher{}}
	s.Hooks["PreToolUse"] = []hookMatcher{{"*", []hookEntry{entry}}}
	entry.Timeout, entry.OnFailure = new(30.0), "" // these decide nothing
	for _, event := range []string{"PostToolUse", "PostToolUseFailure", "PermissionDenied", "SessionEnd"} {
		s.Hooks[event] = []hookMatcher{{"*", []hookEntry{entry}}}
	}
	raw, err := json.MarshalIndent(s, "", "  ")
	return append(raw, '\n'), err
}

// Write writes the settings where none are yet, and returns where. It prefers
// managed settings; an agent can edit those of its user.
func Write(base string, p Place) (string, error) {
	var last error
	for _, to := range []struct {
		path    string
		managed bool
	}{{p.Managed, true}, {p.user(), false}} {
		raw, err := Settings(base, to.managed)
		if err != nil {
			return "", err
		}
		err = create(to.path, raw)
		if err == nil {
			return to.path, nil
		}
		if errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("%s is there already and is not overwritten: add what `bot hook doctor --print` prints", to.path)
		}
		last = err
	}
	return "", fmt.Errorf("write the settings: %w", last)
}

func create(path string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // all users of the machine read it
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // all users of the machine read it, and no secret is in it
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	return errors.Join(err, f.Close())
}

// load reads a settings file. Nothing is fine; what cannot be read is not.
func load(path string) (setting, bool, error) {
	var s setting
	there, err := s.add(path)
	return s, there, err
}

// loadManaged reads managed settings and the files in the folder beside them, which Claude
// Code adds in the order of their names.
func loadManaged(path string) (setting, bool, error) {
	s, there, err := load(path)
	more, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "managed-settings.d", "*.json"))
	for _, file := range more {
		if err == nil && !strings.HasPrefix(filepath.Base(file), ".") {
			there = true
			if _, err = s.add(file); err != nil {
				err = fmt.Errorf("%s %w", file, err)
			}
		}
	}
	return s, there, err
}

// add reads a settings file on top of what was read: its values count, and its hooks are
// added.
func (s *setting) add(path string) (bool, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	raw, err := regular.Read(path, maxSettings+1)
	if err != nil || len(raw) > maxSettings {
		return true, errors.New("cannot be read")
	}
	var doc any
	if json.Unmarshal(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), &doc) == nil {
		raw, _ = json.Marshal(exact(doc))
	}
	all := s.Hooks
	s.Hooks = nil
	if json.Unmarshal(raw, s) != nil {
		return true, errors.New("is not JSON as Claude Code writes it")
	}
	if all == nil {
		all = map[string][]hookMatcher{}
	}
	for event, hooks := range s.Hooks {
		all[event] = append(all[event], hooks...)
	}
	s.Hooks = all
	return true, nil
}

// exact removes the keys in letters of the wrong case, which Claude Code ignores and
// encoding/json takes.
func exact(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for key := range v {
			if slices.ContainsFunc(settingKeys, func(known string) bool { return known != key && strings.EqualFold(known, key) }) {
				delete(v, key)
				continue
			}
			v[key] = exact(v[key])
		}
	}
	return v
}

var settingKeys = []string{
	"allowManagedHooksOnly", "disableSkillShellExecution", "allowManagedMcpServersOnly", "allowedMcpServers", "strictPluginOnlyCustomization", "disableAllHooks", "hooks", "env", "permissions", "defaultMode", "matcher", "type", "url", "command", "args",
	"if", "async", "asyncRewake", "shell", "timeout", "onFailure", "headers", "allowedEnvVars", "prompt", "server", "tool",
}
