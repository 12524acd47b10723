package statetest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed testdata/fsynced.c
var fsyncedSource []byte

// fsynced builds the library that notes what a server has synced.
func fsynced(tb testing.TB) (library string) {
	tb.Helper()
	dir := tb.TempDir()
	source, library := filepath.Join(dir, "fsynced.c"), filepath.Join(dir, "fsynced.so")
	require.NoError(tb, os.WriteFile(source, fsyncedSource, 0o600))
	out, err := exec.CommandContext(tb.Context(), "cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl").CombinedOutput() //nolint:gosec // a test's own source
	require.NoError(tb, err, "These tests note what a redis-server has synced. They need Linux and a C compiler (apt-get install gcc), "+
		"as the race detector does. It said: %s", out)
	return library
}

// NewMachine is [NewInstance] on a machine whose power can fail. Syncs take a
// moment there, so that what is written and what is synced differ.
func NewMachine(tb testing.TB, args ...string) *Instance {
	tb.Helper()
	library, notes := fsynced(tb), Folder(tb)
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
