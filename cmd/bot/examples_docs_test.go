package main

import (
	"os"
	"os/exec"
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
	t.Parallel()
	dir := filepath.Join("..", "..", "examples")
	for name, most := range map[string]int{"ai-sdk": 25, "langchain": 25, "openai-agents": 25, "pydantic-ai": 30} { // with two recipes
		page, err := os.ReadFile(filepath.Join(dir, name, "README.md"))
		require.NoError(t, err)
		var code strings.Builder
		files, err := filepath.Glob(filepath.Join(dir, name, "*.*"))
		require.NoError(t, err)
		for _, f := range files {
			if ext := filepath.Ext(f); ext == ".mjs" || ext == ".py" {
				text, err := os.ReadFile(f)
				require.NoError(t, err)
				code.Write(text)
			}
		}
		shown := shownCode.FindAllSubmatch(page, -1)
		require.NotEmpty(t, shown, name)
		lines := 0
		for _, block := range shown {
			require.Contains(t, code.String(), string(block[1]), name)
			lines += strings.Count(string(block[1]), "\n")
		}
		require.LessOrEqual(t, lines, most, name)
		for _, link := range localLink.FindAllSubmatch(page, -1) {
			require.FileExists(t, filepath.Join(dir, name, string(link[1])))
		}
	}
}

// The agents of PydanticAI are compiled, where their package is not installed.
func TestThePythonOfTheExamplesCompiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "*.py"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out, err := exec.CommandContext(t.Context(), "python3", append([]string{"-c", "import sys\nfor f in sys.argv[1:]: compile(open(f).read(), f, 'exec')"}, files...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
