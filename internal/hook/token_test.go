package hook_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

// Opening a named pipe to which nobody writes never returns, and the coding agent waits
// for the hook.
func TestATokenFileThatIsANamedPipeIsNotWaitedFor(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "token")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := hook.ReadToken(pipe)
	require.EqualError(t, err, "read the token: "+pipe+" is not a regular file")
}
