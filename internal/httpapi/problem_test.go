package httpapi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/httpapi"
)

func TestTheDocumentationListsTheTypesOfProblemsAndTheOperations(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "api.md"))
	require.NoError(t, err)
	_, errors, found := strings.Cut(string(page), "\n## Errors\n")
	require.True(t, found)
	errors, _, _ = strings.Cut(errors, "\n## ")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(errors, -1) {
		listed = append(listed, m[1])
	}
	require.Equal(t, httpapi.Problems(), listed)
	var types []any
	for _, name := range listed {
		types = append(types, "/v1/problems/"+name)
	}
	require.Equal(t, types, spec().Components.Schemas["Problem"].Value.Properties["type"].Value.Enum)
	for path, item := range spec().Paths.Map() {
		for method := range item.Operations() {
			if path != "/v1/openapi.json" && path != "/v1/problems/{name}" {
				require.Contains(t, string(page), "`"+method+" "+path+"`")
			}
		}
	}
}
