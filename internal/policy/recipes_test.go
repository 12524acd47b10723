package policy

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/strictyaml"
)

type recipe struct{ title, text string }

// recipes are those of docs/policy.md, with the file that all of them use.
func recipes(t *testing.T) (head string, all []recipe) {
	t.Helper()
	page, err := os.ReadFile("../../docs/policy.md")
	require.NoError(t, err)
	_, section, there := strings.Cut(string(page), "\n## Recipes\n")
	require.True(t, there)
	section, _, _ = strings.Cut(section, "\n## ")
	parts := strings.Split(section, "\n### ")
	heads := regexp.MustCompile("(?s)```yaml head\n(.*?)```").FindAllStringSubmatch(parts[0], -1)
	require.Len(t, heads, 1)
	for _, part := range parts[1:] {
		title, rest, _ := strings.Cut(part, "\n")
		blocks := regexp.MustCompile("(?s)```yaml recipe\n(.*?)```").FindAllStringSubmatch(rest, -1)
		require.Len(t, blocks, 1, title)
		all = append(all, recipe{title, blocks[0][1]})
	}
	return heads[0][1], all
}

// TestTheRecipesOfThePageDoWhatTheySay: each loads beside the head as a
// directory, its examples hold and show every rule of it, and testdata has what
// each example is ruled.
func TestTheRecipesOfThePageDoWhatTheySay(t *testing.T) {
	tools, err := ReadTools("../../examples/company/tools.json")
	require.NoError(t, err)
	tools = append(tools, shellTool())
	head, all := recipes(t)
	require.GreaterOrEqual(t, len(all), 12)
	var said strings.Builder
	for _, r := range all {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "head.yaml"), []byte(head), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "recipe.yaml"), []byte(r.text), 0o600))
		p, err := Load(dir, Options{Tools: tools, Now: func() time.Time { return time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC) }})
		require.NoError(t, err, r.title)

		var found strictyaml.Problems
		form := &fileForm{}
		require.True(t, strictyaml.Decode("recipe.yaml", []byte(r.text), &found, form))
		said.WriteString("# " + r.title + "\n")
		shown := []string{}
		x := &examiner{Problems: &found, p: p}
		for _, e := range form.Examples.Items {
			shown = append(shown, e.want(&found).rule)
			f := x.facts(e)
			said.WriteString("\n" + e.Name.Value + "\n")
			explained := p.explain(f)
			for _, line := range p.names.ruling(explained.Ruling, short(explained.By)) {
				said.WriteString("  " + line + "\n")
			}
		}
		said.WriteString("\n")
		for _, name := range p.Rules() {
			require.Contains(t, shown, name, "%s: no example shows the rule", r.title)
		}
		require.NoError(t, found.Err())
	}
	golden := filepath.Join("testdata", "recipes.txt")
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(golden, []byte(said.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), said.String())
}
