package slackui_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// TestEveryButtonOfAGoldenSurfaceSaysWhereItLeads: a screen reader says of ten
// buttons "Approve" which call each approves.
func TestEveryButtonOfAGoldenSurfaceSaysWhereItLeads(t *testing.T) {
	seen := 0
	for _, pattern := range []string{"testdata/*.json", "testdata/forms/*.json"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			n, bad := unlabeled(t, raw)
			require.Empty(t, bad, file)
			seen += n
		}
	}
	require.Greater(t, seen, 100)
}

// labeled stands before Slack and fails the test at a message, a view or a Home
// with a button that a screen reader cannot tell from others of its kind.
func labeled(t *testing.T, slack http.Handler) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read a request to %s: %v", r.URL.Path, err)
		}
		r.Body = io.NopCloser(bytes.NewReader(raw))
		said := [][]byte{raw}
		if form, err := url.ParseQuery(string(raw)); err == nil && !strings.HasPrefix(string(raw), "{") {
			said = [][]byte{[]byte(form.Get("blocks")), []byte(form.Get("view"))}
		}
		for _, s := range said {
			if _, bad := unlabeled(t, s); len(bad) > 0 {
				t.Errorf("%s: buttons without a label of their own: %v", r.URL.Path, bad)
			}
		}
		slack.ServeHTTP(w, r)
	})
}

// unlabeled counts the buttons, and returns those without a usable label for
// screen readers, or with one that only repeats the button.
func unlabeled(t *testing.T, raw []byte) (buttons int, bad []string) {
	t.Helper()
	if len(raw) == 0 {
		return 0, nil
	}
	var tree any
	if json.Unmarshal(raw, &tree) != nil {
		return 0, nil // of a call of the API that has no blocks
	}
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				look(x)
			}
		case map[string]any:
			if v["type"] == "button" {
				buttons++
				text, _ := v["text"].(map[string]any)
				label, _ := text["text"].(string)
				spoken, _ := v["accessibility_label"].(string)
				if n := utf8.RuneCountInString(spoken); n == 0 || n > blockkit.SpokenRunes || spoken == label {
					bad = append(bad, label+": "+spoken)
				}
			}
			for _, x := range v {
				look(x)
			}
		}
	}
	look(tree)
	return buttons, bad
}
