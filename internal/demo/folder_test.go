package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
)

func TestTheDemoKeepsItsPolicyOutOfTheFolder(t *testing.T) {
	d := demo{policy: filepath.Join(t.TempDir(), "policy.yaml")}
	require.NoError(t, os.WriteFile(d.policy, []byte(Policy), 0o600))
	_, err := config.NewToolSets(configuration(filepath.Dir(d.policy), d.policy), config.Environment{}, addedTools(filepath.Dir(d.policy)))
	require.ErrorContains(t, err, "contains the policy, "+d.policy)
}

func TestTheDemoMakesTheFolderThatIsNotThere(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, (&demo{}).prepareFolder(folder))
	for name, text := range files {
		b, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		require.NoError(t, err)
		require.Equal(t, text, string(b))
	}
}

// Something may be put into the folder after it was looked at.
func TestTheDemoOverwritesNothing(t *testing.T) {
	folder := t.TempDir()
	mine := filepath.Join(folder, "reports", "2023-q1-sales.txt")
	require.NoError(t, os.Mkdir(filepath.Dir(mine), 0o700))
	require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
	require.ErrorIs(t, Seed(folder), os.ErrExist)
	b, err := os.ReadFile(mine)
	require.NoError(t, err)
	require.Equal(t, "mine", string(b))

	outside := t.TempDir()
	folder = t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(folder, "reports")))
	require.Error(t, Seed(folder))
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is written out of the folder")
}
