package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// refund is a program that asks for approval, as an example or the documentation
// has it.
type refund func(t *testing.T, agent *remote, order string, cents int) (out string, err error)

// ran is a line of a program that refunds.
var ran = regexp.MustCompile(`(?m)^refunding with`)

// program runs a command with the address and the token of the agent.
func program(t *testing.T, agent *remote, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	cmd.Env = append(os.Environ(), "COUNTERSIGN_URL="+agent.url, "COUNTERSIGN_TOKEN="+agent.token)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// documented returns the program of docs/api.md in a language.
func documented(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "api.md"))
	require.NoError(t, err)
	code := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, code)
	return string(code[1])
}

// inLanguage returns the program of docs/api.md in a language, with an end that
// refunds.
func inLanguage(t *testing.T, language, file, end string, command ...string) refund {
	t.Helper()
	code := documented(t, language)
	path := filepath.Join(t.TempDir(), file)
	return func(t *testing.T, agent *remote, order string, cents int) (string, error) {
		t.Helper()
		text := code
		if language == "ts" { // the types are all that is not JavaScript
			text = regexp.MustCompile(`: Promise<any>|: (string|object|any)\b`).ReplaceAllString(strings.ReplaceAll(text, "body?", "body"), "")
		}
		require.NoError(t, os.WriteFile(path, []byte(text+fmt.Sprintf(end, order, cents, order)), 0o600))
		return program(t, agent, command[0], append(command[1:], path)...)
	}
}

// The TypeScript of the documentation compiles in a strict project, with the types of
// Node and with those of a browser, so that a reader can paste it.
func TestTheTypeScriptOfTheDocumentationIsTyped(t *testing.T) {
	t.Parallel()
	web, err := filepath.Abs("../../internal/slacksim/page/web/node_modules")
	require.NoError(t, err)
	require.DirExists(t, web, "run .ci/deps, which installs the packages")
	path := filepath.Join(t.TempDir(), "approved.mts")
	require.NoError(t, os.WriteFile(path, []byte(documented(t, "ts")), 0o600))
	for _, lib := range []string{"es2022", "es2022,dom"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(web, ".bin", "tsc"), "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022",
			"--module", "nodenext", "--lib", lib, "--types", "node", "--typeRoots", filepath.Join(web, "@types"), path).CombinedOutput()
		require.NoError(t, err, "%s: %s", lib, out)
	}
}

// What the documentation and the example show runs: it refunds once what was
// approved, and nothing when a person denies it, when it is started again, or when
// the bot is down.
func TestTheProgramsOfTheDocumentationAskBeforeTheyRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.listen()
	p := w.start()
	programs := map[string]refund{
		"curl": func(t *testing.T, agent *remote, order string, cents int) (string, error) {
			t.Helper()
			return program(t, agent, filepath.Join("..", "..", "examples", "curl", "refund.sh"), order, fmt.Sprint(cents))
		},
		"python": inLanguage(t, "python", "refund.py",
			"\nprint('refunding with', json.dumps(approved('refund', {'order': '%s', 'cents': %d}, 'refund-%s')))\n", "python3"),
		"typescript": inLanguage(t, "ts", "refund.mjs",
			"\nconsole.log('refunding with', JSON.stringify(await approved('refund', {order: '%s', cents: %d}, 'refund-%s')));\n", "node"),
	}
	for name, refund := range programs {
		type ended struct {
			out string
			err error
		}
		start := func(order string) <-chan ended {
			done := make(chan ended, 1)
			go func() {
				out, err := refund(t, agent, order, 4200)
				done <- ended{out, err}
			}()
			return done
		}
		decide := func(order, verdict string) {
			card := w.sim.await(bob, "", name+": the card", says(order))
			require.Empty(t, w.sim.click(carol, card, order, verdict).VisibleError)
			if verdict == "Deny" {
				w.sim.submit(carol, w.sim.views(carol)[0], "too much")
			}
		}
		done := start(name + "-1")
		decide(name+"-1", "Approve")
		got := <-done
		require.NoError(t, got.err, got.out)
		require.Regexp(t, ran, got.out, name)
		require.Contains(t, got.out, "4200")

		got = <-start(name + "-1")
		require.Error(t, got.err, name)
		require.NotRegexp(t, ran, got.out, "it may have happened")
		if name == "curl" {
			require.Contains(t, got.out, "The decision was claimed before")
		}

		done = start(name + "-2")
		decide(name+"-2", "Deny")
		got = <-done
		require.Error(t, got.err, name)
		require.Contains(t, got.out, "too much")
		require.NotRegexp(t, ran, got.out)
	}
	p.kill()
	for name, refund := range programs {
		out, err := refund(t, agent, name+"-3", 4200)
		require.Error(t, err, name)
		require.NotRegexp(t, ran, out)
	}
}
