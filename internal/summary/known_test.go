package summary_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/summary"
)

func TestToolsOfCodingAgentsReadLikeAPrompt(t *testing.T) {
	for _, c := range []struct{ tool, args, says string }{
		{"Bash", `{"command":"make deploy","description":"Deploy it","timeout":1000}`, "Run make deploy"},
		{"Write", `{"file_path":"/srv/a.txt","content":"hello"}`, "Write /srv/a.txt (5 bytes)"},
		{"Edit", `{"file_path":"/srv/a.txt","old_string":"a","new_string":"b"}`, "Edit /srv/a.txt"},
		{"WebFetch", `{"url":"https://example.com","prompt":"x"}`, "Fetch https://example.com"},
		{"Bash", `{"cmd":"make"}`, `Bash (cmd: "make")`},
		{"Bash", `{"command":["make"]}`, "Bash (command: 1 item)"},
		{"mcp__github__merge", `{"pr":3}`, "Mcp github merge (pr: 3)"},
	} {
		require.Equal(t, c.says, summary.Of(summary.Known(c.tool), c.tool, json.RawMessage(c.args), nil))
	}
}
