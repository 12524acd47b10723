package hook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// CopilotPolicy is the folder of the hooks of Copilot CLI that no repository and no person
// can switch off.
func CopilotPolicy() string {
	if runtime.GOOS == "windows" {
		return `C:\ProgramData\GitHub\Copilot\policy.d`
	}
	return "/etc/github-copilot/policy.d"
}

// copilotSeconds is how long Copilot CLI waits for a hook without a setting.
const copilotSeconds = 30

// A copilotFile is a file with hooks of Copilot CLI. One that has another version is ignored.
type copilotFile struct {
	Version int                        `json:"version"`
	Hooks   map[string]json.RawMessage `json:"hooks"`
}

// A copilotHook is a hook of Copilot CLI.
type copilotHook struct {
	Type       string   `json:"type"` // command, also without one
	Matcher    string   `json:"matcher"`
	Bash       string   `json:"bash"`
	Powershell string   `json:"powershell"`
	Command    string   `json:"command"` // on a system whose shell has none
	Exec       string   `json:"exec"`    // without a shell
	Args       []string `json:"args"`
	Seconds    *float64 `json:"timeoutSec"`
	Timeout    *float64 `json:"timeout"` // without timeoutSec
}

// copilot says whether a hook of Copilot CLI asks that no repository can switch off. One is
// enough: each hook of each file is called.
func copilot(p Place, base string) []Check {
	const what = "Copilot CLI hooks"
	var bad []Check
	files, _ := filepath.Glob(filepath.Join(p.Copilot, "*.json"))
	for _, file := range files {
		var doc copilotFile
		var hooks []copilotHook
		if json.Unmarshal(small(file), &doc) != nil || json.Unmarshal(doc.Hooks["PreToolUse"], &hooks) != nil {
			continue
		}
		for _, h := range hooks {
			words := h.words()
			if !mentions(words) || cmp.Or(h.Type, "command") != "command" {
				continue
			}
			why := cmp.Or(ignored(file, p.Owner), doc.opens(), h.opens(words, base))
			if why == "" {
				return []Check{{Warn, what, file + " asks Countersign; after a time-out of the hook the tool runs"}}
			}
			bad = append(bad, Check{Bad, what, file + ": " + why})
		}
	}
	if len(bad) == 0 {
		bad = []Check{{Bad, what, "no file in " + p.Copilot + " asks Countersign: disableAllHooks in a repository that its person trusts switches off the hooks of the user, nothing says so, and tools run"}}
	}
	return bad
}

// ignored says why Copilot CLI does not read a file of its policy, or nothing. Who may write
// it is not checked on Windows.
func ignored(file string, owner int) string {
	about, err := os.Stat(file)
	switch {
	case err != nil:
		return "it cannot be read"
	case runtime.GOOS == "windows":
	case about.Mode().Perm()&0o022 != 0:
		return "it can be written by others than its owner, so Copilot CLI ignores it, and tools run"
	case !ownedBy(about, owner):
		return "root does not own it, so Copilot CLI ignores it, and tools run"
	}
	return ""
}

// opens says why Copilot CLI ignores a file, or nothing.
func (f copilotFile) opens() string {
	if f.Version != 1 {
		return `its "version" is not 1, so Copilot CLI ignores it, and tools run`
	}
	return ""
}

// words are the command on this system, or nothing if it has none.
func (h copilotHook) words() []string {
	if h.Exec != "" {
		return append([]string{h.Exec}, h.Args...)
	}
	return append(strings.Fields(h.line()), h.Args...)
}

// line is the command for the shell of this system, or nothing if no shell reads it.
func (h copilotHook) line() string {
	if h.Exec != "" {
		return ""
	}
	if runtime.GOOS == "windows" {
		return strings.TrimPrefix(cmp.Or(h.Powershell, h.Command), "& ") // which calls what is in quotes
	}
	return cmp.Or(h.Bash, h.Command)
}

// opens says why a tool runs past a hook that asks the Countersign at base, or nothing.
func (h copilotHook) opens(words []string, base string) string {
	kind := Kind(cmp.Or(flagOf(words, "kind"), string(ClaudeCode)))
	limit := time.Duration(*cmp.Or(h.Seconds, h.Timeout, new(float64(copilotSeconds))) * float64(time.Second))
	hold := holdOf(kind, words)
	why := misses(h.line(), words, base)
	switch {
	case h.Matcher != "" && h.Matcher != "*" && h.Matcher != ".*":
		return fmt.Sprintf("the matcher %.100q leaves out other tools", h.Matcher)
	case why != "":
		return why
	case kind != VSCode:
		return fmt.Sprintf("it asks as the kind %.40q, and not as %q, so calls of Copilot CLI are not asked about as they are", kind, VSCode)
	case limit < hold+forms[kind].grace+leaving:
		return fmt.Sprintf("the time-out of %s is too short for a hold of %s: Copilot CLI gives up first, and the tool runs", limit, hold)
	}
	return ""
}
