package shellcmd

import (
	"regexp"
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

// In returns what the commands are known to run. A flag is known by its letters, or by a
// refspec of git push that means the same; a command with other flags, which may be those
// that are sought in other letters, may run it: rm -fr and rm -r --force for
// {"rm", "-rf"}. So may one with a shortened subcommand, of a program that takes such: npm
// pub for {"npm", "publish"}. A program is known by the last name of its path, whatever the
// case of its letters and the version at its end, and git-push is git push. A command that
// names one among its arguments, in any of these ways, may run it, unless it is of a program
// that takes names as text, such as echo. A command that gives a text to a shell, or to a
// language that can start programs, may run anything. What a script, a makefile or an alias
// runs cannot be known, and is not looked for.
func (s Sought) In(commands []Command) Found {
	found := Absent
	for _, c := range commands {
		c.Argv = append(undashed(c.Argv[:1]), c.Argv[1:]...)
		launches := launcher(c)
		var words, names []string
		if !takesText(c) {
			words, names = undashed(c.Argv[1:]), undashed(named(c.Argv[1:]))
		}
		for _, of := range s {
			by := Absent
			if launches || naming(of[0])(c.Argv[0]) {
				by = runs(of, c.Argv)
			}
			if by == Runs {
				return Runs
			}
			if by == May || runs(of, words) != Absent || runs(of, names) != Absent {
				found = May
			}
		}
		if launches {
			found = May
		}
	}
	return found
}

// runs says whether the words are those that are sought, from the first on that names the
// program.
func runs(of, words []string) Found {
	at := slices.IndexFunc(words, naming(of[0]))
	if at < 0 {
		return Absent
	}
	rest := implied(words[at], words[at+1:])
	switch {
	case inOrder(of[1:], rest):
		return Runs
	case rewritten(of[1:], rest), abbreviates[baseName(of[0])] && rewritten(of[1:], completed(rest, of[1:])):
		return May
	}
	return Absent
}

// Names reports whether a form could permit what is sought.
func (s Sought) Names(f Form) bool {
	return len(f.Run) > 0 && s.In([]Command{{Argv: f.Run}}) == Runs
}

// implied adds the flags that other words of a program stand for: git push origin +main
// forces, git push origin :main deletes, and git push --mirror does both.
func implied(program string, words []string) []string {
	push := slices.Index(words, "push")
	if baseName(program) != "git" || push < 0 {
		return words
	}
	all := slices.Clone(words)
	for _, w := range words[push+1:] {
		refspec, forced := strings.CutPrefix(w, "+")
		mirrors := w == "--mirror"
		if forced || mirrors {
			all = append(all, "--force")
		}
		if mirrors || len(refspec) > 1 && refspec[0] == ':' {
			all = append(all, "--delete")
		}
	}
	return all
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

// rewritten reports whether the words may be those that are sought, with the flags
// written in another way: in another order, apart or in one word, in short or long.
func rewritten(of, words []string) bool {
	var plain []string
	for _, w := range of {
		switch {
		case isSubcommand(w):
			plain = append(plain, w)
		case !slices.Contains(words, w) && !rewrites(w, words):
			return false
		}
	}
	return inOrder(plain, words)
}

// rewrites reports whether the flags among the words may be this one. By custom, a short
// flag is the first letter of the long one, and programs take the beginning of a long flag
// for it.
func rewrites(flag string, words []string) bool {
	has := func(letter string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			w = strings.ToLower(w)
			return strings.HasPrefix(w, "--"+letter) || strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, letter)
		})
	}
	name, long := strings.CutPrefix(strings.ToLower(flag), "--")
	if !long {
		return flag != "-" && !slices.ContainsFunc(strings.Split(strings.TrimPrefix(name, "-"), ""), func(letter string) bool { return !has(letter) })
	}
	return name != "" && slices.ContainsFunc(words, func(w string) bool {
		word, _, _ := strings.Cut(strings.ToLower(w), "=")
		rest, isLong := strings.CutPrefix(word, "--")
		return isLong && rest != "" && (strings.HasPrefix(name, rest) || strings.HasPrefix(rest, name)) ||
			!isLong && strings.HasPrefix(word, "-") && strings.Contains(word, name[:1])
	})
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
	for _, suffix := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// naming reports whether a word names a program, or a version of it: pip and pip3.12.
func naming(program string) func(word string) bool {
	name := baseName(program)
	plain := unversioned(name)
	return func(word string) bool {
		word = baseName(word)
		return word == name || plain != "" && strings.Contains(word, plain) && unversioned(word) == plain
	}
}

func unversioned(name string) string {
	return version.ReplaceAllString(build.ReplaceAllString(name, "$2"), "")
}

// build matches what says in a name for what, and how, a program was built:
// x86_64-linux-gnu-gcc-12, perl5.36-x86_64-linux-gnu, terraform_1.5.7_linux_amd64,
// python3.13t.
var (
	build   = regexp.MustCompile(`^[a-z0-9_]+-linux-[a-z0-9]+-|[-_]([a-z0-9_]+-linux|linux|darwin|windows)[-_][a-z0-9_]+$|-(?:static|dbg|nogil|preview)$|(\.[0-9]+)(?:d|m|t|td|dm)$`)
	version = regexp.MustCompile(`([-_.]v[0-9])?[-_.0-9]*$`)
)

// undashed writes git-push, which git has in a directory of its own, as git push.
func undashed(words []string) []string {
	all := make([]string, 0, len(words)+1)
	for _, w := range words {
		if name, is := strings.CutPrefix(baseName(w), "git-"); is && name != "" {
			all = append(all, "git", name)
			continue
		}
		all = append(all, w)
	}
	return all
}

// abbreviates are programs that take the beginning of a subcommand for it.
var abbreviates = setOf(`npm gem bundle gradle gradlew hg ip nmcli`)

// completed writes words out that are the beginning of one of those that are sought.
func completed(words, of []string) []string {
	all := slices.Clone(words)
	for i, w := range words {
		if at := slices.IndexFunc(of, func(s string) bool { return strings.HasPrefix(s, w) }); isSubcommand(w) && w != "" && at >= 0 {
			all[i] = of[at]
		}
	}
	return all
}
