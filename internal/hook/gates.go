package hook

import (
	"cmp"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// settings checks the files in which hooks are set.
func settings(p Place, c Config) []Check {
	var all []Check
	s, there, err := loadManaged(p.Managed)
	managed, gated := false, false
	asking := map[string]bool{}
	switch {
	case err != nil:
		all = append(all, Check{Bad, p.Managed, err.Error()})
	case !there:
		all = append(all, Check{Warn, p.Managed, "is missing: an agent can edit the settings of its user. Run this with --write as root"})
	default:
		gates, problems := s.gates(c)
		s.asking(c, asking)
		gated = gates
		managed = gates && s.ManagedOnly && !s.Disabled
		all = append(all, rows(p.Managed, gates, append(problems, s.unloadable()...))...)
		if !s.ManagedOnly {
			all = append(all, Check{Warn, p.Managed, "allowManagedHooksOnly is not true: other settings may add hooks that change what runs, and mods, which run programs without being asked about"})
		}
		if !s.NoShell {
			all = append(all, Check{Warn, p.Managed, "disableSkillShellExecution is not true: commands that are written in a skill run without being asked about when the skill is used"})
		}
		if !s.namesServers() {
			all = append(all, Check{Warn, p.Managed, "does not say which MCP servers there may be, with allowManagedMcpServersOnly and allowedMcpServers: an agent of the user can name one in its text, whose program starts without being asked about when the agent is called"})
		}
		if s.Disabled {
			all = append(all, Check{Bad, p.Managed, "disableAllHooks is true"})
		}
	}
	for _, path := range []string{
		p.user(), filepath.Join(p.Project, ".claude", "settings.json"), filepath.Join(p.Project, ".claude", "settings.local.json"),
	} {
		s, there, err := load(path)
		if err != nil && managed {
			all = append(all, Check{Warn, path, err.Error()})
		} else if err != nil {
			all = append(all, Check{Bad, path, err.Error() + ": Claude Code may read it all the same, and it may switch hooks off"})
		}
		if !there || err != nil {
			continue
		}
		gates, problems := s.gates(c)
		if gates && !gated && path != p.user() {
			all = append(all, Check{Warn, path, "asks in this project only: in another folder, tools run"})
		}
		gated = gated || gates
		if !managed {
			s.asking(c, asking)
		}
		if gates && !managed {
			all = append(all, rows(path, gates, problems)...)
		}
		all = append(all, s.weakens(path, managed)...)
	}
	if len(asking) > 1 {
		all = append(all, Check{Warn, "settings", fmt.Sprintf("%d different hooks ask about each call. An approval is for one of them, so no call runs that people approve. Keep one", len(asking))})
	}
	if !gated {
		all = append(all, Check{Bad, "settings", "no settings ask Countersign before a tool runs"})
	}
	return all
}

// byCommand reports whether the managed settings ask with a command. Its denial
// holds whatever another hook says.
func byCommand(p Place, c Config) bool {
	s, _, err := loadManaged(p.Managed)
	if err != nil {
		return false
	}
	for _, m := range s.Hooks["PreToolUse"] {
		for _, h := range m.Hooks {
			if ours, _ := h.ours(c); ours && h.Type == "command" {
				return true
			}
		}
	}
	return false
}

func rows(path string, gates bool, problems []string) []Check {
	var all []Check
	for _, p := range problems {
		all = append(all, Check{Bad, path, p})
	}
	switch {
	case !gates && len(problems) == 0:
		all = append(all, Check{Bad, path, "has no PreToolUse hook that asks Countersign"})
	case len(problems) == 0:
		all = append(all, Check{OK, path, "asks Countersign before every tool"})
	}
	return all
}

// gates reports whether a hook of the settings asks Countersign, and what lets a
// tool run past it.
func (s setting) gates(c Config) (bool, []string) {
	found := false
	var problems []string
	for _, m := range s.Hooks["PreToolUse"] {
		for _, h := range m.Hooks {
			ours, hold := h.ours(c)
			if !ours {
				continue
			}
			found = true
			if m.Matcher != "*" && m.Matcher != "" && m.Matcher != ".*" {
				problems = append(problems, fmt.Sprintf("the matcher %q leaves out other tools", m.Matcher))
			}
			if h.OnFailure != "block" && h.Type == "http" {
				problems = append(problems, `onFailure is not "block": tools run whenever Countersign is away`)
			}
			if h.If != "" {
				problems = append(problems, fmt.Sprintf("the condition %.100q leaves out other calls", h.If))
			}
			if h.Async || h.Rewakes {
				problems = append(problems, "async or asyncRewake is true: tools run without waiting for the answer")
			}
			if h.Type == "command" && h.OnFailure != "block" && h.missing() {
				problems = append(problems, `the program or the shell of the command is not here, and onFailure is not "block": every tool runs`)
			}
			limit := clientTimeout * time.Second
			if h.Timeout != nil {
				limit = time.Duration(*h.Timeout * float64(time.Second))
			}
			if limit <= hold+margin {
				problems = append(problems, fmt.Sprintf("the timeout of %s is not %s longer than the hold of %s: Claude Code gives up first", limit, margin, hold))
			}
			if why := misses(h.line(), h.words(), c.URL); h.Type == "command" && why != "" {
				problems = append(problems, why)
			}
			if strings.HasPrefix(h.URL, "http:") && strings.HasPrefix(c.URL, "https:") {
				problems = append(problems, "the URL begins with http://, so the token is sent in plain text")
			}
		}
	}
	return found, problems
}

// asking notes the hooks that ask Countersign. Claude Code calls equal ones once.
func (s setting) asking(c Config, all map[string]bool) {
	for _, m := range s.Hooks["PreToolUse"] {
		for _, h := range m.Hooks {
			if ours, _ := h.ours(c); ours {
				all[strings.Join(append([]string{h.Type, h.URL, h.Command}, h.Args...), "\x00")] = true
			}
		}
	}
}

// namesServers reports whether managed settings keep an agent of the user from bringing an
// MCP server of its own.
func (s setting) namesServers() bool {
	surfaces, some := s.PluginOnly.([]any)
	return s.ManagedServers && len(s.Servers) > 0 && string(s.Servers) != "null" ||
		s.PluginOnly == true || some && slices.Contains(surfaces, any("mcp"))
}

// missing reports whether the command certainly names no program. With args it is the
// program, and otherwise a line for the shell.
func (h hookEntry) missing() bool {
	if h.Args == nil && h.Shell == "powershell" && runtime.GOOS != "windows" {
		if _, err := exec.LookPath("pwsh"); err != nil {
			return true
		}
	}
	program := h.Command
	if h.Args == nil {
		words := strings.Fields(h.Command)
		if len(words) > 1 && (words[0] == "exec" || words[0] == "command") {
			words = words[1:]
		}
		if len(words) == 0 || strings.ContainsAny(words[0], "$~`'\"\\=") {
			return false
		}
		program = words[0]
	}
	if strings.ContainsAny(program, `/\`) && !filepath.IsAbs(program) {
		return false // the doctor is not where the agent works
	}
	_, err := exec.LookPath(program)
	return err != nil
}

// unloadable lists what has Claude Code ignore all hooks of managed settings: one of these
// events that it cannot load. With such settings of the user, it runs no tool.
func (s setting) unloadable() []string {
	var problems []string
	for _, event := range []string{"PreToolUse", "PermissionRequest"} {
		for _, m := range s.Hooks[event] {
			why := ""
			if m.Hooks == nil {
				why = "a matcher has no list of hooks"
			}
			for _, h := range m.Hooks {
				why = cmp.Or(why, h.unloadable())
			}
			if why != "" {
				problems = append(problems, fmt.Sprintf("has a hook of %s that cannot be loaded, so Claude Code ignores all of its hooks: %s", event, why))
			}
		}
	}
	return problems
}

// ours reports whether a hook asks Countersign, and how long it holds a call.
func (h hookEntry) ours(c Config) (bool, time.Duration) {
	switch h.Type {
	case "http":
		u, err := url.Parse(h.URL)
		base, err2 := url.Parse(c.URL)
		if err != nil || err2 != nil || u.Host != base.Host || !strings.HasSuffix(u.Path, "/v1/hooks/claude-code") {
			return false, 0
		}
		hold, err := time.ParseDuration(u.Query().Get("hold"))
		if err != nil {
			hold = forms[ClaudeCode].hold
		}
		return true, hold
	case "command":
		words := h.words()
		if !mentions(words) {
			return false, 0
		}
		return true, holdOf(ClaudeCode, words)
	}
	return false, 0
}

// line is the command for the shell, or nothing if no shell reads it.
func (h hookEntry) line() string {
	if h.Args != nil {
		return ""
	}
	return h.Command
}

// words are those of the command.
func (h hookEntry) words() []string {
	if h.Args != nil {
		return append([]string{h.Command}, h.Args...)
	}
	return strings.Fields(h.Command)
}

// holdOf returns how long a command for this kind of agent holds a call.
func holdOf(kind Kind, words []string) time.Duration {
	if d, err := time.ParseDuration(flagOf(words, "hold")); err == nil && d > 0 {
		return d
	}
	return forms[kind].hold
}

// flagOf is the value of a flag of a command, or nothing.
func flagOf(words []string, name string) string {
	found := ""
	for i, w := range words {
		flag, value, there := strings.Cut(w, "=")
		if flag != "-"+name && flag != "--"+name {
			continue
		}
		if !there && i+1 < len(words) {
			value = words[i+1]
		}
		found = strings.Trim(value, `"'`)
	}
	return found
}

// weakens lists what settings that an agent can edit do to the gate.
func (s setting) weakens(path string, managed bool) []Check {
	level := Bad
	if managed {
		level = Warn // managed settings win
	}
	var all []Check
	if s.Disabled {
		all = append(all, Check{level, path, "disableAllHooks is true"})
	}
	for name := range s.Env {
		if strings.HasPrefix(name, "COUNTERSIGN_") {
			all = append(all, Check{Warn, path, "sets " + name + ", which every agent here then uses"})
		}
	}
	others := 0
	for _, m := range s.Hooks["PreToolUse"] {
		for _, h := range m.Hooks {
			if h.URL == "" && !strings.Contains(h.Command, " hook") && !slices.Contains(h.Args, "hook") {
				others++
			}
		}
	}
	if others > 0 && !managed {
		all = append(all, Check{Warn, path, fmt.Sprintf("has %d other PreToolUse hooks, which may change what runs after it was approved", others)})
	}
	if s.Permissions.Mode == "bypassPermissions" {
		all = append(all, Check{Warn, path, "defaultMode is bypassPermissions: only hooks are left to stop a tool"})
	}
	return all
}

// unloadable says why Claude Code 2.1.332 does not load the hook, or nothing.
func (h hookEntry) unloadable() string {
	u, err := url.Parse(h.URL)
	complete, known := map[string]bool{
		"command": h.Command != "", "http": err == nil && u.Scheme != "", "prompt": h.Prompt != "", "agent": h.Prompt != "",
		"mcp_tool": h.Server != "" && h.Tool != "",
	}[h.Type]
	switch {
	case !known:
		return fmt.Sprintf("the type %.40q is not known", h.Type)
	case !complete:
		return "a hook of type " + h.Type + " does not say what it calls"
	case h.Timeout != nil && *h.Timeout <= 0:
		return fmt.Sprintf("the timeout %v is not more than 0", *h.Timeout)
	}
	return ""
}
