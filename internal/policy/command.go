package policy

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/shellcmd"
)

// A command is what a rule says of a shell command that a call runs. It says
// either of what the whole command has to consist, or what it must not run
// unnoticed. Whatever is not known counts against the call: it does not match
// the one, and cannot be judged by the other.
type command struct {
	argument  string // the argument that holds the command
	cwd       string // the argument that holds the directory in which it runs, see [command.directories]
	others    []string
	permitted shellcmd.Permitted
	sought    shellcmd.Sought
	written   string // the same for two that say the same
}

// The names of arguments where a rule does not say them.
const (
	argCommand = "command"
	argCwd     = "cwd"
)

// harmless are the arguments that a call may have besides its command, because they do
// not change what runs.
var harmless = []string{"description", "timeout"}

// A shellCall is the arguments of a call that runs a command.
type shellCall struct {
	args  map[string]json.RawMessage
	wrong string // why the arguments cannot be read

	programs map[string]program // by the name of the argument
}

type program struct {
	commands []shellcmd.Command
	wrong    string // why they are not known
}

// shell reads the arguments once for all rules.
func (f *facts) shell() *shellCall {
	if f.shellCall == nil {
		s := &shellCall{programs: map[string]program{}}
		if raw := f.q.Call.Args; len(raw) > 0 && (approvals.CheckArgs(raw) != nil || json.Unmarshal(raw, &s.args) != nil) {
			s.wrong = errArgs.Error()
		}
		f.shellCall = s
	}
	return f.shellCall
}

// text is an argument that is a text.
func (s *shellCall) text(name string) (string, bool) {
	raw, ok := s.args[name]
	var t *string
	if !ok || json.Unmarshal(raw, &t) != nil || t == nil {
		return "", false
	}
	return *t, true
}

// recased reports whether another argument has this name but for the case.
func (s *shellCall) recased(name string) bool {
	for other := range s.args {
		if other != name && strings.EqualFold(other, name) {
			return true
		}
	}
	return false
}

// program reads the command of an argument.
func (s *shellCall) program(name string) program {
	if known, ok := s.programs[name]; ok {
		return known
	}
	var p program
	switch t, ok := s.text(name); {
	case s.wrong != "":
		p.wrong = s.wrong
	case !ok:
		p.wrong = "the argument " + name + " is missing, or is not text"
	default:
		var err error
		if p.commands, err = shellcmd.Read(t); err != nil {
			p.wrong = err.Error()
		}
	}
	s.programs[name] = p
	return p
}

// matches reports whether a rule with this command matches by it. Why not names
// programs and flags, and holds no value of an argument.
func (c *command) matches(f *facts) (ok bool, why string, err error) {
	s := f.shell()
	p := s.program(c.argument)
	switch {
	case len(c.sought) > 0 && s.recased(c.argument):
		return false, "", errRecased
	case len(c.sought) > 0:
		return c.finds(p)
	case p.wrong != "":
		return false, p.wrong, nil
	}
	for name := range s.args {
		if name != c.argument && name != c.cwd && !slices.Contains(c.others, name) && !slices.Contains(harmless, name) {
			return false, "the call has an argument that is not listed under other_args", nil
		}
	}
	for _, dir := range c.directories(f) {
		if why = c.permitted.Mismatch(p.commands, dir); why != "" {
			return false, why, nil
		}
	}
	return true, "", nil
}

// directories are where the command may run, each of which counts. A call of a
// remote agent runs where its agent says, and one that does not say it runs
// nowhere that is listed: its model could write any argument. If there is the
// argument too, the command may run in either.
func (c *command) directories(f *facts) (all []string) {
	if cwd := f.q.Place.Cwd; cwd != "" || slices.Contains(f.p.options.Remote, f.q.Agent) {
		all = append(all, cwd)
	}
	if _, written := f.shell().args[c.cwd]; written || len(all) == 0 {
		cwd, _ := f.shell().text(c.cwd)
		all = append(all, cwd)
	}
	return all
}

// finds returns an error if the command may run what is sought. People are then asked,
// with everything that the policy can ask for.
func (c *command) finds(p program) (ok bool, why string, err error) {
	if p.wrong != "" {
		return false, "", errCommand
	}
	switch c.sought.In(p.commands) {
	case shellcmd.Runs:
		return true, "", nil
	case shellcmd.Absent:
		return false, "it runs none of these programs", nil
	case shellcmd.May:
	}
	return false, "", errCommand
}

// denies reports whether the command notices all that a form of o permits.
func (c *command) denies(o *command) (run string, does bool) {
	for _, f := range o.permitted.Forms {
		if c.argument == o.argument && c.sought.Names(f) {
			return strings.Join(f.Run, " "), true
		}
	}
	return "", false
}

// asWideAs reports whether c matches what o matches: by what is written the same,
// or left out.
func (c *command) asWideAs(o *command) bool {
	return c == nil || o != nil && c.written == o.written
}
