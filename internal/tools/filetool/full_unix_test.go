//go:build unix

package filetool_test

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
)

// A process that may write files of at most five bytes stands for a full disk.
const limited = "FILETOOL_TEST_LIMITED"

func TestAWriteThatBreaksOffIsNotReportedAsNotDone(t *testing.T) {
	if os.Getenv(limited) == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), limited+"=1")
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	folder, do := open(t)
	signal.Ignore(syscall.SIGXFSZ)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 5, Max: 5}))
	for _, path := range []string{"reports/old.txt", "new.txt"} {
		_, err := do("write_file", `{"path":"`+path+`","content":"0123456789"}`)
		var unsure *agentrun.UnsureError
		require.ErrorAs(t, err, &unsure)
		require.Equal(t, "The writing of "+path+" broke off: file too large. It may have a part of the new text, and what it had before is lost.", unsure.Message)
		b, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(path)))
		require.NoError(t, err)
		require.Equal(t, "01234", string(b))
	}
}
