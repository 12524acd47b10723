package demo

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/summary"
)

// What people read of the demo's calls, by the templates of its tools.
func TestTheDemoSaysWhatItsCallsDo(t *testing.T) {
	folder := t.TempDir()
	sets, err := config.NewToolSets(configuration(folder, ""), config.Environment{}, addedTools(folder))
	require.NoError(t, err)
	templates := map[string]string{}
	for _, tool := range sets["ops"] {
		templates[tool.Spec().Name] = tool.Spec().Summary
	}
	for tool, c := range map[string][2]string{
		"delete_file":  {`{"path":"reports/2023-q1-sales.txt"}`, "Delete reports/2023-q1-sales.txt"},
		"write_file":   {`{"path":"a.txt","content":"four"}`, "Write a.txt (4 bytes)"},
		"read_file":    {`{"path":"a.txt"}`, "Read a.txt"},
		"list_files":   {`{}`, "List files"},
		"send_email":   {`{"to":"ada@example.com","subject":"the refund","body":"..."}`, "Send an email to ada@example.com about the refund"},
		"issue_refund": {`{"order":"1042","customer":"ada@example.com","cents":4800,"reason":"Charged twice."}`, "Refund 48.00 EUR to ada@example.com for order 1042"},
	} {
		template, ok := templates[tool]
		require.True(t, ok, tool)
		require.Equal(t, c[1], summary.Of(template, tool, json.RawMessage(c[0]), nil))
	}
	require.Len(t, templates, 6)
}
