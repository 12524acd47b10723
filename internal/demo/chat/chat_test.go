package chat_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/demo/chat"
)

func newPage(t *testing.T) (get func(path string, header ...string) *httptest.ResponseRecorder) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode([]string{r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Origin"), r.Header.Get("Demo-Token")})
	}))
	t.Cleanup(server.Close)
	to, err := url.Parse(server.URL)
	require.NoError(t, err)
	h := chat.Handler(chat.Config{Server: to, People: []chat.Person{{ID: "U1", Name: "ann"}}, Tokens: map[string]string{"U1": "secret"}})
	return func(path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1"+path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
}

func TestThePageAndWhatItLoadsAreServed(t *testing.T) {
	get := newPage(t)
	index := get(chat.Path)
	require.Equal(t, http.StatusOK, index.Code)
	loads := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(index.Body.String(), -1)
	require.Len(t, loads, 2, "one script and one style sheet")
	for _, l := range loads {
		require.Equal(t, http.StatusOK, get(chat.Path+l[1]).Code, l[1])
	}
	for _, path := range []string{"chat.go", "web/package.json"} {
		require.Equal(t, http.StatusNotFound, get(chat.Path+path).Code, path)
	}
}

func TestOnlyThePageActsAsAPerson(t *testing.T) {
	get := newPage(t)
	var setup struct{ Token string }
	require.NoError(t, json.Unmarshal(get(chat.Path+"setup").Body.Bytes(), &setup))
	require.Equal(t, http.StatusForbidden, get(chat.Path+"setup", "Sec-Fetch-Site", "cross-site").Code)
	path := chat.Path + "api/chat/c1"
	require.Equal(t, http.StatusForbidden, get(path, "Demo-Person", "U1").Code)
	require.Equal(t, http.StatusForbidden, get(path, "Demo-Person", "U1", "Demo-Token", "x").Code)
	require.Equal(t, http.StatusForbidden, get(path, "Demo-Person", "U2", "Demo-Token", setup.Token).Code)
	ok := get(path, "Demo-Person", "U1", "Demo-Token", setup.Token, "Origin", "http://127.0.0.1:1", "Authorization", "Bearer other")
	require.JSONEq(t, `["/api/chat/c1","Bearer secret","",""]`, ok.Body.String())
}

// Messages are hostile text: nothing in our source may parse it as HTML.
func TestNoSourceParsesHTML(t *testing.T) {
	parses := regexp.MustCompile(`innerHTML|InnerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|srcDoc|href=`)
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
	require.Positive(t, seen)
}
