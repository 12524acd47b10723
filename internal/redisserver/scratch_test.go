package redisserver_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/redisserver"
)

func TestAScratchFolderOfAProcessThatWasKilledIsRemoved(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	folder := func(name string, mode os.FileMode, files ...string) string {
		dir := filepath.Join(temp, name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		for _, f := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
		}
		require.NoError(t, os.Chmod(dir, mode))
		return dir
	}
	left := folder("mine-1", 0o700, "bot.lock", "appendonly.aof")
	others := []string{
		folder("yours-1", 0o700, "bot.lock"),       // of another prefix
		folder("mine-2", 0o700, "appendonly.aof"),  // perhaps just made
		folder("mine-3", 0o777, "bot.lock"),        // others could have put something there
		folder("target", 0o700, "bot.lock", "aof"), // of a link
	}
	require.NoError(t, os.Symlink(others[3], filepath.Join(temp, "mine-4")))

	dir, remove, err := redisserver.Scratch("mine-")
	require.NoError(t, err)
	require.NoDirExists(t, left)
	for _, other := range others {
		require.DirExists(t, other)
	}
	require.FileExists(t, filepath.Join(others[3], "aof"))

	second, removeSecond, err := redisserver.Scratch("mine-")
	require.NoError(t, err)
	require.DirExists(t, dir, "its process is alive")
	require.NoError(t, removeSecond())
	require.NoDirExists(t, second)
	require.NoError(t, remove())
	require.NoDirExists(t, dir)
}
