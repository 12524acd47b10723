package shellcmd

import (
	"slices"
	"strings"
)

// Sought are programs, each with the words that have to follow it somewhere, that
// must be noticed: {"git", "push"} is found in git -C /a push.
type Sought [][]string

// Found is whether a program runs one of what is sought.
type Found string

// What is found. The zero Found is none of them.
const (
	Absent Found = "absent"
	May    Found = "may"  // it runs other programs, and which ones is not known
	Runs   Found = "runs" // it does
)

// In returns what the commands are known to run. A program is known by the last
// name of its path, whatever the case of its letters. What a script, a makefile
// or an alias runs cannot be known, and is not looked for.
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

func baseName(program string) string {
	name := strings.ToLower(program[strings.LastIndex(program, "/")+1:])
	return strings.TrimSuffix(name, ".exe")
}
