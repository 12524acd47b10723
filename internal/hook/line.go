package hook

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/shellcmd/single"
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
	asked := ""
	if line != "" {
		program, ok := single.Read(line)
		if !ok {
			return "the command is not one program alone, has a word that a program makes, or sends its output elsewhere, so the exit code or the answer that stops a tool may be lost"
		}
		asked, words = program.Env["COUNTERSIGN_URL"], program.Words
		for len(words) > 0 && slices.Contains([]string{"exec", "command", "env"}, words[0]) {
			env := words[0] == "env"
			for words = words[1:]; env && len(words) > 0 && strings.Contains(words[0], "=") && words[0][0] != '-'; words = words[1:] {
				if value, is := strings.CutPrefix(words[0], "COUNTERSIGN_URL="); is {
					asked = value
				}
			}
		}
	}
	if len(words) < 2 || words[1] != "hook" || !strings.HasPrefix(filepath.Base(words[0]), "bot") {
		return "the command begins with another program, whose exit code is what the agent gets"
	}
	flags := words[2:]
	switch {
	case len(flags) > 0 && flags[0] != "ask" && !strings.HasPrefix(flags[0], "-"):
		return fmt.Sprintf("the command is bot hook %.40s, which is not the one that asks", flags[0])
	case slices.ContainsFunc(flags, isHelp):
		return "the command prints its help and exits with 0, so every tool runs"
	}
	asked = cmp.Or(flagOf(flags, "url"), asked)
	if line != "" && strings.Contains(host(asked), "$") { // only the shell of the agent knows it
		return ""
	}
	if asked != "" && !sameServer(asked, base) {
		return fmt.Sprintf("the command asks %.100s, and not the Countersign that is checked here", asked)
	}
	return ""
}

// isHelp reports whether a word is a flag that prints the help.
func isHelp(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	return slices.Contains([]string{"-h", "--h", "-help", "--help"}, name)
}

// host is the part of a URL up to its path.
func host(address string) string {
	scheme, rest, there := strings.Cut(address, "://")
	if !there {
		return address
	}
	rest, _, _ = strings.Cut(rest, "/")
	return scheme + rest
}

// sameServer reports whether two URLs are of one server.
func sameServer(a, b string) bool {
	one, err := url.Parse(a)
	other, err2 := url.Parse(b)
	if err != nil || err2 != nil {
		return false
	}
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return one.Scheme == other.Scheme && strings.EqualFold(one.Hostname(), other.Hostname()) && port(one) == port(other)
}
