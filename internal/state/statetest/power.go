package statetest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed testdata/fsynced.c
var fsyncedSource []byte

// fsynced is the library that notes what a server has synced, built once.
var fsynced = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cs-fsynced")
	if err != nil {
		return "", err
	}
	source, library := filepath.Join(dir, "fsynced.c"), filepath.Join(dir, "fsynced.so")
	if err := os.WriteFile(source, fsyncedSource, 0o600); err != nil {
		return "", err
	}
	cmd := exec.Command("cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl") //nolint:gosec // a test's own source
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", &exec.Error{Name: "cc: " + string(out), Err: err}
	}
	return library, nil
})

// NewMachine is [NewInstance] on a machine whose power can fail. Syncs take a
// moment there, so that what is written and what is synced differ.
func NewMachine(tb testing.TB, args ...string) *Instance {
	tb.Helper()
	library, err := fsynced()
	require.NoError(tb, err, "These tests note what a redis-server has synced. They need Linux and a C compiler (apt-get install gcc), "+
		"as the race detector does.")
	notes := Folder(tb)
	i := newInstance(tb, []string{"LD_PRELOAD=" + library, "FSYNCED=" + notes, "SLOW_SYNC_US=2000"}, args...)
	i.notes = notes
	return i
}

// LosePower kills the server and leaves of its log what was synced, and of what
// was only written the first part. It returns how much that cut off. The server
// is not started again.
func (i *Instance) LosePower(part float64) (lost int64) {
	i.tb.Helper()
	i.Kill()
	logs, err := filepath.Glob(filepath.Join(i.dir, "appendonlydir", "*.incr.aof"))
	require.NoError(i.tb, err)
	require.NotEmpty(i.tb, logs)
	for _, log := range logs {
		info, err := os.Stat(log)
		require.NoError(i.tb, err)
		var synced int64
		if note, err := os.ReadFile(filepath.Join(i.notes, filepath.Base(log))); err == nil {
			synced, err = strconv.ParseInt(strings.TrimSpace(string(note)), 10, 64)
			require.NoError(i.tb, err)
		}
		require.LessOrEqual(i.tb, synced, info.Size())
		keep := synced + int64(part*float64(info.Size()-synced))
		require.NoError(i.tb, os.Truncate(log, keep))
		lost += info.Size() - keep
	}
	return lost
}
