package shellcmd_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/shellcmd"
)

// recorded are the programs that the shells below find, and nothing else: none
// has the name of a builtin.
var recorded = []string{"git", "ls", "go", "grep"}

// recorder writes its name and its arguments to a file of its own, and ends as it
// is told.
const recorder = `#!/bin/sh
printf '%s\0' "${0##*/}" "$@" > "$RECORDS/$$"
exit "$STATUS"
`

// A laboratory runs programs in a real shell that finds nothing but recorders.
type laboratory struct{ bin, cwd, records string }

func newLaboratory(t *testing.T) laboratory {
	t.Helper()
	l := laboratory{t.TempDir(), t.TempDir(), t.TempDir()}
	for _, name := range recorded {
		require.NoError(t, os.WriteFile(filepath.Join(l.bin, name), []byte(recorder), 0o700))
	}
	return l
}

// run returns the argument lists of what the shell started, sorted, and fails if
// anything was written where it ran.
func (l laboratory) run(t require.TestingT, shell, program, status string) []string {
	cmd := exec.Command(shell, "-c", program)
	cmd.Dir, cmd.Env = l.cwd, []string{"PATH=" + l.bin, "HOME=" + l.cwd, "RECORDS=" + l.records, "STATUS=" + status, "LC_ALL=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.Empty(t, string(out), "%s said something about %q", shell, program)
	var all []string
	require.NoError(t, filepath.WalkDir(l.records, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all = append(all, string(b))
		return errors.Join(err, os.Remove(path))
	}))
	left, err := os.ReadDir(l.cwd)
	require.NoError(t, err)
	require.Empty(t, left, "%s left a file behind %q", shell, program)
	slices.Sort(all)
	return all
}

// expected is what a shell starts if every program ends with success, or none
// does.
func expected(commands []shellcmd.Command, success bool) []string {
	var all []string
	ok, ran := true, true
	for _, c := range commands {
		switch c.Join {
		case shellcmd.First, shellcmd.Then:
			ran = true
		case shellcmd.And:
			ran = ok
		case shellcmd.Or:
			ran = !ok
		case shellcmd.Pipe: // as the command before it
		}
		if ran {
			all = append(all, strings.Join(c.Argv, "\x00")+"\x00")
			ok = success
		}
	}
	slices.Sort(all)
	return all
}

func shells(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, name := range []string{"bash", "dash", "zsh", "ksh", "mksh"} {
		if path, err := exec.LookPath(name); err == nil {
			all = append(all, path)
		}
	}
	require.NotEmpty(t, all, "no shell to compare with: install bash")
	return all
}

// agree checks that the shells start what was read, no more and no less, whether
// the programs succeed or not.
func (l laboratory) agree(t require.TestingT, shells []string, program string, commands []shellcmd.Command) {
	for _, shell := range shells {
		require.Equal(t, expected(commands, true), l.run(t, shell, program, "0"), "%s: %q", shell, program)
		require.Equal(t, expected(commands, false), l.run(t, shell, program, "1"), "%s, failing: %q", shell, program)
	}
}

// TestShellsStartWhatIsRead: of programs that are put together at random from
// what is special to shells, those that are read start exactly the argument
// lists that were read, in every shell of this machine, and write no file.
func TestShellsStartWhatIsRead(t *testing.T) {
	l, all := newLaboratory(t), shells(t)
	joins := rapid.SampledFrom([]string{" && ", "&&", " || ", "||", " | ", "|", "; ", ";", "\n", " ;\n\n", " |\n"})
	words := rapid.SampledFrom([]string{
		"-n", "--x=", "--x='a b'", "a", "src/a.go", "''", `""`, "'a'\"b\"", "'$X `ls` \\ * {a,b} #'", `"a 'b' {c,d} * ~ #"`, "'a\nb'", "'größer'", "a=b", "a==b", ":a", "%1", "@a", "+a", ",", "--", "-", "a~", "a.b:c", "then", "if", "in",
	})
	odd := rapid.SampledFrom([]string{
		"$X", "$(ls)", "`ls`", "\\", "#", "!", "~", "*", "{a,b}", "(", ")", "<a", ">a", "=", "X=1 ", "&", "'", `"`, "$'a'", `"$X"`, "|&", ";;", "<<E", "\t", "\r", "=ls", " if ", "$", "[a]", "?", "^", "é", "\\\n", "''", "\u00a0", "|", ";",
	})
	accepted := 0
	rapid.Check(t, func(r *rapid.T) {
		program := ""
		for i := range rapid.IntRange(1, 4).Draw(r, "commands") {
			if i > 0 {
				program += joins.Draw(r, "join")
			}
			program += strings.Join(append([]string{rapid.SampledFrom(recorded).Draw(r, "program")}, rapid.SliceOfN(words, 0, 4).Draw(r, "words")...), " ")
		}
		if rapid.IntRange(0, 2).Draw(r, "odd") == 0 {
			at := rapid.IntRange(0, len(program)).Draw(r, "at")
			program = program[:at] + odd.Draw(r, "insert") + program[at:]
		}
		commands, err := shellcmd.Read(program)
		if err != nil || slices.ContainsFunc(commands, func(c shellcmd.Command) bool { return !slices.Contains(recorded, c.Argv[0]) }) {
			return
		}
		accepted++
		l.agree(r, all, program, commands)
	})
	require.Greater(t, accepted, 10)
	t.Logf("%d programs were run by %v", accepted, all)
	for _, program := range []string{
		"git log --format='%h %s' | grep -n \"a 'b\" && ls || go x; git\nls", "git commit -m 'a\n\nb $(x) `y` \\ !z {a,b} *'", "git '' \"\" -- - a=b x==y :a %1 @b +c ,d",
		"git a'b'\"c\"d", "git 'a'=ls a''=ls '=ls' \"=\"ls", "ls |\ngit &&\n\ngo", "git 'größer' \"日本\"", "ls | git | go || grep && ls", "git|ls;go&&grep||ls",
	} {
		commands, err := shellcmd.Read(program)
		require.NoError(t, err, program)
		l.agree(t, all, program, commands)
	}
}

// zsh writes =ls as the path of ls, also behind quotes that hold nothing.
func TestAnEqualsSignAtTheBeginningOfAWordIsNotRead(t *testing.T) {
	for _, word := range []string{"=ls", "''=ls", `""=ls`, `''""=ls`} {
		_, err := shellcmd.Read("git " + word)
		require.Error(t, err, word)
	}
	for _, word := range []string{"a''=ls", "'a'=ls", "'=ls'", `"="ls`, `''"=ls"`} {
		_, err := shellcmd.Read("git " + word)
		require.NoError(t, err, word)
	}
}

// FuzzRead: whatever is read consists of literal simple commands only. Written
// with quotes around every word, it is read as the same again; and it has no
// word that no shell would take for one.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"git status", "git log --format='%h %s' | head -5 && ls; pwd\ngit diff", "a 'b'\"c\"", "a=b c", "a $(b)", "a `b`", "a > b", "a & b", "if a; then b; fi",
		"a <<E\nb\nE\n", "a\\\nb", "a # b", "! a", "a |& b", "a 'it''s'", "$'a'", "a \"$b\"", "a {b,c}", "a ~", "a *", "(a)", "{ a; }", "a() { b; }", "a ==b", "=a", "\x00", "a\u202eb",
		"coproc a", "time a", "a \"b\nc\"", "select x in a; do b; done", "a;;", "case a in b) c;; esac", "[[ a ]]", "((a))", "a[1]=2", "let a", strings.Repeat("a|", 70), strings.Repeat("(", 200),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, program string) {
		commands, err := shellcmd.Read(program)
		if err != nil {
			plain := (*shellcmd.NotPlainError)(nil)
			require.ErrorAs(t, err, &plain)
			return
		}
		require.NotEmpty(t, commands)
		var again strings.Builder
		for i, c := range commands {
			require.Equal(t, i == 0, c.Join == shellcmd.First)
			require.NotEmpty(t, c.Argv)
			fmt.Fprintf(&again, " %s %s", c.Join, c.Argv[0])
			for _, w := range c.Argv {
				require.NotContains(t, w, "\x00")
			}
			for _, w := range c.Argv[1:] {
				again.WriteString(" " + quote(w))
			}
		}
		same, err := shellcmd.Read(again.String())
		require.NoError(t, err, again.String())
		require.Equal(t, commands, same)
	})
}

// quote writes a word so that every character stands for itself, also ' between
// double quotes.
func quote(w string) string {
	parts := strings.Split(w, "'")
	for i, p := range parts {
		parts[i] = "'" + p + "'"
	}
	return strings.Join(parts, `"'"`)
}
