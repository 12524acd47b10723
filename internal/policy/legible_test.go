package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/policy"
)

// What an editor does not show, or shows elsewhere, could hide a rule from the
// reviewer: it is refused wherever it stands, comments and keys included, and
// the message shows it as an escape.
func TestWhatDoesNotShowIsRefusedAnywhere(t *testing.T) {
	const rule = "rules:\n  - {name: r, tools: [x], deny: no}\n"
	lines := strings.Count(head, "\n")
	for name, c := range map[string]struct {
		more string
		at   string // below the head
		says string
	}{
		"a line separator in a comment":      {"# all is well\u2028" + rule, "1:14", "U+2028"},
		"a paragraph separator in a comment": {rule + "# x\u2029y", "3:4", "U+2029"},
		"a next line in a comment":           {"# x\u0085" + rule, "1:4", "U+0085"},
		"a carriage return by itself":        {"# x\r" + rule, "1:4", "U+000D"},
		"an override in a comment":           {rule + "  # \u202eon :yned", "3:5", "U+202E"},
		"a zero width space in a key":        {strings.Replace(rule, "deny:", "de\u200bny:", 1), "2:29", "U+200B"},
		"between keys":                       {strings.Replace(rule, "  - ", "  -\u00a0", 1), "2:4", "U+00A0"},
		"a mark in the middle":               {"\ufeff" + rule, "1:1", "U+FEFF"},
		"an emoji style on a letter":         {"# all\ufe0f is well\n" + rule, "1:6", "U+FE0F"},
		"an emoji style in a key":            {strings.Replace(rule, "deny:", "deny\ufe0f:", 1), "2:31", "U+FE0F"},
		"NUL":                                {rule + "# \x00", "3:3", "U+0000"},
		"after characters of several bytes":  {"# größer als 日本\u200b\n" + rule, "1:16", "U+200B"},
		"a byte that is not UTF-8":           {"# gr\xfc\xdfe\n" + rule, "1:5", `the byte 0xfc, which is not UTF-8`},
		"half a character":                   {rule + "# \xe2\x82", "3:3", `the byte 0xe2, which is not UTF-8`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Parse("p.yaml", []byte(head+c.more), policy.Options{})
			var line, col int
			_, scanErr := fmt.Sscanf(c.at, "%d:%d", &line, &col)
			require.NoError(t, scanErr)
			require.ErrorContains(t, err, fmt.Sprintf("p.yaml:%d:%d: the file: contains ", lines+line, col))
			require.ErrorContains(t, err, c.says)
			requireShown(t, err)
		})
	}
	for name, text := range map[string]string{
		"Windows line ends":        strings.ReplaceAll(head+rule, "\n", "\r\n"),
		"a mark at the start":      "\ufeff" + head[1:] + rule,
		"an emoji and its variant": head + "# \u26a0\ufe0f mind\n" + rule,
		"another script":           head + "# 日本語, ελληνικά\n" + rule,
		"a tab in a comment":       head + "#\tx\n" + rule,
	} {
		_, err := policy.Parse("p.yaml", []byte(text), policy.Options{})
		require.NoError(t, err, name)
	}
}

// requireShown checks that an error can be read as it is.
func requireShown(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	for _, r := range err.Error() {
		require.True(t, r == '\n' || r >= ' ' && r < 0x7f, "%U in %q", r, err.Error())
	}
}

// An escape in a quoted text stands for a character too; and what a message
// quotes of a file is shown as an escape, wherever it comes from.
func TestEscapesThatDoNotShowAreRefusedAndQuoted(t *testing.T) {
	for name, c := range map[string]struct{ more, says string }{
		"a key of the form":   {`"ru\u200bles": []` + "\n", `ru\u200bles: contains the invisible character U+200B`},
		"a key of a table":    {"examples: [{name: e, call: {tool: x}, so_far: {executed: {\"x\\u2060\": 1}}, expect: {ask: default}}]\n", `executed.x\u2060: contains the invisible character U+2060`},
		"an emoji style":      {"rules: [{name: r, tools: [x], deny: \"no\\ufe0f\"}]\n", "rules[0].deny: contains the invisible character U+FE0F"},
		"a text":              {"rules: [{name: r, tools: [x], deny: \"n\\u00ado\"}]\n", "rules[0].deny: contains the invisible character U+00AD"},
		"a condition":         {"rules: [{name: r, tools: [x], when: 'args.a == \"\\u202e\" && tol == \"x\"', deny: no}]\n", `there is no "tol"`},
		"a name in a message": {"rules: [{name: r, tools: [x], when: 'tool == \"x\\u200b\"', deny: no}]\n", `there is no tool "x\u200b"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Parse("p.yaml", []byte(head+c.more), policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x"}}})
			require.ErrorContains(t, err, c.says)
			requireShown(t, err)
		})
	}
}

// A directory is a policy: what stands in it and could be part of one is read or
// refused. What Kubernetes adds to a mount begins with a dot.
func TestWhatADirectoryHoldsIsReadOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		add  func(dir string) error
		says string
	}{
		"a folder":               {func(dir string) error { return os.Mkdir(filepath.Join(dir, "team"), 0o700) }, "team: is a folder"},
		"a folder called a file": {func(dir string) error { return os.Mkdir(filepath.Join(dir, "team.yaml"), 0o700) }, "team.yaml: is a folder"},
		"a link to a folder":     {func(dir string) error { return os.Symlink(t.TempDir(), filepath.Join(dir, "team")) }, "team: is a folder"},
		"JSON":                   {writes("b.json", "{}"), "b.json: is not read"},
		"JSON in capitals":       {writes("B.JSON", "{}"), "B.JSON: is not read"},
		"yml":                    {writes("b.yml", ""), "b.yml: is not read"},
		"YAML in capitals":       {writes("b.YAML", ""), "b.YAML: is not read"},
		"a link to nowhere":      {func(dir string) error { return os.Symlink("none", filepath.Join(dir, "b.yaml")) }, "b.yaml"},
		"a device":               {func(dir string) error { return os.Symlink("/dev/zero", filepath.Join(dir, "b.yaml")) }, "b.yaml: is not a regular file"},
		"a page for readers":     {writes("README.md", "#"), ""},
		"what is hidden":         {writes(".b.yaml", "?"), ""},
		"a folder that is": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, "..2026_01_01", "more"), 0o700)
		}, ""},
		"a mount": {func(dir string) error {
			if err := os.Mkdir(filepath.Join(dir, "..1"), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, "..1", "b.yaml"), []byte("rules: [{name: r, tools: [x], deny: no}]\n"), 0o600); err != nil {
				return err
			}
			if err := os.Symlink("..1", filepath.Join(dir, "..data")); err != nil {
				return err
			}
			return os.Symlink(filepath.Join("..data", "b.yaml"), filepath.Join(dir, "b.yaml"))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(head), 0o600))
			require.NoError(t, c.add(dir))
			p, err := policy.Load(dir, policy.Options{})
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, name == "a mount", len(p.Rules()) == 1)
		})
	}
}

func writes(name, text string) func(dir string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
}
