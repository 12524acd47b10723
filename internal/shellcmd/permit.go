package shellcmd

import (
	"slices"
	"strings"
)

// Permitted are the forms of which a whole program has to consist.
type Permitted struct {
	Forms []Form
	// Directories are those in which, or below which, the program may run; none
	// means that it does not matter. With them, cd to one of them is permitted
	// too, by its absolute path. A program with a relative path, such as ./check,
	// is permitted in one of them only and not below: it is another one there.
	Directories []string
}

// Mismatch says why a program that runs in cwd is not permitted, or nothing if it
// is. The words hold no value of an argument.
func (p Permitted) Mismatch(commands []Command, cwd string) string {
	if len(p.Directories) > 0 && !p.isIn(cwd) {
		return "it runs in a directory that is not listed"
	}
	at := p.isOne(cwd) // also if a cd fails
	for i, c := range commands {
		if c.Argv[0] == "cd" && len(p.Directories) > 0 {
			piped := c.Join == Pipe || i+1 < len(commands) && commands[i+1].Join == Pipe
			if len(c.Argv) != 2 || piped || !p.isIn(c.Argv[1]) {
				return "cd is permitted only to the absolute path of a directory that is listed under cwd"
			}
			at = at && p.isOne(c.Argv[1])
			continue
		}
		if IsRelative(c.Argv[0]) && (len(p.Directories) == 0 || !at) {
			return "a program with a relative path runs only in a directory that is listed, and not below it"
		}
		if why := p.mismatch(c); why != "" {
			return why
		}
	}
	if len(commands) == 0 {
		return "there is no command"
	}
	return ""
}

func (p Permitted) isIn(dir string) bool {
	return len(dir) > 0 && dir[0] == '/' && slices.ContainsFunc(p.Directories, func(of string) bool { return under(of, dir) })
}

// isOne reports whether a directory is one of the list, and not just below one.
func (p Permitted) isOne(dir string) bool {
	return slices.ContainsFunc(p.Directories, func(of string) bool {
		return under(of, dir) && strings.Count(strings.TrimSuffix(of, "/"), "/") == strings.Count(strings.TrimSuffix(dir, "/"), "/")
	})
}

// IsRelative reports whether a program is named by a path that depends on the
// directory in which it runs.
func IsRelative(program string) bool {
	return strings.Contains(program, "/") && !strings.HasPrefix(program, "/")
}

// mismatch says what the form says that fits best.
func (p Permitted) mismatch(c Command) string {
	if why := Forbidden(c.Argv[0]); why != "" {
		return c.Argv[0] + " is never permitted: " + why
	}
	why, most := "no form is for "+programName(c.Argv[0]), 0
	for _, f := range p.Forms {
		s, fits := f.mismatch(c)
		if s == "" {
			return ""
		}
		if fits > most {
			why, most = s, fits
		}
	}
	return why
}
