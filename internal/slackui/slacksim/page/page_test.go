package page_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/slacksim/page"
)

func TestEveryFileIsServed(t *testing.T) {
	for _, pattern := range []string{"*.js", "*.css"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, names)
		for _, name := range names {
			rec := httptest.NewRecorder()
			page.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+name, nil))
			require.Equal(t, http.StatusOK, rec.Code, name)
		}
	}
	rec := httptest.NewRecorder()
	page.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/page.go", nil))
	require.Equal(t, http.StatusNotFound, rec.Code)
}

// Message text is hostile: no script of the page may parse it as HTML.
func TestNoScriptParsesHTML(t *testing.T) {
	names, err := filepath.Glob("*.js")
	require.NoError(t, err)
	for _, name := range names {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\(|new Function`, string(source), name)
	}
}
