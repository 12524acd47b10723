//go:build unix

package filetool_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/tools/filetool"
)

// A pipe would hold the worker until somebody opens its other end.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	folder, do := open(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600))
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", filepath.Join(folder, "s"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	for _, path := range []string{"pipe", "s"} {
		want := path + " is not a regular file."
		for _, tool := range []string{"read_file", "delete_file"} {
			_, err := do(tool, args(t, path))
			require.Equal(t, want, failure(t, err), tool)
		}
		_, err := do("write_file", writing(t, path))
		require.Equal(t, want, failure(t, err))
	}
	out, err := do("list_files", "")
	require.NoError(t, err)
	require.Contains(t, out, `{"path":"pipe","why":"It is not a regular file."}`)
}

// The file becomes a pipe after it was looked at.
func TestAPipeThatTakesThePlaceOfAFileIsNotWaitedFor(t *testing.T) {
	for _, tool := range []string{"read_file", "write_file"} {
		folder, _ := open(t)
		path := filepath.Join(folder, "reports", "old.txt")
		filetool.Meanwhile(t, func(at string) {
			if at == "reports/old.txt" {
				_ = os.Remove(path)
				_ = syscall.Mkfifo(path, 0o600)
			}
		})
		call := writing(t, "reports/old.txt")
		if tool == "read_file" {
			call = args(t, "reports/old.txt")
		}
		x, in := toolOf(t, folder, tool, call)
		_, err := x.Execute(t.Context(), in)
		require.Error(t, err)
	}
}
