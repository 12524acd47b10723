package strictyaml

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The system waits for ever for someone who writes to a named pipe.
func TestANamedPipeThatNobodyWritesIsAnError(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	enough := make(chan time.Time)
	close(enough)
	_, err := readFile(pipe, enough, silence)
	require.EqualError(t, err, pipe+" is a named pipe, and nothing writes to it")

	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte("a: 1\n"), 0o600) }()
	text, err := ReadFile(pipe)
	require.NoError(t, err)
	require.NoError(t, <-written)
	require.Equal(t, "a: 1\n", string(text))
}

// The end of the wait for a pipe does not depend on what is in its place by then. Whether the
// pipe was opened before it was replaced differs from one time to the next.
func TestANamedPipeThatIsReplacedIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	for range 20 {
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		enough, read := make(chan time.Time), make(chan struct{})
		go func() {
			defer close(read)
			_, _ = readFile(path, enough, silence)
		}()
		runtime.Gosched()
		require.NoError(t, os.WriteFile(path+".new", []byte("a: 1\n"), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
		close(enough)
		<-read
		require.NoError(t, os.Remove(path))
	}
}

// A program can hold a pipe open for as long as it runs.
func TestAPipeWhoseWriterIsSilentIsAnError(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = readFile(pipe, nil, time.Millisecond)
	require.EqualError(t, err, pipe+" is a pipe, and its writer neither sends anything nor closes it")
	require.NoError(t, writer.Close())
}

// A shell hands the command the path of an open pipe for a process substitution.
func TestAPipeThatIsOpenIsReadToItsEnd(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	_, err = w.WriteString("a: 1\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	text, err := ReadFile(fmt.Sprintf("/dev/fd/%d", r.Fd()))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, "a: 1\n", string(text))
}
