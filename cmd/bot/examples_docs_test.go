package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	shownCode = regexp.MustCompile("(?s)```(?:js|python)\n(.*?)```")
	localLink = regexp.MustCompile(`\]\(([^)#:]+)[^):]*\)`)
)

// What the README of an example shows is in its source, letter for letter, and is
// about as little as it says; every link leads somewhere.
func TestTheReadmesOfTheExamplesShowTheirSource(t *testing.T) {
	dir := filepath.Join("..", "..", "examples")
	for name, source := range map[string]string{
		"ai-sdk": "agent.mjs", "langchain": "agent.mjs", "openai-agents": "agent.mjs",
	} {
		page, err := os.ReadFile(filepath.Join(dir, name, "README.md"))
		require.NoError(t, err)
		code, err := os.ReadFile(filepath.Join(dir, name, source))
		require.NoError(t, err)
		shown := shownCode.FindAllSubmatch(page, -1)
		require.NotEmpty(t, shown, name)
		lines := 0
		for _, block := range shown {
			require.Contains(t, string(code), string(block[1]), name)
			lines += strings.Count(string(block[1]), "\n")
		}
		require.LessOrEqual(t, lines, 25, name)
		for _, link := range localLink.FindAllSubmatch(page, -1) {
			require.FileExists(t, filepath.Join(dir, name, string(link[1])))
		}
	}
}
