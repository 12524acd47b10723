package config

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Opening a named pipe to which nobody writes never returns, and what waits for the open
// file here is the start or a request.
func TestAFileThatIsReadAgainIsNoNamedPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	wrong := pipe + " is not a regular file"

	_, err := readTokens(pipe)
	require.EqualError(t, err, wrong)
	_, err = Config{MCPLock: pipe}.Pins()
	require.EqualError(t, err, "mcp_lock: "+wrong)
}
