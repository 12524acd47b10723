package redisserver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server on another folder, such as half of a backup, would start without the data.
func TestAServerIsCutOffOnlyFromItsOwnFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(dir, 0o700))
	held, err := lock(filepath.Join(dir, botLock))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, held.Close()) })
	f := Folder{dir: dir, lock: held}
	require.NoError(t, os.WriteFile(socket(dir), nil, 0o600))
	require.False(t, f.cutOff())
	require.NoError(t, os.Remove(socket(dir)))
	require.True(t, f.cutOff())

	require.NoError(t, os.Rename(dir, dir+"-old"))
	require.False(t, f.cutOff(), "the folder is gone")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, botLock), nil, 0o600))
	require.False(t, f.cutOff(), "it is another folder")
}
