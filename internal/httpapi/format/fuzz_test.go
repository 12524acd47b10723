package format_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/httpapi/format"
	"github.com/countersign/countersign/internal/intake"
)

// Whatever a client sends, it is a request or a fault with its place; and every
// request has an answer that is complete and names its own tools.
func FuzzARequestIsReadOrRefused(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(f, err)
		for _, name := range []format.Name{format.PydanticAI, format.LangChain, format.OpenAIAgents} {
			f.Add(string(name), raw)
		}
	}
	f.Add("langchain", []byte(`[{"value":null},{"value":[null]}]`))
	f.Add("openai-agents", []byte(`[null,{"rawItem":null}]`))
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		if approvals.CheckJSON(body, 80) != nil {
			return
		}
		r, err := format.Read(format.Name(name), body, nil)
		if err != nil {
			require.ErrorAs(t, err, new(*format.RequestError))
			return
		}
		require.NotEmpty(t, r.Calls)
		calls := make([]intake.CallStatus, len(r.Calls))
		for i, c := range r.Calls {
			require.NoError(t, approvals.CheckArgs(c.Args))
			calls[i] = intake.CallStatus{ID: c.ID, Tool: c.Tool, Args: c.Args, Edited: i%2 == 0, External: c.External, Outcome: []intake.Outcome{
				intake.OutcomeApproved, intake.OutcomeDenied, intake.OutcomeAllowed, intake.OutcomeExpired,
			}[i%4]}
		}
		kept, err := json.Marshal(r.Form)
		require.NoError(t, err)
		var form format.Form
		require.NoError(t, json.Unmarshal(kept, &form))
		out, err := form.Write(format.Name(name), calls)
		require.NoError(t, err)
		require.True(t, json.Valid(out))
		calls[len(calls)-1].Outcome = intake.OutcomePending
		_, err = form.Write(format.Name(name), calls)
		require.ErrorIs(t, err, format.ErrOpen)
	})
}
