package strictyaml

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file whose end would be cut off is not taken for what its beginning says.
func TestAFileIsReadWholeOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(path, make([]byte, mostBytes), 0o600))
	src, err := ReadWhole(path)
	require.NoError(t, err)
	require.Len(t, src, mostBytes)
	require.NoError(t, os.WriteFile(path, make([]byte, mostBytes+1), 0o600))
	_, err = ReadWhole(path)
	require.ErrorContains(t, err, "ca.pem: the file has more than 4194304 bytes")
}
