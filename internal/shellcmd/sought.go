package shellcmd

import (
	"slices"
	"strings"
	"unicode"
)

// Sought are programs, each with the words that have to follow it somewhere, that
// must be noticed: {"git", "push"} is found in git -C /a push.
type Sought [][]string

// Found is whether a program runs one of what is sought.
type Found string

// What is found. The zero Found is none of them.
const (
	Absent Found = "absent"
	May    Found = "may"  // it may run one of them: that is not known
	Runs   Found = "runs" // it does
)

// In returns what the commands are known to run. A program is known by the last
// name of its path, whatever the case of its letters. A command that names one
// among its arguments may run it, unless it is of a program that takes names as
// text, such as echo. What a script, a makefile or an alias runs cannot be known,
// and is not looked for.
func (s Sought) In(commands []Command) Found {
	found := Absent
	for _, c := range commands {
		launches := launcher(c)
		for _, of := range s {
			at := 0
			if launches {
				at = slices.IndexFunc(c.Argv, func(w string) bool { return baseName(w) == baseName(of[0]) })
			} else if baseName(c.Argv[0]) != baseName(of[0]) {
				at = -1
			}
			if at >= 0 && inOrder(of[1:], c.Argv[at+1:]) {
				return Runs
			}
			if !takesText(c) && inOrder(of, named(c.Argv[1:])) {
				found = May
			}
		}
		if launches {
			found = May
		}
	}
	return found
}

// Names reports whether a form could permit what is sought.
func (s Sought) Names(f Form) bool {
	return len(f.Run) > 0 && s.In([]Command{{Argv: f.Run}}) == Runs
}

func inOrder(of, words []string) bool {
	for _, w := range of {
		i := slices.Index(words, w)
		if i < 0 {
			return false
		}
		words = words[i+1:]
	}
	return true
}

// named are the names in the arguments, also those inside of a text, in the form
// of [baseName].
func named(words []string) []string {
	var all []string
	for _, w := range words {
		for name := range strings.FieldsFuncSeq(w, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._+-", r)
		}) {
			all = append(all, baseName(name))
		}
	}
	return all
}

// takesText reports whether nothing runs that a command names among its arguments.
func takesText(c Command) bool {
	name := baseName(c.Argv[0])
	return texts[name] && !slices.ContainsFunc(c.Argv[1:], func(w string) bool {
		return slices.Contains(escapes[name], w) || slices.Contains(running[name], w) || strings.Contains(w, "ext::")
	})
}

func baseName(program string) string {
	name := strings.ToLower(program[strings.LastIndex(program, "/")+1:])
	return strings.TrimSuffix(name, ".exe")
}
