package openaimodel_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
)

const theToken = "token-of-the-docs-server"

// docs is a hosted server with the tool ask.
func docs(c *openaimodel.Config) {
	c.API = openaimodel.Responses
	c.Hosted = []openaimodel.Hosted{{
		Label: "docs", URL: "https://docs.example.com/mcp", Description: "The manual.", Tools: []string{"ask"},
		Headers: func() map[string]string { return map[string]string{"Authorization": "Bearer " + theToken} },
		Conceal: func(text string) string { return strings.ReplaceAll(text, theToken, "[redacted]") },
	}}
}

// asksDocs is a model that asks the manual once, beside a call of ours, and then says
// what it was told.
func asksDocs() *openaisim.Server {
	sim := openaisim.New(openaisim.Story{
		Name: "docs", Prompt: "look it up", Match: func(string) bool { return true },
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			if len(c.Results) == 0 {
				return openaisim.Reply{Calls: []openaisim.Call{
					{ID: "mcpr_1", Name: "docs.ask", Args: `{"q": "<n>",  "n": 9007199254740993}`}, {ID: "call_1", Name: "read_file", Args: `{}`},
				}}
			}
			return openaisim.Reply{Text: "It says: " + c.Results[0].Content}
		},
	})
	sim.Host("docs", "ask", func(string) (string, error) { return "42, asked with " + theToken, nil })
	return sim
}

// approving is the request that answers both calls.
func approving(t *testing.T, m *bench, approved ...approvals.ToolCallID) (agentrun.ModelRequest, agentrun.Response) {
	t.Helper()
	r := ask("look it up", "read_file")
	first, err := m.Request(t.Context(), r)
	require.NoError(t, err)
	r.Messages = append(r.Messages, first, request(result("call_1", `"text"`, agentrun.OutcomeSuccess)))
	r.Approved = approved
	return r, first
}

func TestAHostedCallAsksForApprovalAndRunsInTheRequestThatGivesIt(t *testing.T) {
	sim := asksDocs()
	m := newBench(t, sim, docs)
	r, first := approving(t, m, "mcpr_1")
	require.Equal(t, []agentrun.ResponsePart{
		agentrun.CallPart{
			ToolCall:        approvals.ToolCall{ID: "mcpr_1", Name: "docs.ask", Args: json.RawMessage(`{"q": "<n>",  "n": 9007199254740993}`)},
			ApprovalRequest: "mcpr_1",
		},
		call("call_1", "read_file", `{}`),
	}, spoken(first))
	require.Equal(t, agentrun.FinishToolCall, first.FinishReason)
	var body struct {
		Tools []map[string]any `json:"tools"`
	}
	require.NoError(t, json.Unmarshal(sim.Requests()[0].Body, &body))
	require.Equal(t, map[string]any{
		"type": "mcp", "server_label": "docs", "server_url": "https://docs.example.com/mcp", "server_description": "The manual.",
		"allowed_tools": []any{"ask"}, "require_approval": "always", "headers": map[string]any{"Authorization": "Bearer " + theToken},
	}, body.Tools[1])
	require.Empty(t, sim.Hosted())

	got, err := m.Request(t.Context(), r)
	require.NoError(t, err)
	ran := got.Parts[0].(agentrun.ProviderCall)
	require.Equal(t, "mcpr_1", ran.ApprovalRequest)
	require.Equal(t, "docs.ask", ran.Name)
	require.Equal(t, "42, asked with [redacted]", ran.Output)
	require.False(t, ran.Failed)
	require.Len(t, sim.Hosted(), 1)
	require.Equal(t, sim.Hosted()[0].Args, string(first.Parts[1].(agentrun.CallPart).Args), "what was approved is what runs")
}

// An approval is sent once. Later requests have the call as one that ran.
func TestWhatRanIsNotApprovedAgain(t *testing.T) {
	sim := asksDocs()
	m := newBench(t, sim, docs)
	r, _ := approving(t, m, "mcpr_1")
	got, err := m.Request(t.Context(), r)
	require.NoError(t, err)
	ran := got.Parts[0].(agentrun.ProviderCall)
	done := result("mcpr_1", `"42"`, agentrun.OutcomeSuccess)
	done.ProviderCall = string(ran.ID)
	for _, outcome := range []agentrun.Outcome{agentrun.OutcomeSuccess, agentrun.OutcomeFailed} {
		done.Outcome = outcome
		again := r
		again.Approved = nil
		again.Messages = append(again.Messages[:2:2], request(done, result("call_1", `"text"`, agentrun.OutcomeSuccess), user("go on")))
		_, err = m.Request(t.Context(), again)
		require.NoError(t, err)
		last := string(sim.Requests()[len(sim.Requests())-1].Body)
		require.Contains(t, last, `"type":"mcp_call","id":"`+string(ran.ID)+`"`)
		require.NotContains(t, last, "mcp_approval")
		require.Len(t, sim.Hosted(), 1)
	}
}

// Whatever people, the policy or a doubt said, the provider is told not to run it,
// and why.
func TestEveryOtherOutcomeIsADenialWithItsReason(t *testing.T) {
	for name, tt := range map[string]struct {
		part agentrun.RequestPart
		says string
	}{
		"denied":      {result("mcpr_1", `"Bob: not on a Friday"`, agentrun.OutcomeDenied), "The tool call was denied and was not carried out. Bob: not on a Friday"},
		"interrupted": {result("mcpr_1", `"It is not known whether it took effect."`, agentrun.OutcomeInterrupted), "was interrupted before it had a result. It is not known"},
		"it happened": {result("mcpr_1", `"A person says that it took effect."`, agentrun.OutcomeSuccess), "Do not make this call again. A person says that it took effect."},
		"not a tool":  {retry("docs.ask", "mcpr_1", "Unknown tool name."), "Unknown tool name."},
		"long":        {result("mcpr_1", `"`+strings.Repeat("é", 5000)+`"`, agentrun.OutcomeDenied), "éé"},
	} {
		t.Run(name, func(t *testing.T) {
			sim := asksDocs()
			m := newBench(t, sim, docs)
			r, _ := approving(t, m)
			r.Messages = append(r.Messages, request(tt.part))
			got, err := m.Request(t.Context(), r)
			require.NoError(t, err)
			require.Contains(t, spoken(got)[0].(agentrun.Text).Content, tt.says)
			require.Empty(t, sim.Hosted())
			require.Contains(t, string(sim.Requests()[1].Body), `"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false,"reason":"`)
		})
	}
}

// After anything but a refusal the call may have run, so nothing is asked again.
func TestARequestThatApprovesIsNotRepeatedUnlessItWasRefused(t *testing.T) {
	for kind, tt := range map[openaisim.FaultKind]struct{ sent, ran int }{
		openaisim.HungUp: {1, 1}, openaisim.Dropped: {1, 1}, openaisim.Stalled: {1, 1}, openaisim.CutShort: {1, 1},
		openaisim.ErrorEvent: {1, 1}, openaisim.MalformedSSE: {1, 1}, openaisim.WrongContentType: {1, 1},
		openaisim.ServerError: {1, 0}, openaisim.BadGateway: {1, 0}, openaisim.Unavailable: {1, 0}, // who knows?
	} {
		t.Run(string(kind), func(t *testing.T) {
			sim := asksDocs()
			m := newBench(t, sim, docs, impatient, func(c *openaimodel.Config) { c.First = 300 * time.Millisecond })
			r, _ := approving(t, m, "mcpr_1")
			sim.Fail(openaisim.Fault{Kind: kind})
			_, err := m.Request(t.Context(), r)
			require.False(t, modelError(t, err).NotRun)
			require.Len(t, sim.Requests(), 1+tt.sent)
			require.Len(t, sim.Hosted(), tt.ran)
		})
	}
	sim := asksDocs()
	m := newBench(t, sim, docs)
	r, _ := approving(t, m, "mcpr_1")
	sim.Fail(openaisim.Fault{Kind: openaisim.RateLimited})
	_, err := m.Request(t.Context(), r)
	require.NoError(t, err, "what was refused may be sent again")
	require.Len(t, sim.Hosted(), 1)
	sim.Fail(openaisim.Fault{Kind: openaisim.Unauthorized})
	_, err = m.Request(t.Context(), r)
	require.True(t, modelError(t, err).NotRun)

	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err = newBench(t, sim, docs, func(c *openaimodel.Config) { c.BaseURL = gone.URL + "/v1" }).Request(t.Context(), r)
	require.True(t, modelError(t, err).NotRun, "no request left")
}

func TestTheSecretOfAHostedServerIsSentToTheProviderOnly(t *testing.T) {
	var log bytes.Buffer
	m := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"error":{"message":"no such token: ` + theToken + `","type":"server_error"}}`))
	}), docs, func(c *openaimodel.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	_, err := m.Request(t.Context(), ask("hi"))
	require.ErrorContains(t, err, "no such token: [redacted]")
	require.NotContains(t, log.String(), theToken)

	sim := asksDocs()
	sim.Host("docs", "ask", func(string) (string, error) { return "", errors.New("who is " + theToken + "?") })
	b := newBench(t, sim, docs)
	r, _ := approving(t, b, "mcpr_1")
	got, err := b.Request(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "who is [redacted]?", got.Parts[0].(agentrun.ProviderCall).Output)
	require.True(t, got.Parts[0].(agentrun.ProviderCall).Failed)
}

// A model can repeat what a server told it, in all that it writes, and with any of the
// escapes of JSON.
func TestTheSecretOfAHostedServerIsInNothingThatTheModelWrites(t *testing.T) {
	escaped := fmt.Sprintf(`\u%04x`, theToken[0]) + theToken[1:]
	for name, tt := range map[string]struct{ args, want string }{
		"as it is":          {`{"q":"is ` + theToken + ` right?","n": 1.50}`, `{"q":"is [redacted] right?","n": 1.50}`},
		"escaped":           {`{"q":"` + escaped + `\n\"x\""}`, `{"q":"[redacted]\n\"x\""}`},
		"the name":          {`{"` + theToken + `":1}`, `{"[redacted]":1}`},
		"no JSON":           {`{"q":"\q` + theToken + `"`, `{"q":"\q[redacted]"`},
		"nothing of it":     {`{"q": "a\/b", "n": 1e3}`, `{"q": "a\/b", "n": 1e3}`},
		"one with a number": {`{"n":-20260102}`, `{"n":"[redacted]"}`},
	} {
		t.Run(name, func(t *testing.T) {
			args, err := json.Marshal(tt.args)
			require.NoError(t, err)
			items := `{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"It said ` + theToken + `."}]},` +
				`{"type":"function_call","id":"f","call_id":"f","name":"read_file","arguments":` + string(args) + `},` +
				`{"type":"mcp_approval_request","id":"a","server_label":"docs","name":"ask","arguments":` + string(args) + `},` +
				`{"type":"mcp_call","id":"m","server_label":"docs","name":"ask","arguments":` + string(args) + `,"output":"ok"}`
			m := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, end("completed", `{"status":"completed","output":[`+items+`]}`))
			}), docs, func(c *openaimodel.Config) {
				c.Hosted[0].Conceal = strings.NewReplacer(theToken, "[redacted]", "-20260102", "[redacted]").Replace
			})
			got, err := m.Request(t.Context(), ask("hi", "read_file"))
			require.NoError(t, err)
			require.Len(t, got.Parts, 4)
			require.Equal(t, "It said [redacted].", got.Parts[0].(agentrun.Thinking).Content)
			require.Equal(t, tt.want, string(got.Parts[1].(agentrun.CallPart).Args))
			require.Equal(t, tt.want, string(got.Parts[2].(agentrun.CallPart).Args))
			require.Equal(t, tt.want, string(got.Parts[3].(agentrun.ProviderCall).Args))
		})
	}
}

func TestACallWithoutApprovalIsReturnedAsWhatItIs(t *testing.T) {
	sim := asksDocs()
	sim.SkipApproval("docs.ask")
	got, err := newBench(t, sim, docs).Request(t.Context(), ask("look it up", "read_file"))
	require.NoError(t, err)
	ran := spoken(got)[0].(agentrun.ProviderCall)
	require.Empty(t, ran.ApprovalRequest)
	require.Equal(t, "docs.ask", ran.Name)
}

func TestAServerWhoseToolsAreNotListedIsInTheLog(t *testing.T) {
	var log bytes.Buffer
	m := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(end("completed", `{"status":"completed","output":[{"type":"mcp_list_tools","id":"l","server_label":"docs","tools":[],"error":"401 for `+theToken+`"},`+
			`{"type":"mcp_list_tools","id":"m","server_label":"docs.`+theToken+`","tools":[],"error":"401"}]}`)))
	}), docs, func(c *openaimodel.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	_, err := m.Request(t.Context(), ask("hi"))
	require.NoError(t, err)
	require.Contains(t, log.String(), "could not list the tools of a hosted MCP server\" server=docs\n")
	require.Contains(t, log.String(), "hosted MCP server\" server=unknown\n")
	require.NotContains(t, log.String(), theToken)
}

// A thread can go on when its agent no longer has the server.
func TestCallsOfAServerThatIsGoneAreSentLikeOthers(t *testing.T) {
	sim := asksDocs()
	r, _ := approving(t, newBench(t, sim, docs))
	ran := result("mcpr_1", `"42"`, agentrun.OutcomeSuccess)
	ran.ProviderCall = "mcp_1"
	for _, part := range []agentrun.RequestPart{ran, result("mcpr_1", `"no"`, agentrun.OutcomeDenied)} {
		again := r
		again.Messages = append(again.Messages[:3:3], request(part))
		for _, api := range []openaimodel.API{openaimodel.Chat, openaimodel.Responses} {
			_, err := newBench(t, sim, by(api)).Request(t.Context(), again)
			require.NoError(t, err)
			require.NotContains(t, string(sim.Requests()[len(sim.Requests())-1].Body), "mcp_call")
		}
	}
}

func TestAHostedServerThatCannotBeIsRefused(t *testing.T) {
	config := openaimodel.Config{APIKey: func() string { return "" }, Model: "m", Now: time.Now}
	docs(&config)
	config.API = openaimodel.Chat
	config.Hosted[0].Label = "my.docs"
	_, err := openaimodel.New(config)
	require.ErrorContains(t, err, "needs the Responses API")
	require.ErrorContains(t, err, `the label "my.docs"`)
}

func TestHostedItemsThatBreakTheProtocolFail(t *testing.T) {
	for name, tt := range map[string]struct{ item, says string }{
		"no id":    {`{"type":"mcp_approval_request","server_label":"docs","name":"ask","arguments":"{}"}`, "has no id"},
		"no label": {`{"type":"mcp_call","id":"m","name":"ask","arguments":"{}"}`, "no server_label"},
		"a dot":    {`{"type":"mcp_call","id":"m","server_label":"a.b","name":"ask"}`, "no server_label"},
		"no name":  {`{"type":"mcp_call","id":"m","server_label":"docs"}`, "no name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := responsesOnce(t, end("completed", `{"status":"completed","output":[`+tt.item+`]}`))
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// A call that the provider did not finish, or whose server did not say how it ended,
// may have taken effect.
func TestACallOfTheProviderIsUnsureUnlessItCertainlyEnded(t *testing.T) {
	for how, want := range map[string][2]bool{ // failed, unsure
		`"status":"completed","output":"ok"`:                                 {false, false},
		`"status":"failed","output":"no"`:                                    {true, false},
		`"status":"failed"`:                                                  {true, true},
		`"status":"calling"`:                                                 {true, true},
		`"status":"incomplete"`:                                              {true, true},
		`"error":"the tool took too long"`:                                   {true, true},
		`"error":{"type":"mcp_tool_execution_error","content":[]}`:           {true, false},
		`"error":{"type":"http_error","code":403,"message":"no"}`:            {true, false},
		`"error":{"type":"http_error","code":504,"message":"no"}`:            {true, true},
		`"error":{"type":"mcp_protocol_error","code":-32603,"message":"no"}`: {true, true},
		`"error":{"type":["what"]}`:                                          {true, true},
	} {
		got, err := responsesOnce(t, end("completed", `{"status":"completed","output":[{"type":"mcp_list_tools","id":"l","server_label":"docs","tools":[]},{"type":"mcp_call","id":"m","server_label":"docs","name":"ask","arguments":"{}",`+how+`}]}`))
		require.NoError(t, err)
		require.Len(t, got.Parts, 1)
		c := got.Parts[0].(agentrun.ProviderCall)
		require.Equal(t, want, [2]bool{c.Failed, c.Unsure}, how)
	}
}

// What a stream said of a call counts, whatever its last event says.
func TestACallThatOnlyTheStreamShowsIsReturned(t *testing.T) {
	const begun = `data: {"type":"response.output_item.added","item":{"type":"mcp_call","id":"m","server_label":"docs","name":"ask","approval_request_id":"a","arguments":"","status":"in_progress"}}` + "\n\n"
	const argued = `data: {"type":"response.mcp_call_arguments.done","item_id":"m","arguments":"{\"q\":1}"}` + "\n\n"
	ended := func(id string) string {
		return end("completed", `{"status":"completed","output":[{"type":"mcp_call","id":"`+id+`","server_label":"docs","name":"ask","approval_request_id":"a","arguments":"{\"q\":1}","output":"ok"}]}`)
	}
	missing := end("completed", `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Done."}]}]}`)
	for stream, args := range map[string]string{begun: "", begun + argued: `{"q":1}`} {
		_, err := responsesOnce(t, stream)
		failed := modelError(t, err)
		require.Len(t, failed.Ran, 1)
		require.True(t, failed.Ran[0].Unsure)
		require.Equal(t, args, string(failed.Ran[0].Args))

		got, err := responsesOnce(t, stream+missing)
		require.NoError(t, err)
		require.Len(t, got.Parts, 2)
		left := got.Parts[1].(agentrun.ProviderCall)
		require.True(t, left.Unsure)
		require.Equal(t, args, string(left.Args))

		for _, id := range []string{"m", "another"} {
			got, err = responsesOnce(t, stream+ended(id))
			require.NoError(t, err)
			require.Len(t, got.Parts, 1)
			require.Equal(t, "ok", got.Parts[0].(agentrun.ProviderCall).Output)
		}
	}
}

// Calls that nobody approved have no approval by which they could be told apart.
func TestACallThatOnlyTheStreamShowsIsReturnedBesideAnotherOfItsTool(t *testing.T) {
	item := func(id, more string) string {
		return `{"type":"mcp_call","id":"` + id + `","server_label":"docs","name":"ask","arguments":"{}"` + more + `}`
	}
	begun := func(id string) string {
		return `data: {"type":"response.output_item.added","item":` + item(id, `,"status":"in_progress"`) + "}\n\n"
	}
	for _, prefix := range []string{"", strings.Repeat("\u200b", 60)} { // the escape sequences of which are long
		for _, ended := range []string{"one", "another"} {
			got, err := responsesOnce(t, begun(prefix+"one")+begun(prefix+"two")+
				end("completed", `{"status":"completed","output":[`+item(prefix+ended, `,"output":"ok"`)+`]}`))
			require.NoError(t, err)
			require.Len(t, got.Parts, 2, ended)
			c := got.Parts[1].(agentrun.ProviderCall)
			require.True(t, c.Unsure)
			require.EqualValues(t, approvals.Visible(prefix)+"two", c.ID, ended)
		}
	}
}
