package demo

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// How the store names its keys is known to the store only.
func TestTheInspectorNamesNoKey(t *testing.T) {
	keys := regexp.MustCompile(`"(thread|messages|run|journal|batch|parkedruns|facts|due|attempts|parked|sheet|ledger|list|decided|memo|args|request)[":]|\}:|\{p`)
	require.Regexp(t, keys, `strings.CutPrefix(key, "run:")`)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotRegexp(t, keys, string(text), name)
	}
}
