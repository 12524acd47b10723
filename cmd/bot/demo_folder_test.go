package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// demoOn is the answer of `bot demo` to a folder that it does not take. One
// that it takes is prepared, and then the demo ends.
func demoOn(t *testing.T, folder string) error {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	return run(ctx, []string{"demo", "--addr", "127.0.0.1:0", "--folder", folder}, nil, newOutput(), newOutput())
}

// The demo writes files of its own. It must not write over someone's reports.
func TestTheDemoRefusesAFolderThatHasSomethingInIt(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(folder string) error{
		"a file of a name that the demo uses": func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "reports", "2023-q1-sales.txt"), []byte("mine"), 0o600)
		},
		"another file": func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "reports", "mine.txt"), []byte("mine"), 0o600)
		},
		"an empty folder": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(folder, "reports"), 0o700))
			require.NoError(t, put(folder))
			before, err := os.ReadDir(filepath.Join(folder, "reports"))
			require.NoError(t, err)

			err = demoOn(t, folder)
			require.EqualError(t, err, "--folder: "+folder+" is not empty: it has reports. "+
				"The demo writes files of its own into the folder, so name one that is empty or not there yet")
			after, err := os.ReadDir(filepath.Join(folder, "reports"))
			require.NoError(t, err)
			require.Len(t, after, len(before), "nothing was written")
			for _, e := range after {
				b, err := os.ReadFile(filepath.Join(folder, "reports", e.Name()))
				require.NoError(t, err)
				require.Equal(t, "mine", string(b))
			}
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	require.ErrorContains(t, demoOn(t, file), "--folder: ")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "mine", string(b))
}
