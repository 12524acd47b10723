package hook

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

var (
	// toErrors sends standard error to a file, which changes nothing that an agent reads.
	toErrors   = regexp.MustCompile(`(^|\s)2>>?\s*[^\s"'&;|<>()$` + "`" + `]+`)
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

// mentions reports whether a command seems to be the one of the bot that asks Countersign.
// Then [misses] says whether it is.
func mentions(words []string) bool {
	at := slices.Index(words, "hook")
	return at >= 1 && strings.HasPrefix(filepath.Base(strings.Trim(words[at-1], `"'({`)), "bot") && slices.Contains(words[at:], "ask")
}

// misses says why a command that mentions [Run] is not certainly it, for agents that ask
// the Countersign at base, or returns nothing. The line is empty if no shell reads it.
func misses(line string, words []string, base string) string {
	if line != "" && strings.ContainsAny(toErrors.ReplaceAllString(line, ""), "|&;\n<>()`") {
		return "the command is more than one program, or sends its output elsewhere, so the exit code or the answer that stops a tool may be lost"
	}
	asked := ""
	for line != "" && len(words) > 0 && (assignment.MatchString(words[0]) || slices.Contains([]string{"exec", "command", "env"}, words[0])) {
		if value, ok := strings.CutPrefix(words[0], "COUNTERSIGN_URL="); ok {
			asked = value
		}
		words = words[1:]
	}
	// A path may have spaces, if it is in quotes.
	at := slices.Index(words, "hook")
	if path := strings.Join(words[:max(at, 0)], " "); at < 1 || at > 1 && !isQuoted(path) {
		return "the command begins with another program, whose exit code is what the agent gets"
	}
	flags := words[at+1:]
	switch {
	case len(flags) > 0 && flags[0] != "ask" && !strings.HasPrefix(flags[0], "-"):
		return fmt.Sprintf("the command is bot hook %.40s, which is not the one that asks", flags[0])
	case slices.ContainsFunc(flags, func(f string) bool { return slices.Contains([]string{"-h", "--h", "-help", "--help"}, f) }):
		return "the command prints its help and exits with 0, so every tool runs"
	}
	asked = strings.Trim(cmp.Or(flagOf(flags, "url"), asked), `"'`)
	if strings.Contains(asked, "$") && line != "" { // only the shell of the agent knows it
		return ""
	}
	to, err := url.Parse(asked)
	from, err2 := url.Parse(base)
	if asked != "" && (err != nil || err2 != nil || to.Host != from.Host) {
		return fmt.Sprintf("the command asks %.100s, and not the Countersign that is checked here", asked)
	}
	return ""
}

// isQuoted reports whether a path is one word for a shell.
func isQuoted(path string) bool {
	last := len(path) - 1
	return last > 0 && path[0] == path[last] && (path[0] == '"' || path[0] == '\'') && strings.Count(path, path[:1]) == 2 ||
		runtime.GOOS != "windows" && !strings.Contains(strings.ReplaceAll(path, `\ `, ""), " ")
}
