package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A Level is how a check of [Doctor] ended.
type Level string

// The levels. Only Bad makes the doctor fail.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Bad  Level = "BAD"
)

// A Check is one row of what [Doctor] found.
type Check struct {
	Level Level
	What  string
	Found string
}

// Place is where the doctor looks.
type Place struct {
	Managed string // the file of managed settings
	Home    string
	Config  string // the folder of Claude Code's settings of the user, if it is not .claude in Home
	Project string
	Claude  string // the program of Claude Code; empty for none
	Codex   bool   // Codex is installed
	Gemini  bool   // Gemini CLI is installed
	Copilot string // the folder of the policy hooks of Copilot CLI; empty if it is not installed
	Owner   int    // who has to own the files in it; 0 is root
	Self    string // this program
}

// user is the file of the user's settings.
func (p Place) user() string {
	return filepath.Join(cmp.Or(p.Config, filepath.Join(p.Home, ".claude")), "settings.json")
}

// Doctor checks that a tool of Claude Code cannot run without an answer. It asks
// for nothing: its calls to the API are refused before a request is made.
func Doctor(ctx context.Context, c Config, p Place) []Check {
	all := []Check{version(ctx, p, byCommand(p, c))}
	all = append(all, settings(p, c)...)
	all = append(all, refusals(ctx, c)...)
	all = append(all, itself(ctx, p))
	if p.Codex {
		all = append(all, codex(p)...)
	}
	if p.Copilot != "" {
		all = append(all, copilot(p, c.URL)...)
	}
	if p.Gemini {
		all = append(all, Check{Bad, "Gemini CLI hooks", "CANNOT FAIL CLOSED: with --acp, as editors start it, no hook is asked about what it does, hooksConfig in the settings of a project can switch hooks off, and after a time-out or a kill of a hook the tool runs. Do not count on them as a gate"})
	}
	return all
}

// Print writes the checks as a table, and reports whether none is bad.
func Print(out io.Writer, all []Check) (bool, error) {
	good := true
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range all {
		good = good && c.Level != Bad
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", c.Level, c.What, line(c.Found)); err != nil {
			return false, err
		}
	}
	return good, w.Flush()
}

// line is a text that a terminal shows as one line.
func line(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r <= 0x9f {
			return ' '
		}
		return r
	}, text)
}

var versions = regexp.MustCompile(`^(\d{1,6})\.(\d{1,6})\.(\d{1,6})`)

// The first version that is known to understand onFailure. 2.1.197 ignores it and
// runs the tool.
var understands = [3]int{2, 1, 300}

// version says whether Claude Code understands the setting that a failure blocks.
// A command hook does without it.
func version(ctx context.Context, p Place, command bool) Check {
	const what = "Claude Code"
	if p.Claude == "" {
		return Check{Warn, what, "is not installed here, so its version is not checked"}
	}
	ctx, cancel := context.WithTimeout(ctx, handling)
	defer cancel()
	out, err := exec.CommandContext(ctx, p.Claude, "--version").Output() //nolint:gosec // the person at the terminal names it
	m := versions.FindStringSubmatch(string(out))
	if err != nil || m == nil {
		return Check{Bad, what, "does not say its version"}
	}
	for i, least := range understands {
		if n, _ := strconv.Atoi(m[i+1]); n != least {
			if n < least && command {
				return Check{Warn, what, m[0] + ` ignores onFailure: "block"; the command hook does without it, unless it is killed`}
			}
			if n < least {
				return Check{Bad, what, m[0] + ` ignores onFailure: "block": with a hook over HTTP, tools run whenever Countersign is away. Update to 2.1.300 or newer, or use the command hook, whose failures exit with 2`}
			}
			break
		}
	}
	return Check{OK, what, m[0] + ` understands onFailure: "block"`}
}

// refusals calls the hook over HTTP twice: without a token, and with it but
// without a call. Both must be denied, and no request is made.
func refusals(ctx context.Context, c Config) []Check {
	const what = "hook over HTTP"
	a, err := newAPI(c)
	if err != nil {
		return []Check{{Bad, what, err.Error()}}
	}
	anonymous := *a
	anonymous.token = ""
	if reason, err := anonymous.dry(ctx); err != nil {
		return []Check{{Bad, what, "a call without a token: " + err.Error()}}
	} else if strings.Contains(reason, "names no session") {
		return []Check{{Bad, what, "a call without a token is let in"}}
	}
	reason, err := a.dry(ctx)
	switch {
	case err != nil:
		return []Check{{Bad, what, err.Error()}}
	case !strings.Contains(reason, "names no session"):
		return []Check{{Bad, what, "the agent is not let in: " + reason}}
	}
	return []Check{
		{OK, what, "refuses a call without a token"},
		{OK, what, "knows the token, and refuses a call that names no session"},
	}
}

// dry calls the hook with a question that is never asked, and returns why it was
// denied.
func (a *api) dry(ctx context.Context) (string, error) {
	var doc struct {
		Output struct {
			Event    string `json:"hookEventName"`
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	err := a.do(ctx, handling, http.MethodPost, "/v1/hooks/claude-code", nil, map[string]string{"hook_event_name": "PreToolUse"}, &doc)
	if err == nil && (doc.Output.Event != "PreToolUse" || doc.Output.Decision != "deny") {
		err = errors.New("the answer is no denial")
	}
	return doc.Output.Reason, err
}

// itself runs the command hook without a question: it must exit with 2.
func itself(ctx context.Context, p Place) Check {
	const what = "command hook"
	ctx, cancel := context.WithTimeout(ctx, handling)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Self, "hook", "ask") //nolint:gosec // this program
	cmd.Env = []string{}
	cmd.WaitDelay = time.Second
	if _ = cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 2 {
		return Check{Bad, what, "does not exit with 2 when it fails"}
	}
	return Check{OK, what, "exits with 2 when it fails"}
}

// codex says loudly what no setting changes.
func codex(p Place) []Check {
	all := []Check{{Bad, "Codex hooks", "CANNOT FAIL CLOSED: a crash, a time-out or any exit code but 2 runs the tool, and no setting changes that. A hook of the user or the project is not called before its person has trusted it, and nothing says so; one in /etc/codex/requirements.toml is. None is asked about what is typed into a program that runs, unless features.unified_exec_tty is false. Do not count on them as a gate"}}
	raw := small(p.Home + "/.codex/hooks.json")
	var doc any
	if json.Unmarshal(raw, &doc) == nil && strings.Contains(strings.ReplaceAll(string(raw), " ", ""), `"type":"http"`) {
		all = append(all, Check{Bad, "Codex hooks.json", `has a hook of type "http", which makes the whole file unreadable to Codex: no hook in it is called`})
	}
	return all
}
