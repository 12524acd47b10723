package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

// tree writes files below a new directory and returns it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(content, "DIR", dir)), 0o600))
	}
	return dir
}

const gitConfig = "[core]\n\tbare = false\n[remote \"fork\"]\n\turl = https://evil.example/x\n[remote \"origin\"]\n\turl = https://bot:ghp_secret@example.com/app.git?x=1\n"

func TestARepositoryIsReadWithoutGit(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		files              map[string]string
		in                 string
		repository, branch string
	}{
		"a branch":                   {map[string]string{".git/HEAD": "ref: refs/heads/feature/a\n", ".git/config": gitConfig}, ".", "https://example.com/app.git", "feature/a"},
		"from a directory within":    {map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": gitConfig, "a/b/c": ""}, "a/b", "https://example.com/app.git", "main"},
		"a commit":                   {map[string]string{".git/HEAD": strings.Repeat("0a", 20) + "\n"}, ".", "", "commit 0a0a0a0a0a0a"},
		"over SSH":                   {map[string]string{".git/HEAD": "x", ".git/config": "[remote \"origin\"]\nurl=git@example.com:a/b.git\n"}, ".", "git@example.com:a/b.git", ""},
		"a URL that cannot be read":  {map[string]string{".git/HEAD": "x", ".git/config": "[remote \"origin\"]\nurl=https://bot:ghp%secret@example.com/a/b.git\n"}, ".", "", ""},
		"a password without a URL":   {map[string]string{".git/HEAD": "x", ".git/config": "[remote \"origin\"]\nurl=bot:secret@example.com:a/b.git\n"}, ".", "", ""},
		"a work tree":                {map[string]string{"w/.git": "gitdir: ../main/.git/worktrees/w\n", "main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n", "main/.git/worktrees/w/commondir": "../..\n", "main/.git/config": gitConfig}, "w", "https://example.com/app.git", "w"},
		"no repository":              {map[string]string{"a": ""}, ".", "", ""},
		"control characters":         {map[string]string{".git/HEAD": "ref: refs/heads/a\x1b[2Jb\n", ".git/config": "[remote \"origin\"]\nurl=a\x07b\n"}, ".", "", ""},
		"two lines":                  {map[string]string{".git/HEAD": "ref: refs/heads/a\nb\n"}, ".", "", ""},
		"names that are too long":    {map[string]string{".git/HEAD": "ref: refs/heads/" + long, ".git/config": "[remote \"origin\"]\nurl=" + long}, ".", "", ""},
		"files that are too large":   {map[string]string{".git/HEAD": "ref: refs/heads/a" + strings.Repeat("\n", 70_000), ".git/config": gitConfig + strings.Repeat("\n", 70_000)}, ".", "", ""},
		"a link to a file of others": {map[string]string{".git": "gitdir: /etc\n"}, ".", "", ""},
		"a link of several lines":    {map[string]string{".git": "gitdir: a\nb\n"}, ".", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			repository, branch := hook.Git(filepath.Join(tree(t, c.files), c.in))
			require.Equal(t, c.repository, repository)
			require.Equal(t, c.branch, branch)
		})
	}
}

func TestAPipeInARepositoryHoldsNothingUp(t *testing.T) {
	dir := tree(t, map[string]string{".git/config": gitConfig})
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, ".git", "HEAD"), 0o600))
	repository, branch := hook.Git(dir)
	require.Equal(t, "https://example.com/app.git", repository)
	require.Empty(t, branch)
	repository, branch = hook.Git("relative")
	require.Empty(t, repository+branch)
}
