package page_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim/page"
)

func get(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	page.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return rec
}

func TestThePageAndWhatItLoadsAreServed(t *testing.T) {
	index := get(t, "/")
	require.Equal(t, http.StatusOK, index.Code)
	require.Contains(t, index.Header().Get("Content-Security-Policy"), "require-trusted-types-for 'script'")
	loads := regexp.MustCompile(`(?:src|href)="([^"]+\.(?:js|css))"`).FindAllStringSubmatch(index.Body.String(), -1)
	require.Len(t, loads, 2, "one script and one style sheet")
	for _, l := range loads {
		require.Equal(t, http.StatusOK, get(t, l[1]).Code, l[1])
	}
	for _, path := range []string{"/page.go", "/web/package.json", "/dist/app.js"} {
		require.Equal(t, http.StatusNotFound, get(t, path).Code, path)
	}
}

// Message text is hostile: nothing in our source may parse it as HTML. React
// can, in what it bundles; the policy above makes the browser refuse.
func TestNoSourceParsesHTML(t *testing.T) {
	parses := regexp.MustCompile(`innerHTML|InnerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\(|new Function|srcDoc`)
	seen := 0
	require.NoError(t, filepath.WalkDir("web/src", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		seen++
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotRegexp(t, parses, string(source), path)
		return nil
	}))
	require.Greater(t, seen, 15, "the source was not found")
}

// TestTimesAreInTheZoneOfTheActingPerson: messages show times in the zone of the
// person that the page acts as, so the inspector does too. Only dates.ts formats
// a time of day.
func TestTimesAreInTheZoneOfTheActingPerson(t *testing.T) {
	require.NoError(t, filepath.WalkDir("web/src", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(path) == "dates.ts" {
			return err
		}
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotContains(t, string(source), "toLocaleTimeString", path)
		return nil
	}))
}

// The page works without a network: its bundle names no other host.
func TestTheBundleLoadsNothingFromElsewhere(t *testing.T) {
	for path, allowed := range map[string]string{"/": `http://www\.w3\.org/2000/svg`, "/app.css": `^$`} {
		for _, address := range regexp.MustCompile(`https?://[^\s"'()]+`).FindAllString(get(t, path).Body.String(), -1) {
			require.Regexp(t, allowed, address, path)
		}
	}
	require.NotRegexp(t, `@import|url\(`, get(t, "/app.css").Body.String())
}
