package openaisim_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
)

func respond(t *testing.T, sim *openaisim.Server, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/responses", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer k")
	w := httptest.NewRecorder()
	sim.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// The rules are those of the real API, whatever our client sends.
func TestResponsesRequestsAreHeldToTheRules(t *testing.T) {
	const call, request = `{"type":"function_call","call_id":"c1","name":"a","arguments":"{}"}`,
		`{"type":"mcp_approval_request","id":"mcpr_1","server_label":"docs","name":"ask","arguments":"{}"}`
	const server = `{"type":"mcp","server_label":"docs","server_url":"https://docs.example.com/mcp"}`
	items := func(all string) string { return `{"model":"m","tools":[` + server + `],"input":[` + all + `]}` }
	tools := func(all string) string { return `{"model":"m","input":"hi","tools":[` + all + `]}` }
	for name, tt := range map[string]struct{ body, says string }{
		"no model":               {`{"input":"hi"}`, "names no model"},
		"no input":               {`{"model":"m"}`, "input must be"},
		"unknown parameter":      {`{"model":"m","input":"hi","messages":[]}`, "Unknown parameter"},
		"unknown item":           {items(`{"type":"sings"}`), "Invalid value: 'sings'"},
		"unknown key":            {items(`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true,"why":"x"}`), "input[0].why"},
		"approval without word":  {items(request + `,{"type":"mcp_approval_response","approval_request_id":"mcpr_1"}`), "input[1].approve"},
		"a call, no output":      {items(call), "No tool output found for function call c1"},
		"an output, no call":     {items(`{"type":"function_call_output","call_id":"c1","output":"x"}`), "No tool call found"},
		"two outputs":            {items(call + strings.Repeat(`,{"type":"function_call_output","call_id":"c1","output":"x"}`, 2)), "No tool call found"},
		"a long id":              {items(strings.Replace(call, "c1", strings.Repeat("c", 65), 1)), "call_id"},
		"a request, no answer":   {items(request), "No approval response found"},
		"an answer, no request":  {items(`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`), "No approval request found"},
		"two answers":            {items(request + strings.Repeat(`,{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`, 2)), "No approval request found"},
		"a request twice":        {items(request + "," + request), "Duplicate item"},
		"reasoning at the end":   {items(`{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"scripted:rs_1"}`), "required following item"},
		"reasoning of another":   {items(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"role":"assistant","content":"hi"}`), "could not be verified"},
		"a previous response":    {`{"model":"m","input":"hi","previous_response_id":"resp_1"}`, "not found"},
		"a strict tool":          {tools(`{"type":"function","name":"a","parameters":{"type":"object","properties":{}}}`), "additionalProperties"},
		"a tool's bad name":      {tools(`{"type":"function","name":"a.b","strict":false,"parameters":{"type":"object"}}`), "does not match"},
		"a label with a dot":     {tools(strings.Replace(server, `"docs"`, `"my.docs"`, 1)), "server_label"},
		"a server nowhere":       {tools(strings.Replace(server, "https", "ftp", 1)), "server_url"},
		"approval by mood":       {tools(strings.Replace(server, `"}`, `","require_approval":"sometimes"}`, 1)), "require_approval"},
		"a request of no server": {strings.Replace(items(request), server, "", 1), "no MCP server"},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := respond(t, openaisim.New(), tt.body)
			require.Equal(t, http.StatusBadRequest, code, body)
			require.Contains(t, body, tt.says)
		})
	}
}

func TestAHostedCallRunsWhenItIsApprovedAndNotOtherwise(t *testing.T) {
	sim := openaisim.New(openaisim.Story{
		Match: openaisim.Says("ask"), Turn: func(c openaisim.Conversation) openaisim.Reply {
			if len(c.Results) > 0 {
				return openaisim.Reply{Text: "It says: " + c.Results[0].Content}
			}
			return openaisim.Reply{Calls: []openaisim.Call{{ID: "mcpr_1", Name: "docs.ask", Args: `{"q":1}`}}}
		},
	})
	sim.Host("docs", "ask", func(args string) (string, error) {
		if args != `{"q":1}` {
			return "", errors.New("who asks?")
		}
		return "42", nil
	})
	ask := func(approval, more string) string {
		code, body := respond(t, sim, `{"model":"m","tools":[{"type":"mcp","server_label":"docs","server_url":"https://d.example","allowed_tools":["ask"]`+approval+`}],"input":[{"role":"user","content":"ask"}`+more+`]}`)
		require.Equal(t, http.StatusOK, code, body)
		return body
	}
	request := `,{"type":"mcp_approval_request","id":"mcpr_1","server_label":"docs","name":"ask","arguments":"{\"q\":1}"}`

	require.Contains(t, ask("", ""), `"type":"mcp_approval_request","id":"mcpr_1"`, "approval is needed unless the request says otherwise")
	body := ask("", request+`,{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false,"reason":"too many"}`)
	require.Contains(t, body, "It says: The call was denied. too many")
	require.Empty(t, sim.Hosted())

	body = ask("", request+`,{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`)
	require.Contains(t, body, `"approval_request_id":"mcpr_1","output":"42"`)
	require.Contains(t, body, "It says: 42")
	require.Equal(t, []openaisim.HostedCall{{Server: "docs", Tool: "ask", Args: `{"q":1}`, Approval: "mcpr_1"}}, sim.Hosted())

	ask("", `,{"type":"mcp_call","id":"mcp_1","server_label":"docs","name":"ask","arguments":"{}","output":"7"}`)
	require.Len(t, sim.Hosted(), 1, "what has run does not run again")
	ask(`,"require_approval":"never"`, "")
	require.Len(t, sim.Hosted(), 2)
	ask(`,"require_approval":{"never":{"tool_names":["other"]}}`, "")
	require.Len(t, sim.Hosted(), 2)
}
