package shellcmd

import "slices"

// Permitted are the forms of which a whole program has to consist.
type Permitted struct {
	Forms []Form
	// Directories are those in which, or below which, the program may run; none
	// means that it does not matter. With them, cd to one of them is permitted
	// too, by its absolute path.
	Directories []string
}

// Mismatch says why a program that runs in cwd is not permitted, or nothing if it
// is. The words hold no value of an argument.
func (p Permitted) Mismatch(commands []Command, cwd string) string {
	if len(p.Directories) > 0 && !p.isIn(cwd) {
		return "it runs in a directory that is not listed"
	}
	for i, c := range commands {
		if c.Argv[0] == "cd" && len(p.Directories) > 0 {
			piped := c.Join == Pipe || i+1 < len(commands) && commands[i+1].Join == Pipe
			if len(c.Argv) != 2 || piped || !p.isIn(c.Argv[1]) {
				return "cd is permitted only to the absolute path of a directory that is listed under cwd"
			}
			continue
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
