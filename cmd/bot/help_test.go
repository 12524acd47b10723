package main

import (
	"bytes"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// said runs the program and returns what it wrote and how it ended.
func said(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = exitCode(run(t.Context(), args, nil, &out, &errs), &errs)
	return out.String(), errs.String(), code
}

// everyCommand calls f with every command of the program, by its words.
func everyCommand(f func(words []string, c *command)) {
	var walk func(words []string, c *command)
	walk = func(words []string, c *command) {
		f(words, c)
		for _, s := range c.sub {
			walk(append(slices.Clone(words), s.name), s)
		}
	}
	walk(nil, root())
}

func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	n := 0
	everyCommand(func(words []string, c *command) {
		n++
		name := strings.Join(append([]string{"bot"}, words...), " ")
		t.Run(name, func(t *testing.T) {
			help, stderr, code := said(t, append(words, "--help")...)
			require.Zero(t, code)
			require.Empty(t, stderr)
			require.Contains(t, help, "Usage:\n  "+name)
			require.Contains(t, help, "\nExample:\n  bot ")
			for line := range strings.Lines(help) {
				require.LessOrEqual(t, len(line), 81, line)
			}
			for _, s := range c.sub {
				require.Regexp(t, `(?m)^  `+s.name+` +[A-Z].*\.$`, help, "what it is for")
			}
			columns := map[int]bool{}
			for _, s := range c.sub {
				line := regexp.MustCompile(`(?m)^  ` + s.name + ` +`).FindString(help)
				columns[len(line)] = true
			}
			require.LessOrEqual(t, len(columns), 1, "the explanations are below each other")
			others := [][]string{append(slices.Clone(words), "-h"), append([]string{"help"}, words...)}
			if n := len(words); n > 0 && c.sub != nil {
				others = append(others, append(slices.Clone(words), "help"))
			} else if n > 1 {
				others = append(others, append(slices.Clone(words[:n-1]), "help", words[n-1]))
			}
			for _, other := range others {
				same, stderr, code := said(t, other...)
				require.Zero(t, code)
				require.Empty(t, stderr)
				require.Equal(t, help, same, "%v", other)
			}
		})
	})
	require.Greater(t, n, 15)
}

// What a usage line names is explained below it, and so is every flag: in
// whole sentences.
func TestEveryArgumentAndFlagIsExplained(t *testing.T) {
	t.Parallel()
	everyCommand(func(words []string, c *command) {
		if c.run == nil {
			return
		}
		help, _, _ := said(t, append(words, "--help")...)
		usage, below, _ := strings.Cut(help, "\n\n")
		for _, m := range regexp.MustCompile(`\[?(--[a-z-]+|\b[A-Z]+\b)`).FindAllStringSubmatch(strings.TrimPrefix(usage, "Usage:"), -1) {
			if m[1] != "FLAGS" {
				require.Regexp(t, `(?m)^  (--\S+ )?`+m[1]+`( [A-Z]+)?$`, below, "%s of %v", m[1], words)
			}
		}
		explained := regexp.MustCompile(`(?m)^  (--?[a-z-]+.*|[A-Z]+)\n((?:      .*\n)*)`).FindAllStringSubmatch(below, -1)
		if strings.Contains(usage, "[FLAGS]") || len(c.args) > 0 {
			require.NotEmpty(t, explained)
		}
		for _, m := range explained {
			require.Regexp(t, `^[A-Z](.|\n)*\.$`, strings.TrimSpace(m[2]), "%s of %v", m[1], words)
		}
	})
}

// Examples are what people copy: their commands and flags are there.
func TestEveryExampleIsACallThatTheProgramTakes(t *testing.T) {
	t.Parallel()
	everyCommand(func(words []string, c *command) {
		call := unquote(strings.ReplaceAll(c.example, "\\\n", ""))
		if at := slices.Index(call, ">"); at > 0 {
			call = call[:at]
		}
		require.Equal(t, "bot", call[0], c.example)
		help, stderr, code := said(t, append(call[1:], "--help")...)
		require.Zero(t, code, stderr)
		if c.run != nil && c.name != "help" {
			require.Contains(t, help, "Usage:\n  "+strings.Join(append([]string{"bot"}, words...), " "), c.example)
		}
	})
}

// unquote splits a line as a shell does.
func unquote(line string) []string {
	var words []string
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		words = append(words, m[1]+m[2])
	}
	return words
}

func TestWrongUseEndsWithTwoAndAHint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want, hint string }{
		{"dmeo", `there is no command "dmeo"`, "bot --help"},
		{"serve --confg x", "-confg", "bot serve --help"},
		{"serve", "--config FILE is missing", "bot serve --help"},
		{"check --online", "--config FILE is missing", "bot check --help"},
		{"serve --config x y", `takes no argument "y"`, "bot serve --help"},
		{"demo now", `takes no argument "now"`, "bot demo --help"},
		{"init --url", "flag needs an argument", "bot init --help"},
		{"policy", "", ""},
		{"policy chek", `there is no command "chek"`, "bot policy --help"},
		{"policy check a b", `takes no argument "b"`, "bot policy check --help"},
		{"policy replay --old a", "--new PATH is missing", "bot policy replay --help"},
		{"policy replay --new a", "CALLS is missing", "bot policy replay --help"},
		{"policy explain", "--tool", "bot policy explain --help"},
		{"policy explain --at noon --tool x", "--at", "bot policy explain --help"},
		{"admin", "", ""},
		{"admin prked", `there is no command "prked"`, "bot admin --help"},
		{"admin retry runs", "ID is missing", "bot admin retry --help"},
		{"admin retry kards batch-01-x", `there is no kind of work "kards"; the kinds are runs, replies, `, "bot admin retry --help"},
		{"admin fulfill b c words", "the result must be JSON", "bot admin fulfill --help"},
		{"admin abandon", "RUN is missing", "bot admin abandon --help"},
		{"slacksim --adr x", "-adr", "bot slacksim --help"},
		{"slacksim x", `takes no argument "x"`, "bot slacksim --help"},
		{"version x", `takes no argument "x"`, "bot version --help"},
		{"--version x", `takes no argument "x"`, "bot version --help"},
		{"help nothing", `there is no command "nothing"`, "bot --help"},
		{"admin help nothing", `there is no command "nothing"`, "bot admin --help"},
		{"admin list --most x", `invalid value "x" for flag -most: it must be a whole number`, "bot admin list --help"},
		{"admin list --most 99999999999999999999", `for flag -most: value out of range`, "bot admin list --help"},
		{"admin list --json=x", `invalid boolean value "x" for -json: it must be true or false`, "bot admin list --help"},
		{"hook ask --hold x", `invalid value "x" for flag -hold: it must be a duration such as 30s, 5m or 24h`, "bot hook ask --help"},
	} {
		out, stderr, code := said(t, strings.Fields(c.args)...)
		if c.want == "" { // a group alone says what it has
			require.Zero(t, code, c.args)
			require.Contains(t, out, "Usage:", c.args)
			require.Empty(t, stderr, c.args)
			continue
		}
		require.Equal(t, 2, code, c.args)
		require.Empty(t, out, c.args)
		require.Contains(t, stderr, c.want, c.args)
		require.Contains(t, stderr, "Run `"+c.hint+"` for usage.", c.args)
	}
}

// Programs read what an operator reads.
func TestEveryAdminCommandWritesJSON(t *testing.T) {
	t.Parallel()
	n := 0
	everyCommand(func(words []string, c *command) {
		if !slices.Contains(words, "admin") || c.run == nil {
			return
		}
		n++
		out, _, code := said(t, append(slices.Clone(words), "--help")...)
		require.Zero(t, code, words)
		require.Contains(t, out, "--json", words)
	})
	require.Greater(t, n, 5)
}

// What is wrong with the world is no wrong use.
func TestFailuresEndWithOne(t *testing.T) {
	t.Parallel()
	_, stderr, code := said(t, "serve", "--config", "missing.yaml")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "bot: ")
	require.NotContains(t, stderr, "for usage")
	_, stderr, code = said(t, "admin", "parked")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "REDIS_URL is not set")
}

func TestFlagsMayStandAnywhere(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"policy check missing.yaml --json", "policy --json check missing.yaml", "policy check --json missing.yaml"} {
		out, _, code := said(t, strings.Fields(args)...)
		require.Equal(t, 1, code, args)
		require.Contains(t, out, `"policy":"missing.yaml"`, args)
	}
	_, stderr, code := said(t, "policy", "check", "--", "--json")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "--json: no such file", "what follows -- is an argument")
	_, stderr, code = said(t, "admin", "fulfill", "b", "c", "-5")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "REDIS_URL is not set", "a number is no flag")

	_, stderr, code = said(t, "admin", "--config", "missing.yaml", "parked")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "REDIS_URL is not set", "it was understood")
}

func TestVersionSaysWhatThisIs(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"version", "--version", "-version"} {
		out, stderr, code := said(t, word)
		require.Zero(t, code, word)
		require.Empty(t, stderr, word)
		require.Regexp(t, `^countersign \S+\nrevision \S+.*\ngo1\.\S+ \w+/\w+\n$`, out, word)
	}
}

func TestABinaryKnowsTheVersionItWasBuiltAs(t *testing.T) {
	t.Parallel()
	path, err := binary()
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), path, "version").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "countersign "+builtAs+"\n")
}

// Redis is found in three ways, and no command says that it needs one of them.
func TestTheHelpForOperatorsSaysHowRedisIsFound(t *testing.T) {
	t.Parallel()
	all, _, _ := said(t, "admin", "--help")
	require.Contains(t, all, "bot mcp pins", "which is no command of admin")
	for _, c := range adminCommands.sub {
		help, _, _ := said(t, "admin", c.name, "--help")
		require.NotContains(t, help, "needs REDIS_URL", c.name)
		require.Contains(t, strings.Join(strings.Fields(help), " "), "redis.addresses, redis.tls, redis.user", c.name)
	}
}
