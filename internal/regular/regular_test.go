package regular_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/regular"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(in("file"), []byte("text"), 0o600))
	require.NoError(t, os.Symlink("file", in("link")))
	require.NoError(t, syscall.Mkfifo(in("pipe"), 0o600)) // nobody writes to it
	require.NoError(t, os.Symlink("pipe", in("link of a pipe")))

	for _, path := range []string{in("file"), in("link")} {
		text, err := regular.Read(path, 3)
		require.NoError(t, err)
		require.Equal(t, "tex", string(text))
	}
	for _, path := range []string{dir, in("pipe"), in("link of a pipe"), "/dev/zero"} {
		_, err := regular.Read(path, 3)
		require.EqualError(t, err, path+" is not a regular file")
	}
	_, err := regular.Read(in("missing"), 3)
	require.ErrorIs(t, err, os.ErrNotExist)
}
