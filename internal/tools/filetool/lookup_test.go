package filetool_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
)

// A write of which it is not known whether it happened has happened if the file has
// its text. Anything else says nothing: a lookup never says that it did not happen,
// because then it would be repeated over what was written since.
func TestALookupKnowsAWriteByItsText(t *testing.T) {
	const asked = `{"path":"a.txt","content":"new text"}`
	for name, c := range map[string]struct {
		there   func(path string) error
		want    agentrun.Happened
		unknown bool // with an error
	}{
		"the text":           {there: func(p string) error { return os.WriteFile(p, []byte("new text"), 0o600) }, want: agentrun.HappenedYes},
		"the text before":    {there: func(p string) error { return os.WriteFile(p, []byte("old text"), 0o600) }},
		"half of the text":   {there: func(p string) error { return os.WriteFile(p, []byte("new "), 0o600) }},
		"more than the text": {there: func(p string) error { return os.WriteFile(p, []byte("new text\n"), 0o600) }},
		"an empty file":      {there: func(p string) error { return os.WriteFile(p, nil, 0o600) }},
		"no file":            {there: func(string) error { return nil }},
		"a folder":           {there: func(p string) error { return os.Mkdir(p, 0o700) }, unknown: true},
		"a link to the same text": {there: func(p string) error {
			to := filepath.Join(filepath.Dir(p), "b.txt")
			return errors.Join(os.WriteFile(to, []byte("new text"), 0o600), os.Symlink("b.txt", p))
		}, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			folder, _ := open(t)
			require.NoError(t, c.there(filepath.Join(folder, "a.txt")))
			x, call := toolOf(t, folder, "write_file", asked)
			require.Equal(t, agentrun.EffectLookup, x.Spec().Effect)
			got, err := x.Spec().Lookup(t.Context(), call)
			require.Equal(t, c.want, got.Happened)
			require.Equal(t, c.unknown, err != nil, "%v", err)
			if c.want == agentrun.HappenedYes {
				done, err := x.Execute(t.Context(), call)
				require.NoError(t, err)
				require.JSONEq(t, string(done.Value), string(got.Result.Value), "the model reads the same")
			}
		})
	}
	x, _ := toolOf(t, t.TempDir(), "delete_file", `{"path":"a.txt"}`)
	require.Nil(t, x.Spec().Lookup, "a file that is gone may have been moved")
}
